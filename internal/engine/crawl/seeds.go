package crawl

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"kumo/internal/base/item"
	"kumo/internal/base/weburl"
	"kumo/internal/content/policy"
	"kumo/internal/state/entry"
	"kumo/internal/state/ledger"
	"kumo/internal/state/statefile"
)

// A SeedList is a list of seeds that may not fit in memory, such as a file. The engine reads it twice while it crawls:
// first at full speed, to add all hosts to the scope, before which no page's links are judged; then to queue the URLs,
// as fast as memory and disk allow.
type SeedList interface {
	// List returns the list's initial mark for the journal.
	List() entry.SeedListMark
	// Each calls f with parts of the seeds, starting at an offset, and with the offset behind each part. f must not
	// retain them.
	Each(from int64, f func(seeds []weburl.URL, end int64) error) error
}

// A seedFeed reads a SeedList into the crawl.
type seedFeed struct {
	src  SeedList // nil: no list
	from int64    // offset at the start of this run

	total, taken atomic.Int64

	inScope   atomic.Bool   // the whole list is in scope
	scopeDone chan struct{} // closed when it is in scope, or will not be in this run

	mu   sync.Mutex // guards the fields below
	mark entry.SeedListMark
	all  []entry.SeedListMark // including the lists of earlier runs
	done bool
}

func newFeed(src SeedList, earlier []entry.SeedListMark) *seedFeed {
	f := &seedFeed{src: src, all: earlier, done: true, scopeDone: make(chan struct{})}
	if src == nil {
		f.inScope.Store(true)
		return f
	}
	f.mark = src.List()
	if i := slices.IndexFunc(earlier, func(m entry.SeedListMark) bool { return m.Digest == f.mark.Digest }); i >= 0 {
		f.mark = earlier[i]
	}
	f.done, f.from = f.mark.Done, f.mark.Offset
	f.inScope.Store(f.done) // an earlier run has added it to the scope
	f.total.Store(f.mark.Seeds)
	f.taken.Store(f.mark.Taken)
	return f
}

// marks returns the marks of all lists, for a checkpoint. Lists that were begun by earlier runs and are not given again
// are included: see [Seeding.queueList].
func (f *seedFeed) marks() []entry.SeedListMark {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.all
}

func (f *seedFeed) ended() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.done
}

// advance counts n queued seeds up to the offset end, and returns the mark for the journal.
func (f *seedFeed) advance(n int, end int64, done bool) entry.SeedListMark {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mark.Taken += int64(n)
	f.mark.Offset, f.mark.Done = end, done
	f.all = entry.UpdateMarks(f.all, f.mark)
	f.taken.Store(f.mark.Taken)
	return f.mark
}

// Seeds returns how many seeds of the run's list were queued, and how many it has; 0 and 0 without a list.
func (s *Seeding) Seeds() (taken, all int64) {
	return s.feed.taken.Load(), s.feed.total.Load()
}

// awaitScope waits until the whole list is in scope. It returns false if it will not be in this run.
func (f *seedFeed) awaitScope(ctx context.Context) bool {
	if f.inScope.Load() {
		return true
	}
	select {
	case <-f.scopeDone:
	case <-ctx.Done():
	}
	return f.inScope.Load()
}

// Seeding admits seeds: the run's, those of a list, and those that are added while the crawl runs.
type Seeding struct {
	cfg        *Config
	scopeSeeds *scopeSeeds
	feed       *seedFeed
	open       *keepOpen
	hosts      *hosts
	outgoing   *outgoing
	holds      *holds
	admission  *admission
	batches    *batchWriter
	abandons   *abandoner
	ledger     *ledger.Ledger
}

// scopeList adds the rest of the list to the scope.
func (s *Seeding) scopeList(ctx context.Context) error {
	if s.feed.inScope.Load() {
		return nil
	}
	defer close(s.feed.scopeDone)
	err := s.feed.src.Each(s.feed.from, func(seeds []weburl.URL, _ int64) error {
		for _, u := range seeds {
			s.scopeSeeds.admitSeed(u)
		}
		return context.Cause(ctx)
	})
	if ctx.Err() != nil {
		return nil
	}
	s.feed.inScope.Store(err == nil)
	return err
}

