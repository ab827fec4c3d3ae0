package visit

import (
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"kumo/internal/base/bounded"
	"kumo/internal/base/page"
	"kumo/internal/state/frontier"
)

// Limits are the limits of failures in a row before an origin is abandoned.
type Limits struct {
	Refusals  int // failed TCP or TLS connections
	Silences  int // connections without an answer: only some URLs may be at fault
	Throttles int // answers that ask for fewer requests
}

// An Abandonment is the reason why an origin was abandoned.
type Abandonment struct {
	Failure page.Failure
	Why     string
}

// Limits of the origins that are remembered. A forgotten origin gets a few more requests until it is abandoned, or
// loses the text of its reason.
const (
	maxHealth = 1 << 14
	maxWhys   = 1 << 12
)

// Origins tracks the health of the origins (scheme and host) that a run has visited, and the abandoned ones. All
// abandoned ones are remembered, so that none is visited again. Origins are abandoned rather than hosts: if https does
// not answer, http may.
type Origins struct {
	limits Limits
	salt   maphash.Seed
	now    func() time.Time
	began  time.Time // see stamp

	any atomic.Bool // an origin is abandoned; if false, look-ups need no lock

	mu        sync.Mutex // guards the fields below
	health    *bounded.Recent[uint64, Health]
	abandoned *bounded.Counts // by origin: index in failures, from 1
	failures  []page.Failure
	whys      *bounded.Recent[string, string]
	reach     Reach
}

// A Reach counts the origins that a run has reached or abandoned.
type Reach struct {
	Answered  int64
	Abandoned int64 // abandoned
	Lost      int64 // of these, origins that had answered before
}

// NewOrigins returns Origins without visits.
func NewOrigins(l Limits, now func() time.Time) *Origins {
	return &Origins{limits: l, salt: maphash.MakeSeed(), now: now, began: now(), abandoned: bounded.NewCounts(),
		health: bounded.NewRecent[uint64, Health](maxHealth), whys: bounded.NewRecent[string, string](maxWhys)}
}

// Hash returns the hash under which an origin or host is stored.
func (o *Origins) Hash(name string) uint64 { return maphash.String(o.salt, name) }

// Health is an origin's failures in a row.
type Health struct {
	Refusals, silences, throttles uint16
	Answered                      bool  // at least once before
	since, last                   int64 // stamps of the first and the last failure
}

// stamp converts a time to nanoseconds since the run began, never 0. It uses the monotonic clock, so that setting the
// wall clock neither abandons an origin too early nor keeps failures from being counted.
func (o *Origins) stamp(t time.Time) int64 { return max(int64(t.Sub(o.began)), 0) + 1 }

// Failing returns the health of an origin, and the times of the first and the last failure in a row; both are now if
// there is none.
func (o *Origins) Failing(origin string, now time.Time) (h Health, first, last time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	h, _ = o.health.Get(o.Hash(origin))
	if h.since == 0 {
		return h, now, now
	}
	return h, o.began.Add(time.Duration(h.since - 1)), o.began.Add(time.Duration(h.last - 1))
}

// Judge counts the outcome of a visit, and reports whether its origin must be abandoned. A visit that started before
// the last counted failure belongs to that failure and is not counted again. An excused failure counts, but does not
// cause the origin to be abandoned.
func (o *Origins) Judge(origin string, started time.Time, v *Verdict, excused bool) (Abandonment, bool) {
	if v.Outcome == frontier.NoRequest {
		return Abandonment{}, false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	key := o.Hash(origin)
	h, known := o.health.Get(key)
	if v.Outcome == frontier.Answered {
		if fresh := (Health{Answered: true}); !known || h != fresh {
			o.health.Put(key, fresh)
		}
		if !h.Answered {
			o.reach.Answered++
		}
		return Abandonment{}, false
	}
	if o.stamp(started) > h.last {
		switch {
		case v.Outcome == frontier.Throttled:
			h.throttles++
		case v.Failure.AffectsHost():
			h.Refusals++
		default:
			h.silences++
		}
		h.last = o.stamp(o.now())
		if h.since == 0 {
			h.since = h.last
		}
		o.health.Put(key, h)
	}
	switch {
	case excused:
	case v.Outcome == frontier.Failed && v.Failure.AffectsHost() && int(h.Refusals) >= o.limits.Refusals,
		v.Outcome == frontier.Failed && !v.Failure.AffectsHost() && int(h.silences) >= o.limits.Silences:
		return Abandonment{v.Failure, v.Detail}, true
	case int(h.throttles) >= o.limits.Throttles:
		return Abandonment{page.Unreachable, "its host asked for fewer requests too often"}, true
	}
	return Abandonment{}, false
}

// Abandon marks an origin as abandoned, and returns false if it was before.
func (o *Origins) Abandon(origin string, a Abandonment) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.abandoned.Get(origin) != 0 {
		return false
	}
	origin = strings.Clone(origin)
	i := slices.Index(o.failures, a.Failure)
	if i < 0 {
		i = len(o.failures)
		o.failures = append(o.failures, a.Failure)
	}
	o.abandoned.Set(origin, uint32(i+1))
	o.whys.Put(origin, a.Why)
	key := o.Hash(origin)
	if a.Failure != page.Private { // a rule of the crawl, not a failure of the host
		o.reach.Abandoned++
	}
	if h, _ := o.health.Get(key); h.Answered {
		o.reach.Lost++
	}
	o.health.Delete(key)
	o.any.Store(true)
	return true
}

// Abandoned reports whether an origin was abandoned, and returns the reason.
func (o *Origins) Abandoned(origin string) (Abandonment, bool) {
	if !o.any.Load() {
		return Abandonment{}, false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	i := o.abandoned.Get(origin)
	if i == 0 {
		return Abandonment{}, false
	}
	a := Abandonment{o.failures[i-1], "abandoned earlier in this run"}
	if why, known := o.whys.Get(origin); known {
		a.Why = why
	}
	return a, true
}

// AnyAbandoned reports whether any origin was abandoned.
func (o *Origins) AnyAbandoned() bool { return o.any.Load() }

// Reach returns the counts so far.
func (o *Origins) Reach() Reach {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.reach
}
