package crawl

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/wait"
	"kumo/internal/base/weburl"
	"kumo/internal/cluster/member"
	"kumo/internal/content/policy"
	"kumo/internal/state/entry"
	"kumo/internal/state/frontier"
	"kumo/internal/state/ledger"
	"kumo/internal/state/seen"
	"kumo/internal/state/transfer"
)

// recrawls finds URLs in the URL database that are due again, and queues them.
type recrawls struct {
	added     chan struct{} // signaled when URLs were queued
	ended     chan struct{} // closed when no more will be queued
	arrivals  *hostArrivals
	elsewhere func(host string) bool // another node owns the host, and so its due URLs; may be nil
	complete  atomic.Int64           // with other nodes: 1 + the arrivals before a scan that found all URLs of this node

	mu   sync.Mutex // guards next
	next time.Time  // due time of the next URL, by the last scan

	cfg        *Config
	known      *known
	claims     *claims // nil where links are not claimed
	feed       *seedFeed
	rules      *policy.Rules
	scopeSeeds *scopeSeeds
	hosts      *hosts
	names      *names
	ranks      *ranking
	abandons   *abandoner
	transfer   *transfer.Endpoint
	frontier   *frontier.Frontier
	ledger     *ledger.Ledger
	listener   Listener
}

const (
	minScanInterval = time.Second
	scanShare       = 20 // a scan takes at most this part of the time
)

// keepRequeuing queues due URLs: once, or until the context ends.
func (s *recrawls) keepRequeuing(ctx context.Context) error {
	if s.known.db == nil || !s.cfg.Recrawl.Enabled() || !s.feed.awaitScope(ctx) {
		return nil
	}
	if s.claims != nil {
		return s.reportOldVisits(ctx)
	}
	start, retry := s.cfg.Now(), minScanInterval
	for {
		began, arrived, now := time.Now(), s.arrivals.count.Load(), s.cfg.Now()
		if !s.cfg.Recrawl.Continuous {
			now = start // a page is visited at most once in a run
		}
		next, open, err := s.requeue(ctx, now)
		if canceled(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("find URLs that are due again: %w", err)
		}
		pause := next.Sub(s.cfg.Now())
		switch {
		case open > 0: // this node has just joined, or the hosts have no owner
			retry = min(2*retry, maxOpenRetry)
			pause = min(pause, retry)
		case s.cfg.Recrawl.Continuous:
			retry = minScanInterval
		case s.hosts.router == nil:
			close(s.ended)
			return nil
		default:
			s.complete.Store(1 + arrived)
			pause = maxWait // until a host arrives
		}
		if !s.awaitScan(ctx, pause, max(minScanInterval, scanShare*time.Since(began))) {
			return nil
		}
	}
}

const (
	maxOpenRetry = time.Minute
	maxWait      = 365 * 24 * time.Hour
)

// awaitScan waits until it is time for a scan, or a host arrives from another node, but at least for the given time. It
// returns false if ctx ends.
func (s *recrawls) awaitScan(ctx context.Context, pause, least time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(least):
	}
	select {
	case <-ctx.Done():
		return false
	case <-s.arrivals.signal:
	case <-time.After(pause - least):
	}
	return true
}

// isComplete reports whether no URL of this node will be queued again in this run. It is for crawls of several nodes.
func (s *recrawls) isComplete() bool {
	if s.known.db == nil || !s.cfg.Recrawl.Enabled() || s.hosts.router == nil {
		return true
	}
	return !s.cfg.Recrawl.Continuous && s.complete.Load() == 1+s.arrivals.count.Load()
}

// hostArrivals counts transfers of hosts from other nodes, whose URLs may be due.
type hostArrivals struct {
	count  atomic.Int64
	signal chan struct{} // capacity 1
}

// counting returns a function that counts a transfer before it calls f, which may be nil.
func (a *hostArrivals) counting(f func(member.Transfer, []string)) func(member.Transfer, []string) {
	return func(t member.Transfer, hosts []string) {
		a.count.Add(1)
		wait.Wake(a.signal)
		if f != nil {
			f(t, hosts)
		}
	}
}

