package synthweb

import (
	"sync"
	"time"
)

// minOverlap is the minimum time for which connections must be open together to count as concurrent. If a client closes
// one and opens another, the server may see that in the wrong order.
const minOverlap = 10 * time.Millisecond

// slack is the tolerance for Crawl-delay: the server may notice the end of the previous request late.
const slack = 10 * time.Millisecond

// A hostTally has the server's measurements for one host.
type hostTally struct {
	mu sync.Mutex // guards hostState
	hostState
}

type hostState struct {
	requests  int64
	inFlight  int
	mostIn    int
	open      int
	mostOpen  int
	changed   time.Time // when open last changed
	began     time.Time // arrival of the last request; zero before the first
	paced     time.Time // the same, without requests for robots.txt
	ended     time.Time // end of the last answer; zero before the first
	gap       time.Duration
	start     time.Duration
	measured  bool // gap and start are set
	robotsAt  bool // robots.txt was answered
	answers   int  // answers since the last burst of 429
	busyUntil time.Time
	warned    bool // the first 429 of the burst was sent
}

// connect records n more open connections; n may be -1.
func (h *hostTally) connect(n int, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.updateMostOpen(now)
	h.open += n
	h.changed = now
}

// updateMostOpen updates mostOpen with the connections that have been open together up to now.
func (h *hostTally) updateMostOpen(now time.Time) {
	if now.Sub(h.changed) >= minOverlap {
		h.mostOpen = max(h.mostOpen, h.open)
	}
}

// A verdict lists the violations of a request.
type verdict struct {
	beforeRobots, hasty, impatient bool
	throttled                      bool // answer with 429
}

// policy is the pace of requests that a host's traits require.
type policy struct {
	delay      time.Duration // 0: no delay
	burstEvery int           // 0: never
	retryAfter time.Duration
}

func (h *hostTally) begin(now time.Time, robots bool, p policy) (v verdict) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.began.IsZero() {
		h.pace(now)
	}
	if !robots {
		v.hasty = p.delay > 0 && !h.paced.IsZero() && now.Sub(h.paced) < p.delay-slack
		v.beforeRobots = !h.robotsAt
		h.paced = now
	}
	h.began = now
	h.requests++
	h.inFlight++
	h.mostIn = max(h.mostIn, h.inFlight)
	if p.burstEvery > 0 && !robots {
		v.throttled, v.impatient = h.throttle(now, p)
	}
	return v
}

// pace measures the time since the previous request.
func (h *hostTally) pace(now time.Time) {
	gap := max(0, now.Sub(h.ended))
	if h.inFlight > 0 {
		gap = 0
	}
	start := max(0, now.Sub(h.began))
	if !h.measured {
		h.measured, h.gap, h.start = true, gap, start
		return
	}
	h.gap, h.start = min(h.gap, gap), min(h.start, start)
}

// throttle reports whether a request falls into a burst of 429, and whether its client ignored an earlier Retry-After.
func (h *hostTally) throttle(now time.Time, p policy) (throttled, impatient bool) {
	if h.answers < p.burstEvery {
		h.answers++
		return false, false
	}
	if h.busyUntil.IsZero() { // a burst starts
		h.busyUntil, h.warned = now.Add(p.retryAfter), false
		return true, false
	}
	if now.Before(h.busyUntil) {
		return true, h.warned
	}
	h.busyUntil, h.answers = time.Time{}, 1
	return false, false
}

// end records that the last bytes of an answer are about to be sent.
func (h *hostTally) end(now time.Time, status int, robots bool, p policy) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.inFlight--
	if now.After(h.ended) {
		h.ended = now
	}
	h.robotsAt = h.robotsAt || robots && status != 0
	if status == 429 && !h.warned {
		h.busyUntil, h.warned = now.Add(p.retryAfter), true
	}
}

// reset clears everything except the current connections and requests.
func (h *hostTally) reset(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hostState = hostState{inFlight: h.inFlight, mostIn: h.inFlight, open: h.open, changed: now}
}

func (h *hostTally) state(now time.Time) hostState {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.updateMostOpen(now)
	return h.hostState
}
