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

// Limits are how much in a row an origin may do before it is abandoned.
type Limits struct {
	Refusals  int // not connected, or not by TLS
	Silences  int // connected, but no answer: one URL, or a few, may be at fault
	Throttles int // answers that ask to slow down
}

// An Abandonment is why an origin was abandoned.
type Abandonment struct {
	Failure page.Failure
	Why     string
}

// Of origins so many are remembered. Forgetting one costs a few requests more until it is abandoned, and the words why
// it was.
const (
	maxHealth = 1 << 14
	maxWhys   = 1 << 12
)

// Origins has the health of the origins, a scheme and a host each, that a run has visited, and those that it has
// abandoned: all of them, as none is to be asked again. It is the origin and not the host that is abandoned: where
// nothing answers at https, http may.
type Origins struct {
	limits Limits
	salt   maphash.Seed
	now    func() time.Time
	began  time.Time // see stamp

	any atomic.Bool // some origin is abandoned, so that most questions take no lock

	mu        sync.Mutex // guards what follows
	health    *bounded.Recent[uint64, Health]
	abandoned *bounded.Counts // index in failures, from 1
	failures  []page.Failure
	whys      *bounded.Recent[string, string]
	reach     Reach
}

// A Reach is how many origins a run has reached, and not.
type Reach struct {
	Answered  int64
	Abandoned int64 // abandoned
	Lost      int64 // of these, had answered before
}

// NewOrigins returns Origins that are not visited yet.
func NewOrigins(l Limits, now func() time.Time) *Origins {
	return &Origins{limits: l, salt: maphash.MakeSeed(), now: now, began: now(), abandoned: bounded.NewCounts(),
		health: bounded.NewRecent[uint64, Health](maxHealth), whys: bounded.NewRecent[string, string](maxWhys)}
}

// Hash returns the hash by which an origin, or a host, is remembered.
func (o *Origins) Hash(name string) uint64 { return maphash.String(o.salt, name) }

// Health is what an origin did in a row.
type Health struct {
	Refusals, silences, throttles uint16
	Answered                      bool  // before
	since, last                   int64 // stamps of the first event and the last
}

// stamp is a time in nanoseconds since the run began, never 0: by the monotonic clock, so that setting the wall clock
// neither abandons an origin too early nor keeps failures from being counted.
func (o *Origins) stamp(t time.Time) int64 { return max(int64(t.Sub(o.began)), 0) + 1 }

// Failing returns the health of an origin, and the times of the first and the last failure in a row; now if there is
// none.
func (o *Origins) Failing(origin string, now time.Time) (h Health, first, last time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	h, _ = o.health.Get(o.Hash(origin))
	if h.since == 0 {
		return h, now, now
	}
	return h, o.began.Add(time.Duration(h.since - 1)), o.began.Add(time.Duration(h.last - 1))
}

// Judge counts the outcome of a visit that started at a time, and reports whether that was too much and the origin is
// to be abandoned. Visits that were under way at the last event are part of it. An excused failure counts, but is
// never too much.
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
	case int(h.Refusals) >= o.limits.Refusals, int(h.silences) >= o.limits.Silences:
		return Abandonment{v.Failure, v.Detail}, true
	case int(h.throttles) >= o.limits.Throttles:
		return Abandonment{page.Unreachable, "its host asked to be left alone too often"}, true
	}
	return Abandonment{}, false
}

// Abandon marks an origin as abandoned, and reports whether that is news.
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
	if a.Failure != page.Private { // that is the crawl's own rule, and no host's doing
		o.reach.Abandoned++
	}
	if h, _ := o.health.Get(key); h.Answered {
		o.reach.Lost++
	}
	o.health.Delete(key)
	o.any.Store(true)
	return true
}

// Abandoned returns why an origin was abandoned, and whether it was.
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
	a := Abandonment{o.failures[i-1], "given up earlier in this run"}
	if why, known := o.whys.Get(origin); known {
		a.Why = why
	}
	return a, true
}

// AnyAbandoned reports whether an origin was abandoned.
func (o *Origins) AnyAbandoned() bool { return o.any.Load() }

// Reach returns what was reached so far.
func (o *Origins) Reach() Reach {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.reach
}