// queueList queues the list while the workers crawl, until ctx ends. A later run with the same list continues there.
func (s *Seeding) queueList(ctx context.Context) error {
	if s.feed.ended() {
		return nil
	}
	known := make([]weburl.URL, 0, maxBatchLinks)
	end := s.feed.from
	err := s.feed.src.Each(end, func(seeds []weburl.URL, upTo int64) error {
		s.holds.awaitRoom(ctx)
		if s.outgoing.claims != nil {
			s.outgoing.full.await(ctx) // all links go to the outbox
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		known = known[:0]
		for _, u := range seeds {
			known = append(known, s.scopeSeeds.admitSeed(u))
		}
		end = upTo
		return s.queueSeeds(seeds, known, nil, func(enc *entry.Encoder) {
			m := s.feed.advance(len(seeds), upTo, false)
			enc.SeedList(&m)
		})
	})
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	err = s.ledger.Within(func() error {
		var enc entry.Encoder
		m := s.feed.advance(0, end, true)
		enc.SeedList(&m)
		s.ledger.Enqueue(enc.Writer)
		return nil
	})
	s.feed.mu.Lock()
	s.feed.done = true
	s.feed.mu.Unlock()
	s.open.keepFrontierOpen() // no longer
	return err
}

// queueSeeds queues some seeds, which are in scope: seeds are as the user wrote them, known after rewriting. If take is
// not nil, seeds of hosts for which it returns false are only recorded as scope seeds. also adds entries to the
// journal's same batch.
func (s *Seeding) queueSeeds(seeds, known []weburl.URL, take func(host string) bool, also func(*entry.Encoder)) error {
	var b batch
	b.seedsRecorded = true
	mine := known
	if take != nil {
		mine = slices.DeleteFunc(slices.Clone(known), func(u weburl.URL) bool {
			return !take(s.hosts.slices.OfHost(u.Host(), u.String()))
		})
	}
	for _, u := range mine {
		s.admission.classify(&b, u, item.FromSeed(u.String()), "", "")
	}
	if s.cfg.IgnoreRobots && s.cfg.Sitemaps == policy.SitemapsGuessed {
		s.admission.addGuesses(&b, mine)
	}
	return s.abandons.commitBatch(&b, func() error {
		for i, u := range seeds {
			if _, err := s.scopeSeeds.record(known[i].String(), statefile.SeedEntry{URL: u.String(), Seed: true}); err != nil {
				return err
			}
		}
		if also != nil {
			also(&b.entries)
		}
		return s.batches.apply(&b)
	})
}

// admitSeeds adds seeds to the scope, both as written and after the crawl's rewriting rules, and queues them.
func (s *Seeding) admitSeeds(ctx context.Context, seeds []weburl.URL, take func(host string) bool) error {
	known := make([]weburl.URL, len(seeds))
	for i, u := range seeds {
		known[i] = s.scopeSeeds.admitSeed(u)
	}
	for from := 0; from < len(seeds); from += maxBatchLinks {
		to := min(from+maxBatchLinks, len(seeds))
		if take != nil && s.outgoing.claims != nil {
			s.outgoing.full.await(ctx) // all links go to the outbox
		}
		if err := s.queueSeeds(seeds[from:to], known[from:to], take, nil); err != nil {
			return err
		}
	}
	return nil
}

// AddSeeds adds seeds while the engine runs. All are added to the scope, as on every node. A seed is fetched if take
// returns true for its host: by this node, or by the host's owner. When AddSeeds returns, the seeds are durable, and
// replicated if the journal is. The same seeds may be added again.
func (s *Seeding) AddSeeds(ctx context.Context, seeds []weburl.URL, take func(host string) bool) error {
	s.holds.received.Add(1)
	if err := s.admitSeeds(ctx, seeds, take); err != nil {
		return err
	}
	return s.ledger.FlushDurable(ctx)
}

// AddScopeSeed adds the target of a redirect that another node has followed from a seed to the scope. The other node
// announces it again when it restarts; here it is durable with the next commit.
func (s *Seeding) AddScopeSeed(u weburl.URL) error {
	s.scopeSeeds.scope.AddSeed(u)
	return s.ledger.Within(func() error {
		_, err := s.scopeSeeds.record(u.String(), statefile.SeedEntry{URL: u.String(), Redirect: true})
		return err
	})
}
