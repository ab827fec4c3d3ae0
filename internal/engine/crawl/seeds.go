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

// A SeedList is a list of seeds that is too long for memory, such as a file. The engine reads it twice while it crawls:
// at full speed, to take all hosts into scope, before which no page's links are judged; and to queue the URLs, as fast
// as memory and disk allow.
type SeedList interface {
	// List is what the journal keeps of the list.
	List() entry.SeedListMark
	// Each calls f with part after part of the seeds, from an offset on, and with the offset behind each. f does not
	// keep them.
	Each(from int64, f func(seeds []weburl.URL, end int64) error) error
}

// A feed is the way of a SeedList into the crawl.
type seedFeed struct {
	src  SeedList // nil: there is none
	from int64    // where this run begins

	total, taken atomic.Int64

	inScope   atomic.Bool   // all of it is in scope
	scopeDone chan struct{} // closed when it is, or will not be in this run

	mu   sync.Mutex // guards below
	mark entry.SeedListMark
	all  []entry.SeedListMark // of earlier runs' lists, too
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
	f.inScope.Store(f.done) // an earlier run has seen to it
	f.total.Store(f.mark.Seeds)
	f.taken.Store(f.mark.Taken)
	return f
}

// marks are what a checkpoint's note has. Lists that earlier runs began and that are not given again are not: see
// [Seeding.queueList].
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

// advance notes that seeds were taken in, and returns what the journal is to have of that.
func (f *seedFeed) advance(n int, end int64, done bool) entry.SeedListMark {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mark.Taken += int64(n)
	f.mark.Offset, f.mark.Done = end, done
	f.all = entry.UpdateMarks(f.all, f.mark)
	f.taken.Store(f.mark.Taken)
	return f.mark
}

// Seeds says how many seeds of the run's list were taken in, and how many it has; 0 and 0 where there is none.
func (s *Seeding) Seeds() (taken, all int64) {
	return s.feed.taken.Load(), s.feed.total.Load()
}

// awaitScope waits until all of the list is in scope. It returns false if it will not be in this run.
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

// Seeding takes seeds in: those of the run, those of a list, and those that come while the crawl runs.
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

// scopeList takes all of the list into scope that is not there yet.
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

// queueList takes the list in while the workers crawl, until ctx ends: what is left then is for the run that is given
// the list again.
func (s *Seeding) queueList(ctx context.Context) error {
	if s.feed.ended() {
		return nil
	}
	known := make([]weburl.URL, 0, maxBatchLinks)
	end := s.feed.from
	err := s.feed.src.Each(end, func(seeds []weburl.URL, upTo int64) error {
		s.holds.awaitRoom(ctx)
		if s.outgoing.claims != nil {
			s.outgoing.full.await(ctx) // where all go
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

// queueSeeds takes some seeds in, which are in scope: as the user wrote them, and as the crawl's rules have them. Of
// those whose host take does not want only the root is kept. also adds to the journal's same batch.
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

// admitSeeds takes the seeds in, as the crawl's rules have them. Where a redirect leads back to how the user wrote them, that
// is in scope.
func (s *Seeding) admitSeeds(ctx context.Context, seeds []weburl.URL, take func(host string) bool) error {
	known := make([]weburl.URL, len(seeds))
	for i, u := range seeds {
		known[i] = s.scopeSeeds.admitSeed(u)
	}
	for from := 0; from < len(seeds); from += maxBatchLinks {
		to := min(from+maxBatchLinks, len(seeds))
		if take != nil && s.outgoing.claims != nil {
			s.outgoing.full.await(ctx) // where all go
		}
		if err := s.queueSeeds(seeds[from:to], known[from:to], take, nil); err != nil {
			return err
		}
	}
	return nil
}

// AddSeeds takes seeds in while the engine runs. All are admitted to the scope, as on every node; those are fetched
// whose host this node is asked to take, by it or, if that is another's, by its owner. They are durable when it
// returns, and where the journal is shipped, there. The same seeds may come again.
func (s *Seeding) AddSeeds(ctx context.Context, seeds []weburl.URL, take func(host string) bool) error {
	s.holds.received.Add(1)
	if err := s.admitSeeds(ctx, seeds, take); err != nil {
		return err
	}
	return s.ledger.FlushDurable(ctx)
}

// AddScopeSeed admits to the scope what a seed that another node has visited redirects to. The node tells it again when it
// begins anew; it is durable with the next commit.
func (s *Seeding) AddScopeSeed(u weburl.URL) error {
	s.scopeSeeds.scope.AddSeed(u)
	return s.ledger.Within(func() error {
		_, err := s.scopeSeeds.record(u.String(), statefile.SeedEntry{URL: u.String(), Redirect: true})
		return err
	})
}
