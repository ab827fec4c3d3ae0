package crawl

import (
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"kumo/internal/base/bounded"
	"kumo/internal/base/page"
	"kumo/internal/content/robots"
	"kumo/internal/state/frontier"
)

// What is kept by origin is bounded; forgetting costs this:
const (
	maxHealth  = 1 << 14 // a few requests more, until an origin is given up
	maxAwaited = 1 << 15 // a robots.txt that is asked for twice
	maxListed  = 1 << 15 // sitemaps that are offered again, though seen knows them
)

// origins is what a run knows of the origins, a scheme and a host each, that it has met.
type origins struct {
	salt  maphash.Seed
	now   func() time.Time
	began time.Time // see stamp
	line  *line

	anyAbandoned atomic.Bool // so that most questions take no lock

	mu        sync.Mutex // guards what follows
	health    *bounded.Recent[uint64, originHealth]
	abandoned *abandonedOrigins
	awaited   *bounded.Recent[uint64, bool]  // whose robots.txt is on its way
	listed    *bounded.Recent[uint64, int32] // how deep the visits were for which sitemaps were taken in
	reach     Reach
}

func newOrigins(now func() time.Time, l *line) *origins {
	return &origins{salt: maphash.MakeSeed(), now: now, began: now(), line: l, abandoned: newAbandonedOrigins(),
		health:  bounded.NewRecent[uint64, originHealth](maxHealth),
		awaited: bounded.NewRecent[uint64, bool](maxAwaited), listed: bounded.NewRecent[uint64, int32](maxListed)}
}

// hash is a name as the maps of what was met lately have it.
func (o *origins) hash(name string) uint64 { return maphash.String(o.salt, name) }

// originHealth is what an origin did in a row.
type originHealth struct {
	refusals, silences, throttles uint16
	answered                      bool  // before
	since, last                   int64 // stamps of the first event and the last
}

// stamp is a time in nanoseconds since the run began, never 0: by the monotonic clock, so that setting the wall clock
// neither gives an origin up too early nor keeps failures from being counted.
func (o *origins) stamp(t time.Time) int64 { return max(int64(t.Sub(o.began)), 0) + 1 }

// at is the time of a stamp.
func (o *origins) at(stamp int64) time.Time { return o.began.Add(time.Duration(stamp - 1)) }

func (h *originHealth) count(f visitOutcome) {
	switch {
	case f.outcome == frontier.Throttled:
		h.throttles++
	case f.failure.OfHost():
		h.refusals++
	default:
		h.silences++
	}
}

func (o *origins) healthOf(origin string) originHealth {
	o.mu.Lock()
	defer o.mu.Unlock()
	h, _ := o.health.Get(o.hash(origin))
	return h
}

// A Reach is how many origins, a scheme and a host each, a run has reached, and not.
type Reach struct {
	Answered int64
	GaveUp   int64 // given up
	Fell     int64 // of these, had answered before
}

// Reach is what this run has reached so far.
func (e *Engine) Reach() Reach {
	o := e.abandons.origins
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.reach
}

// judge counts how a visit went for its origin and says whether that is too much. What was under way at the last event
// is part of it.
func (o *origins) judge(origin string, v *frontier.Visit, f visitOutcome) (abandonment, bool) {
	switch f.outcome {
	case frontier.NoRequest:
		return abandonment{}, false
	case frontier.Answered:
		o.answered(origin)
		if !f.came.IsZero() {
			o.line.worked(f.came, origin, o.hash(origin))
		}
		return abandonment{}, false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	key := o.hash(origin)
	h, _ := o.health.Get(key)
	if o.stamp(v.Started) > h.last {
		h.count(f)
		h.last = o.stamp(o.now())
		if h.since == 0 {
			h.since = h.last
		}
		o.health.Put(key, h)
	}
	switch {
	case f.excused:
	case h.refusals >= maxRefusals, h.silences >= maxSilences:
		return abandonment{f.failure, f.detail}, true
	case h.throttles >= maxThrottles:
		return abandonment{page.Unreachable, "its host asked to be left alone too often"}, true
	}
	return abandonment{}, false
}

// answered records that an origin has answered.
func (o *origins) answered(origin string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := o.hash(origin)
	was, known := o.health.Get(key)
	if fresh := (originHealth{answered: true}); !known || was != fresh {
		o.health.Put(key, fresh)
	}
	if !was.answered {
		o.reach.Answered++
	}
}

// abandon notes that an origin is given up, and reports whether that is news.
func (o *origins) abandon(origin string, l abandonment) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.abandoned.add(strings.Clone(origin), l) {
		return false
	}
	key := o.hash(origin)
	if l.failure != page.Private { // that is the crawl's own rule, and no host's doing
		o.reach.GaveUp++
	}
	if h, _ := o.health.Get(key); h.answered {
		o.reach.Fell++
	}
	o.health.Drop(key)
	o.line.gone(key)
	o.anyAbandoned.Store(true)
	return true
}

// isAbandoned says whether an origin was given up, and why.
func (o *origins) isAbandoned(origin string) (abandonment, bool) {
	if !o.anyAbandoned.Load() {
		return abandonment{}, false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.abandoned.of(origin)
}

type want uint8

const (
	settled want = iota // the rules have come meanwhile, or the origin was given up
	awaited             // they are on their way
	first               // they are to be fetched now
)

// firstToWant says who is to fetch an origin's robots.txt, if its rules are not known yet.
func (o *origins) firstToWant(origin string, rules *robots.Cache) want {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, have := rules.Get(origin)
	_, gone := o.abandoned.of(origin)
	_, wanted := o.awaited.Get(o.hash(origin))
	switch {
	case have || gone:
		return settled
	case wanted:
		return awaited
	}
	o.awaited.Put(o.hash(origin), true)
	return first
}

// rulesCame says that an origin's robots.txt is no longer on its way.
func (o *origins) rulesCame(origin string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.awaited.Drop(o.hash(origin))
}

// isNearest reports whether no visit of an origin lay as near to a seed before; without a limit only the first one
// counts.
func (o *origins) isNearest(origin string, depth int32, limited bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := o.hash(origin)
	least, known := o.listed.Get(key)
	if known && (depth >= least || !limited) {
		return false
	}
	o.listed.Put(key, depth)
	return true
}
