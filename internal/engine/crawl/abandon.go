package crawl

import (
	"fmt"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/stats"
	"kumo/internal/engine/visit"
	"kumo/internal/state/entry"
	"kumo/internal/state/frontier"
	"kumo/internal/state/ledger"
	"kumo/internal/state/seen"
	"kumo/internal/state/statefile"
)

// An abandoner moves the URLs of abandoned origins from the queues to the file of the next run.
type abandoner struct {
	cfg       *Config
	batches   *batchWriter
	admission *admission
	hosts     *hosts
	known     *known
	origins   *origins
	rules     *visit.Gate
	ends      *visitEnds
	frontier  *frontier.Frontier
	abandoned *statefile.AbandonedQueue // for the journal these URLs are pending
	ledger    *ledger.Ledger
	stats     *stats.Counter
	listener  Listener
}

// abandonOrigin ends what waits at an origin: its URLs share the failure, and wait for another run. It may be called
// again for what has come back to the queue meanwhile.
func (a *abandoner) abandonOrigin(origin string, l visit.Abandonment) error {
	if a.origins.Abandon(origin, l) {
		a.origins.outages.abandoned(a.origins.Hash(origin))
		a.listener.Abandoned(origin, fmt.Sprintf("%s: %s", l.Failure, l.Why))
	}
	a.rules.Forget(origin)
	for slice := range a.hosts.slicesOf(origin) {
		if err := a.abandonAt(slice, origin, l); err != nil {
			return err
		}
	}
	return nil
}

// abandonAt is abandonOrigin for what waits in a slice of the origin's host.
func (a *abandoner) abandonAt(slice, origin string, l visit.Abandonment) error {
	// What waits at a host, or a slice of one, that is on its way to another node, or from one, stays while that reads it,
	// but for fetches of robots.txt, which do not move: if it comes back, its visits find the origin abandoned.
	all, err := a.removeMatching(slice, func(it *item.Item) bool {
		return (it.Robots != "" || a.hosts.ours(slice)) && item.OriginOf(it.URL) == origin
	})
	if err != nil {
		return err
	}
	for _, it := range all {
		switch {
		case it.Robots == "":
			if err := a.failItem(slice, it, l); err != nil {
				return err
			}
		case it.Robots != origin: // another's rules were to be had here
			if err := a.abandonOrigin(it.Robots, robotsAbandonment(l)); err != nil {
				return err
			}
		}
	}
	a.frontier.Unpark(slice, origin)
	return nil
}

// removeMatching takes items that match out of the frontier and onto the abandoned queue, so that a checkpoint has each
// in one or the other.
func (a *abandoner) removeMatching(host string, match func(*item.Item) bool) (items []item.Item, err error) {
	a.frontier.Prefetch(host) // or Take would read it with the ledger's gate held
	err = a.ledger.Within(func() error {
		items = a.frontier.TakeMatching(host, match)
		for i := range items {
			it := &items[i]
			it.Reported = it.Reported || a.ends.takeReported(it.URL)
			if err := a.abandonItem(*it); err != nil {
				return err
			}
		}
		return nil
	})
	return items, err
}

// abandonItem keeps an item that waits for the next run.
func (a *abandoner) abandonItem(it item.Item) error {
	if it.Robots != "" {
		return nil
	}
	it.Reported = true
	return a.abandoned.Put(&it)
}

// failVisit is failItem for a visit that is under way.
func (w *worker) failVisit(v *frontier.Visit, l visit.Abandonment) error {
	b := batch{visitURL: v.URL, visit: w.batch.visit}
	w.batch.visit = nil
	return w.visits.abandons.failWith(&b, item.HostOfSlice(v.Host), v.Item, l)
}

// failItem records a URL as failed whose origin was given up, and which is on the abandoned queue. For the journal it
// still waits: the next run tries it again.
func (a *abandoner) failItem(host string, it item.Item, l visit.Abandonment) error {
	return a.failWith(&batch{ended: []string{it.URL}}, item.HostOfSlice(host), it, l)
}

// failWith is failItem with a batch that says which URL it ends.
func (a *abandoner) failWith(b *batch, host string, it item.Item, l visit.Abandonment) error {
	rec := &page.Record{URL: it.URL, Final: it.URL, From: it.From, Seed: it.Seed, Path: it.Path, Depth: int(it.Depth),
		Time: a.cfg.Now(), Tries: int(it.Tries), Failure: l.Failure, Detail: l.Why}
	b.records = []*page.Record{rec}
	if !it.Reported {
		b.skips = []page.Skip{{URL: it.URL, Host: host, From: it.From, Depth: int(it.Depth), Time: rec.Time,
			Rule: ruleFailed, Why: string(l.Failure) + ": " + l.Why}}
	}
	b.entries.Reported(it.URL)
	err := a.commitBatch(b, func() error {
		if b.visitURL != "" { // as its visit ends: a checkpoint has one or the other
			if err := a.abandonItem(it); err != nil {
				return err
			}
		}
		return a.batches.apply(b)
	})
	if err != nil {
		return err
	}
	a.stats.Abandoned(stats.Visit{Host: host, Failure: string(l.Failure)})
	a.listener.Visited(rec)
	return nil
}

// commitBatch makes a batch part of the crawl: what is news of it is found out, then it goes with the records that
// brought it to the stores and the journal, and to the frontier. Unless apply is nil, it is called within the ledger's
// gate, and applies the batch together with what belongs to it.
func (a *abandoner) commitBatch(b *batch, apply func() error) error {
	if apply == nil {
		apply = func() error { return a.batches.apply(b) }
	}
	if err := a.ledger.Within(apply); err != nil {
		return err
	}
	for i := range b.skips {
		a.listener.Skipped(&b.skips[i])
	}
	return a.failAbandoned(b.found)
}

// admitDecided takes in what seen has found to be news in a merge. It is durable when it returns, as the merge's outcome
// will be.
func (a *abandoner) admitDecided(decided []seen.Decided) error {
	var b batch
	err := a.commitBatch(&b, func() error {
		for i := range decided {
			d := entry.NewDecoder(decided[i].Payload)
			c := d.Candidate()
			if d.Bad {
				return fmt.Errorf("a decided URL: %w", d.Err())
			}
			if decided[i].News == seen.Fresh {
				a.admission.route(&b, &c)
			} else if c.Rule == "" {
				b.entries.Nearer(c.Item.URL, c.Item.Depth)
			}
		}
		return a.batches.apply(&b)
	})
	if err != nil {
		return err
	}
	at, err := a.ledger.CommitTo()
	if err == nil && a.known.db != nil {
		a.known.db.SetRelies(uint64(at))
	}
	return err
}

// failAbandoned takes back what was found at origins that were given up.
func (a *abandoner) failAbandoned(found []entry.Candidate) error {
	if !a.origins.AnyAbandoned() {
		return nil
	}
	for i := range found {
		origin := item.OriginOf(found[i].Item.URL)
		l, gone := a.origins.Abandoned(origin)
		if !gone {
			continue
		}
		if err := a.abandonAt(a.hosts.sliceOf(&found[i]), origin, l); err != nil {
			return err
		}
	}
	return nil
}
