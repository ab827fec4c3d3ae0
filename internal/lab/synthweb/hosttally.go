package synthweb

import (
	"sync"
	"time"
)

// minOverlap is how long connections must have been open at the same time to count as such: a client that closes one and
// opens another may be seen to do so in the wrong order.
const minOverlap = 10 * time.Millisecond

// slack is how much sooner than Crawl-delay a request may seem to come because the one before was noticed late.
const slack = 10 * time.Millisecond

// A hostTally is what the server knows of one host's clients.
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
	began     time.Time // last request's arrival, zero before the first
	paced     time.Time // the same, requests for robots.txt left out
	ended     time.Time // end of the last answer, zero before the first
	gap       time.Duration
	start     time.Duration
	measured  bool // gap and start have a value
	robotsAt  bool // robots.txt has been answered
	answers   int  // since the last burst of 429
	busyUntil time.Time
	warned    bool // the burst's first 429 has been sent
}

// connect notes n more open connections (or one less).
func (h *hostTally) connect(n int, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.updateMostOpen(now)
	h.open += n
	h.changed = now
}

// updateMostOpen takes note of the connections that have been open together up to now.
func (h *hostTally) updateMostOpen(now time.Time) {
	if now.Sub(h.changed) >= minOverlap {
		h.mostOpen = max(h.mostOpen, h.open)
	}
}

// A verdict is what a host has against a request.
type verdict struct {
	beforeRobots, hasty, impatient bool
	throttled                      bool // to be answered by 429
}

// policy is what a host's traits say about the pace of requests.
type policy struct {
	delay      time.Duration // 0: none
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

// pace measures a request's distance from the one before.
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

// throttle says whether a request falls into a burst of 429, and whether its client had been told to wait.
func (h *hostTally) throttle(now time.Time, p policy) (throttled, impatient bool) {
	if h.answers < p.burstEvery {
		h.answers++
		return false, false
	}
	if h.busyUntil.IsZero() { // the burst begins
		h.busyUntil, h.warned = now.Add(p.retryAfter), false
		return true, false
	}
	if now.Before(h.busyUntil) {
		return true, h.warned
	}
	h.busyUntil, h.answers = time.Time{}, 1
	return false, false
}

// end notes that the last bytes of an answer are about to go out.
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

// reset forgets all but what is going on.
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
