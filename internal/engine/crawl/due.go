package crawl

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/state/entry"
	"kumo/internal/state/seen"
)

// A schedule is when recrawls are.
type schedule struct {
	added chan struct{} // something was taken for a recrawl
	ended chan struct{} // closed when nothing more will be

	mu   sync.Mutex // guards next
	next time.Time  // when something is due, as the last look has it
}

func newSchedule() *schedule {
	return &schedule{added: make(chan struct{}, 1), ended: make(chan struct{})}
}

const (
	leastLook = time.Second
	lookShare = 20 // a look for what is due may take this part of the time
)

// keepDue hands what is due to the frontier: once, or again and again until the context ends.
func (e *Engine) keepDue(ctx context.Context) error {
	if e.known.db == nil || !e.cfg.Recrawl.On() || !e.roots.feed.scoped(ctx) {
		return nil
	}
	for {
		began := time.Now()
		next, err := e.requeue(ctx)
		if canceled(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("look for what is to be visited again: %w", err)
		}
		if !e.cfg.Recrawl.Keep {
			close(e.schedule.ended)
			return nil
		}
		wait := max(next.Sub(e.cfg.Now()), leastLook, lookShare*time.Since(began))
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// awaitDue waits, when nothing else waits, until something is due. It returns false when nothing will be.
func (e *Engine) awaitDue(handing context.Context) bool {
	if e.known.db == nil || !e.cfg.Recrawl.On() || e.cfg.Stay {
		return false
	}
	e.schedule.mu.Lock()
	next := e.schedule.next
	e.schedule.mu.Unlock()
	if e.cfg.Recrawl.Keep && !next.IsZero() {
		e.listener.idle(next)
	}
	select {
	case <-handing.Done():
		return false
	case <-e.schedule.added:
		return true
	case <-e.schedule.ended:
		return e.frontier.Counts().URLs > 0
	}
}

// requeue takes what is due, and what the crawl's rules still let in, into the frontier. It returns when the next is
// due.
func (e *Engine) requeue(ctx context.Context) (next time.Time, err error) {
	now, r := e.cfg.Now(), &e.cfg.Recrawl
	next = now.Add(r.ShortestWait())
	like := func(m *seen.Meta) bool {
		switch {
		case m.Waits(), visitsOf(m).Retired():
			return false
		case m.Due.IsZero(), !m.Due.After(now), m.Due.Sub(m.Fetched) > r.LeastMax():
			return true
		}
		next = earlier(next, m.Due)
		return false
	}
	again := requeuing{Engine: e, now: now, added: map[string]bool{}}
	for entry, err := range e.known.db.Visited(like) {
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return next, err
		}
		if entry.Waits() {
			continue
		}
		if due := r.Of(entry.URL).Due(visitsOf(&entry.Meta)); due.After(now) {
			next = earlier(next, due)
		} else if err := again.add(&entry); err != nil {
			return next, err
		}
	}
	err = again.flush()
	e.schedule.mu.Lock()
	defer e.schedule.mu.Unlock()
	e.schedule.next = next
	return next, err
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// A requeuing collects what is due.
type requeuing struct {
	*Engine
	now   time.Time
	due   []entry.Candidate
	added map[string]bool // the URLs of due: one may come again before the database knows that it is taken
}

func (r *requeuing) add(met *seen.Entry) error {
	if r.added[met.URL] {
		return nil
	}
	u, err := weburl.Parse(met.URL)
	if err != nil || !u.Web() {
		return nil //nolint:nilerr // it was visited, so it was one
	}
	it := item.Item{URL: met.URL, From: met.From, Depth: met.Depth, Kind: page.Kind(met.Kind),
		Root:    r.roots.all.Has(met.URL),
		Recrawl: true}
	if it.Kind == page.Seed && !it.Root {
		it.Kind = page.Anchor
	}
	link := linkTo(&it)
	link.Fetched = true
	if r.rules.JudgeURL(u, link).Refused() || r.rules.TooDeep(u, it.Depth) {
		return nil // a rule of today leaves it out
	}
	r.added[met.URL] = true
	r.due = append(r.due, entry.Candidate{Host: u.Host(), Item: it})
	if len(r.due) < maxKept {
		return nil
	}
	return r.flush()
}

func (r *requeuing) flush() error {
	if len(r.due) == 0 {
		return nil
	}
	err := r.ledger.Within(func() error {
		var enc entry.Encoder
		r.due = slices.DeleteFunc(r.due, func(c entry.Candidate) bool { return !r.ours(r.sliceOf(&c)) })
		for i := range r.due {
			c := &r.due[i]
			c.Host = r.names.intern(c.Host)
			r.ranks.lift(&c.Item)
			r.ranks.rank(&c.Item)
			enc.Recrawl(&c.Item, r.now)
			r.known.db.UpdateMeta(c.Item.URL, seen.Meta{Queued: r.now})
		}
		r.ledger.Enqueue(enc.Writer)
		for i := range r.due {
			r.frontier.Push(r.sliceOf(&r.due[i]), r.due[i].Item)
		}
		r.peers.transfer.Committed(r.due)
		return nil
	})
	if err != nil {
		return err
	}
	select {
	case r.schedule.added <- struct{}{}:
	default:
	}
	lost := r.due
	r.due = nil
	clear(r.added)
	return r.failAbandoned(lost)
}
