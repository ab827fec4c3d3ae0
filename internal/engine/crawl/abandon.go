package crawl

import (
	"fmt"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/stats"
	"kumo/internal/base/weburl"
	"kumo/internal/state/frontier"
)

// How much in a row an origin may do before it is given up. It is the origin and not the host that is given up: where
// nothing answers at https, http may be well.
const (
	// could not be connected to, or not by TLS; where it had answered, also for as long as Config.Patience
	maxRefusals  = 3
	maxSilences  = 10 // connected, but gave no answer: one URL, or a few, may be at fault
	maxThrottles = 10 // answered that it wants to be left alone
)

// abandonOrigin ends what waits at an origin: its URLs share the failure, and wait for another run. It may be called
// again for what has come back to the queue meanwhile.
func (e *Engine) abandonOrigin(origin string, l abandonment) error {
	if e.origins.abandon(origin, l) {
		e.listener.gaveUp(origin, fmt.Sprintf("%s: %s", l.failure, l.why))
	}
	e.origins.rulesCame(origin)
	for slice := range e.slicesOf(origin) {
		if err := e.abandonAt(slice, origin, l); err != nil {
			return err
		}
	}
	return nil
}

// abandonAt is abandonOrigin for what waits in a slice of the origin's host.
func (e *Engine) abandonAt(slice, origin string, l abandonment) error {
	all, err := e.takeAll(slice, origin)
	if err != nil {
		return err
	}
	for _, it := range all {
		switch {
		case it.Robots == "":
			if err := e.failItem(slice, it, l); err != nil {
				return err
			}
		case it.Robots != origin: // another's rules were to be had here
			if err := e.abandonOrigin(it.Robots, lostRules(l)); err != nil {
				return err
			}
		}
	}
	e.frontier.Unpark(slice, origin)
	return nil
}

// takeAll takes what waits at an origin out of the frontier and onto the abandoned queue, so that a checkpoint has it
// in one or the other. What waits at a host, or a slice of one, that is on its way to another node, or from one, stays
// while that reads it, but for fetches of robots.txt, which do not move: if it comes back, its visits find the origin
// given up.
func (e *Engine) takeAll(slice, origin string) (items []item.Item, err error) {
	return e.takeMatching(slice, func(it *item.Item) bool {
		return (it.Robots != "" || e.ours(slice)) && originOf(it.URL) == origin
	})
}

func (e *Engine) takeMatching(host string, match func(*item.Item) bool) (items []item.Item, err error) {
	e.frontier.Gather(host) // or Take would read it with the ledger's gate held
	err = e.ledger.Within(func() error {
		items = e.frontier.Take(host, match)
		for i := range items {
			it := &items[i]
			it.Told = it.Told || e.ends.takeReported(it.URL)
			if err := e.abandonItem(*it); err != nil {
				return err
			}
		}
		return nil
	})
	return items, err
}

// abandonItem keeps an item that waits for the next run.
func (e *Engine) abandonItem(it item.Item) error {
	if it.Robots != "" {
		return nil
	}
	it.Told = true
	return e.files.abandoned.Put(&it)
}

// lostRules is why an origin is given up whose robots.txt cannot be had.
func lostRules(l abandonment) abandonment { return abandonment{l.failure, "robots.txt: " + l.why} }

func originOf(url string) string {
	u, err := weburl.Parse(url)
	if err != nil {
		return ""
	}
	return u.Origin()
}

// failVisit is failItem for a visit that is under way.
func (w *worker) failVisit(v *frontier.Visit, l abandonment) error {
	b := batch{settles: v.URL, visit: w.batch.visit}
	w.batch.visit = nil
	return w.failWith(&b, hostOf(v), v.Item, l)
}

// failItem records a URL as failed whose origin was given up, and which is on the abandoned queue. For the journal it
// still waits: the next run tries it again.
func (e *Engine) failItem(host string, it item.Item, l abandonment) error {
	return e.failWith(&batch{ended: []string{it.URL}}, item.HostOfSlice(host), it, l)
}

// failWith is failItem with a batch that says which URL it ends.
func (e *Engine) failWith(b *batch, host string, it item.Item, l abandonment) error {
	rec := &page.Record{URL: it.URL, Final: it.URL, From: it.From, Seed: it.Seed, Path: it.Path, Depth: int(it.Depth),
		Time: e.cfg.Now(), Tries: int(it.Tries), Failure: l.failure, Detail: l.why}
	b.records = []*page.Record{rec}
	if !it.Told {
		b.skips = []page.Skip{{URL: it.URL, Host: host, From: it.From, Depth: int(it.Depth), Time: rec.Time,
			Rule: ruleFailed, Why: string(l.failure) + ": " + l.why}}
	}
	b.entries.Reported(it.URL)
	err := e.ledger.Within(func() error {
		if b.settles != "" { // as its visit ends: a checkpoint has one or the other
			if err := e.abandonItem(it); err != nil {
				return err
			}
		}
		return e.apply(b)
	})
	if err != nil {
		return err
	}
	e.tellSkips(b)
	e.stats.Forsaken(stats.Visit{Host: host, Failure: string(l.failure)})
	e.listener.visited(rec)
	return nil
}
