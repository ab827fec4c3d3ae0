package frontier

import (
	"cmp"
	"time"

	"kumo/internal/base/item"
)

// A politeness decides when a host may be visited, from visit results and delays. The frontier's lock guards it.
type politeness struct {
	delay     time.Duration
	maxDelay  time.Duration // upper limit of the delay that a host requests
	overrides func(host string) HostConfig
	perHost   int // connections to one host
	slices    int
	retryWait time.Duration
	maxWait   time.Duration
	slowAfter time.Duration
	resumed   time.Time // when the items of an earlier process were restored; zero if there are none
}

// A clock records when a host may be visited next, and why.
type clock struct {
	next           time.Time     // no visit begins earlier
	lastEnd        time.Time     // end of the last request; zero before the first
	requestedDelay time.Duration // delay that the host requests
	own            HostConfig
	session        int32 // visits in its session; 0 before the first
	streak         int8  // visits in a row without giving others a turn
	suspect        bool  // failed or was slow
	backingOff     bool  // backs off after a failure, or at the host's request
	failures       backoff
	throttles      backoff
}

// backoff counts events in a row. Responses to requests that were under way when the last event was counted belong to
// the same event.
type backoff struct {
	n    int
	last time.Time
}

func (b *backoff) count(started, now time.Time) {
	if b.n == 0 || started.After(b.last) {
		b.n++
		b.last = now
	}
}

// wait doubles from first with each event, up to most.
func (b *backoff) wait(first, most time.Duration) time.Duration {
	shift := min(max(b.n-1, 0), 20)
	return min(first<<shift, most)
}

// postpone moves the next time later, never earlier.
func (c *clock) postpone(until time.Time) {
	if until.After(c.next) {
		c.next = until
	}
}

func newPoliteness(cfg *Config) *politeness {
	return &politeness{delay: cfg.Delay, maxDelay: cfg.MaxDelay, overrides: cfg.Overrides, perHost: cfg.PerHost,
		slices: cfg.Slices, retryWait: cfg.RetryWait, maxWait: cfg.MaxWait, slowAfter: cfg.SlowAfter}
}

// Delays are the delays of Config. They may change at any time.
type Delays struct {
	Delay     time.Duration
	AddrDelay time.Duration
	MaxDelay  time.Duration
	Overrides func(host string) HostConfig
}

// set changes the delays. It returns the old default delay, and whether hosts' next times change.
func (p *politeness) set(d Delays) (before time.Duration, changed bool) {
	was := *p
	p.delay, p.maxDelay, p.overrides = d.Delay, d.MaxDelay, d.Overrides
	setDefault(&p.maxDelay, defaultMaxDelay)
	p.delay, p.maxDelay = scaleDelay(p.delay, p.slices), scaleDelay(p.maxDelay, p.slices)
	// a requested delay that exceeded the old limit was not stored
	return was.delay, p.delay != was.delay || p.maxDelay < was.maxDelay || was.overrides != nil || p.overrides != nil
}

// configure sets the host's own configuration.
func (p *politeness) configure(c *clock, key string) {
	if p.overrides == nil {
		return
	}
	c.own = p.overrides(item.HostOfSlice(key))
	c.own.Delay = scaleDelay(c.own.Delay, p.slices)
	if c.own.PerHost > 0 {
		c.own.PerHost = max(c.own.PerHost/p.slices, 1)
	}
}

// baseDelay returns a host's delay, without the delay that it requests.
func (p *politeness) baseDelay(c *clock) time.Duration {
	if c.own.HasDelay {
		return c.own.Delay
	}
	return p.delay
}

func (p *politeness) delayOf(c *clock) time.Duration { return max(p.baseDelay(c), c.requestedDelay) }

// baseDelayOf is baseDelay for a host that is not in memory. If its name is unknown, it returns the default.
func (p *politeness) baseDelayOf(key string) time.Duration {
	if p.overrides == nil || key == "" {
		return p.delay
	}
	var c clock
	p.configure(&c, key)
	return p.baseDelay(&c)
}