// awaitDue waits, with the queues empty, until URLs were queued again. It returns false when none will be.
func (s *recrawls) awaitDue(handing context.Context) bool {
	if s.known.db == nil || !s.cfg.Recrawl.Enabled() || s.cfg.KeepOpen {
		return false
	}
	s.mu.Lock()
	next := s.next
	s.mu.Unlock()
	if s.cfg.Recrawl.Continuous && !next.IsZero() {
		s.listener.Idle(next)
	}
	select {
	case <-handing.Done():
		return false
	case <-s.added:
		return true
	case <-s.ended:
		return s.frontier.Counts().URLs > 0
	}
}

// requeue queues all URLs that are due at a time and that the crawl's rules still admit. It returns when the next one
// is due, and the number of due URLs whose hosts may become this node's without another transfer.
func (s *recrawls) requeue(ctx context.Context, now time.Time) (next time.Time, open int, err error) {
	r := &s.cfg.Recrawl
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
	again := requeueBatch{recrawls: s, now: now, added: map[string]bool{}}
	for entry, err := range s.known.db.Visited(like) {
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return next, again.open, err
		}
		if entry.Waits() {
			continue
		}
		if due := r.IntervalFor(entry.URL).Due(visitsOf(&entry.Meta)); due.After(now) {
			next = earlier(next, due)
		} else if err := again.add(&entry); err != nil {
			return next, again.open, err
		}
	}
	err = again.flush()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = next
	return next, again.open, err
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// A requeueBatch collects due URLs.
type requeueBatch struct {
	recrawls *recrawls
	now      time.Time
	due      []entry.Candidate
	added    map[string]bool // the URLs of due: one may be found again before the database has it as queued
	// URLs of hosts that are not away, and whose owner is not known now, or is this node and still receives them
	open int
}

func (r *requeueBatch) add(met *seen.Entry) error {
	if r.added[met.URL] {
		return nil
	}
	u, err := weburl.Parse(met.URL)
	if err != nil || !u.IsHTTP() {
		return nil //nolint:nilerr // cannot happen: the URL was visited
	}
	it := item.Item{URL: met.URL, From: met.From, Depth: met.Depth, Kind: page.Kind(met.Kind),
		ScopeSeed: r.recrawls.scopeSeeds.all.Has(met.URL),
		Recrawl:   true}
	if it.Kind == page.Seed && !it.ScopeSeed {
		it.Kind = page.Anchor
	}
	link := linkTo(&it)
	link.Fetched = true
	if r.recrawls.rules.JudgeURL(u, link).Refused() || r.recrawls.rules.TooDeep(u, it.Depth) {
		return nil // a rule that was added later
	}
	r.added[met.URL] = true
	r.due = append(r.due, entry.Candidate{Host: u.Host(), Item: it})
	if len(r.due) < maxBatchLinks {
		return nil
	}
	return r.flush()
}

func (r *requeueBatch) flush() error {
	if len(r.due) == 0 {
		return nil
	}
	err := r.recrawls.ledger.Within(func() error {
		var enc entry.Encoder
		hosts := r.recrawls.hosts
		r.due = slices.DeleteFunc(r.due, func(c entry.Candidate) bool {
			host := hosts.sliceOf(&c)
			if hosts.ours(host) {
				return false
			}
			// A host that is away comes back by a transfer, after which there is another scan.
			if !r.recrawls.transfer.IsAway(host) && (r.recrawls.elsewhere == nil || !r.recrawls.elsewhere(host)) {
				r.open++
			}
			return true
		})
		for i := range r.due {
			c := &r.due[i]
			c.Host = r.recrawls.names.intern(c.Host)
			r.recrawls.ranks.lift(&c.Item)
			r.recrawls.ranks.rank(&c.Item)
			enc.Recrawl(&c.Item, r.now)
			r.recrawls.known.db.UpdateMeta(c.Item.URL, seen.Meta{Queued: r.now})
		}
		r.recrawls.ledger.Enqueue(enc.Writer)
		for i := range r.due {
			r.recrawls.frontier.Push(hosts.sliceOf(&r.due[i]), r.due[i].Item)
		}
		r.recrawls.transfer.Committed(r.due)
		return nil
	})
	if err != nil {
		return err
	}
	select {
	case r.recrawls.added <- struct{}{}:
	default:
	}
	lost := r.due
	r.due = nil
	clear(r.added)
	return r.recrawls.abandons.failAbandoned(lost)
}
