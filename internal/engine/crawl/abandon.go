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
	abandoned *statefile.AbandonedQueue // the journal has these URLs as pending
	ledger    *ledger.Ledger
	stats     *stats.Counter
	listener  Listener
}

// abandonOrigin moves the pending URLs of an origin to the abandoned queue, from which the next run retries them. It
// may be called again for URLs that were queued after the first call.
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

// abandonAt is abandonOrigin for the URLs in one slice of the origin's host.
func (a *abandoner) abandonAt(slice, origin string, l visit.Abandonment) error {
	// The URLs of a host, or slice, that is being transferred stay queued while the transfer reads them: if they come
	// back, their visits find the origin abandoned. Fetches of robots.txt are not transferred, so they are removed at
	// once.
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
		case it.Robots != origin: // the robots.txt of another origin redirects here
			if err := a.abandonOrigin(it.Robots, robotsAbandonment(l)); err != nil {
				return err
			}
		}
	}
	a.frontier.Unpark(slice, origin)
	return nil
}

// removeMatching moves matching items from the frontier to the abandoned queue. Both happen within the ledger's gate,
// so a checkpoint has each item in exactly one of the two.
func (a *abandoner) removeMatching(host string, match func(*item.Item) bool) (items []item.Item, err error) {
	a.frontier.Prefetch(host) // or TakeMatching would read the disk with the ledger's gate held
	err = a.ledger.Within(func() error {
		items = a.frontier.TakeMatching(host, match)
		for i := range items {
			it := &items[i]
			it.Reported = it.Reported || a.ends.removeReported(it.URL)
			if err := a.abandonItem(*it); err != nil {
				return err
			}
		}
		return nil
	})
	return items, err
}

// abandonItem appends an item to the abandoned queue for the next run.
func (a *abandoner) abandonItem(it item.Item) error {
	if it.Robots != "" {
		return nil
	}
	it.Reported = true
	return a.abandoned.Put(&it)
}

// failVisit is failItem for the URL of a visit under way.
func (w *worker) failVisit(v *frontier.Visit, l visit.Abandonment) error {
	b := batch{visitURL: v.URL, visit: w.batch.visit}
	w.batch.visit = nil
	if v.Recrawl && w.visits.cfg.Claims {
		b.item = &v.Item
		w.planWithoutRecord(&b, v)
	}
	return w.visits.abandons.failWith(&b, item.HostOfSlice(v.Host), v.Item, l)
}

// failItem records that a URL failed with its origin. The URL is on the abandoned queue. The journal still has it as
// pending, so the next run retries it.
func (a *abandoner) failItem(host string, it item.Item, l visit.Abandonment) error {
	b := &batch{ended: []string{it.URL}}
	if it.Recrawl && a.cfg.Claims && a.known.db != nil {
		r := revisit{cfg: a.cfg, known: a.known}
		v := &frontier.Visit{Item: it}
		if err := r.load(v); err != nil {
			return err
		}
		b.item, b.recrawlPlan = &it, r.plan(v, page.Trouble)
		b.planned = r.plannedAfter(&it, &b.recrawlPlan)
	}
	return a.failWith(b, item.HostOfSlice(host), it, l)
}

// failWith is failItem with a batch that names the URL that it ends.
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
		if b.visitURL != "" { // as its visit ends: a checkpoint has the item in one place
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

// commitBatch adds a batch to the crawl: it drops known URLs, and writes new ones with the records they came from to
// the stores, the journal and the frontier. If apply is not nil, it is called within the ledger's gate instead of
// batchWriter.apply, and must apply the batch.
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

// admitDecided admits URLs that a merge of seen has found to be new. They are durable when it returns, as the merge's
// result will be.
func (a *abandoner) admitDecided(decided []seen.Decided) error {
	var b batch
	err := a.commitBatch(&b, func() error {
		for i := range decided {
			d := entry.NewDecoder(decided[i].Payload)
			c := d.Candidate()
			if d.Bad {
				return fmt.Errorf("read a decided URL: %w", d.Err())
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

// failAbandoned removes new URLs of abandoned origins from the queue again.
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
