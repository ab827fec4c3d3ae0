package batch

import (
	"fmt"
	"sync"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/weburl"
	"kumo/internal/state/frontier"
)

// hostFailures is the number of failures in a row after which a host is abandoned for the round.
const hostFailures = 8

// hosts guards what the crawler knows of each host beside the frontier: the interval between its pages, and whether it
// answers.
//
// Invariants: a host's delay in the frontier is at least the longest interval of the collections that want its URLs. A
// host that is abandoned stays so for the round.
type hosts struct {
	frontier *frontier.Frontier
	delay    func(origin string) time.Duration // that the origin's robots.txt requests; 0: unknown
	mu       sync.Mutex                        // guards states
	states   map[string]*hostState
}

type hostState struct {
	interval time.Duration // of its collections
	failures int           // in a row
	dead     string        // reason for which it was abandoned; "" if it was not
}

// push enqueues an item at its host, with the least interval that the host's pages must have. A new host owes a whole
// interval: the round before may have sent it a request just now.
func (hs *hosts) push(u weburl.URL, it item.Item, interval time.Duration) {
	key := u.Host()
	it.Rank = it.Depth
	hs.mu.Lock()
	defer hs.mu.Unlock()
	h := hs.states[key]
	isNew := h == nil
	if isNew {
		h = &hostState{}
		hs.states[key] = h
	}
	longer := interval > h.interval
	h.interval = max(h.interval, interval)
	delay := max(h.interval, hs.delay(u.Origin()))
	if isNew {
		hs.frontier.Arrive(key, delay, delay, it)
		return
	}
	if longer {
		hs.frontier.SetDelay(key, delay)
	}
	hs.frontier.Push(key, it)
}

// interval returns a host's interval; 0 if no collection wants its URLs.
func (hs *hosts) interval(host string) time.Duration {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if h := hs.states[host]; h != nil {
		return h.interval
	}
	return 0
}

// abandoned returns the reason for which a host was abandoned; "" if it was not.
func (hs *hosts) abandoned(host string) string {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if h := hs.states[host]; h != nil {
		return h.dead
	}
	return ""
}

// record counts a host's failures, and abandons it after many.
func (hs *hosts) record(host string, j *verdict) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	h := hs.states[host]
	switch {
	case h == nil, j.outcome == frontier.NoRequest:
	case j.failure == "":
		h.failures = 0
	default:
		if h.failures++; h.failures >= hostFailures && h.dead == "" {
			h.dead = fmt.Sprintf("given up after %d failures in a row: %s", h.failures, j.detail)
		}
	}
}