// connections returns the number of connections that a host may have.
func (p *politeness) connections(c *clock) int {
	if c.own.PerHost > 0 {
		return c.own.PerHost
	}
	return p.perHost
}

// bound limits the delay that a host requests.
func (p *politeness) bound(asked time.Duration) time.Duration { return min(asked, max(p.maxDelay, 0)) }

// initNext sets the next time of a new host to now, or later if an earlier process may have visited the host just
// before.
func (p *politeness) initNext(c *clock, now time.Time) {
	c.next = now
	if base := p.baseDelay(c); !p.resumed.IsZero() && now.Sub(p.resumed) <= base {
		c.next = p.resumed.Add(base)
	}
}

// setRequestedDelay sets the delay that a host requests.
func (p *politeness) setRequestedDelay(c *clock, delay time.Duration) {
	c.requestedDelay = delay
	if !c.lastEnd.IsZero() {
		c.postpone(c.lastEnd.Add(p.delayOf(c)))
	}
}

// begin sets the next time at the start of a visit, so that a second connection keeps the delay too.
func (p *politeness) begin(c *clock, now time.Time) {
	c.next = now.Add(p.delayOf(c))
}

// applyResult sets the next time after a visit with a request, and whether the host is a suspect and backs off. It
// returns the wait. alone means that no other visit to the host is under way.
func (p *politeness) applyResult(c *clock, v *Visit, r Result, now time.Time, alone bool) (wait time.Duration) {
	wait = p.delayOf(c)
	c.lastEnd = now
	switch r.Outcome {
	case Answered:
		c.failures, c.throttles = backoff{}, backoff{}
		c.suspect = cmp.Or(r.Took, now.Sub(v.Started)) > p.slowAfter
	case Throttled:
		c.failures = backoff{}
		c.throttles.count(v.Started, now)
		wait = max(wait, min(r.RetryAfter, p.maxWait))
		if r.RetryAfter == 0 || c.throttles.n > 1 {
			wait = max(wait, c.throttles.wait(max(p.retryWait, p.delayOf(c)), p.maxWait))
		}
	case Failed:
		c.suspect = true
		c.failures.count(v.Started, now)
		wait = max(wait, c.failures.wait(p.retryWait, p.maxWait))
	}
	if c.next.Equal(v.nextSet) && p.keepsTurn(c, wait, alone) { // no other visit has set the clock since
		c.next = v.nextBefore
	} else {
		c.postpone(now.Add(wait))
	}
	return wait
}

// burst is the number of visits in a row that a host without a delay may have.
const burst = 8

// keepsTurn reports whether a host that was just visited goes before the others again. Hosts without a delay are always
// due. If they took turns after each URL, a connection would be closed by the time of the host's next turn.
func (p *politeness) keepsTurn(c *clock, wait time.Duration, alone bool) bool {
	if wait > 0 || p.delayOf(c) > 0 || !alone || c.streak == burst-1 {
		c.streak = 0
		return false
	}
	c.streak++
	return true
}

// retime adjusts the next time of a host in memory after the delays have changed.
func (p *politeness) retime(h *host, was time.Duration) {
	c := &h.clock
	if c.own.HasDelay {
		was = c.own.Delay
	}
	was = max(was, c.requestedDelay)
	c.own = HostConfig{}
	p.configure(c, h.key)
	c.requestedDelay = p.bound(c.requestedDelay)
	switch delay := p.delayOf(c); {
	case h.visits.n > 0: // the delay counts from the end of the visit; next is for a second connection
		c.next = c.next.Add(min(delay-was, 0))
	case c.backingOff, h.hasTurn():
		if !c.lastEnd.IsZero() {
			c.postpone(c.lastEnd.Add(delay))
		}
	case !c.lastEnd.IsZero() && (delay > was || c.next.Equal(c.lastEnd.Add(was))):
		c.next = c.lastEnd.Add(delay)
	}
}
