package batch

import (
	"sync"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/weburl"
	"kumo/internal/content/robots"
	"kumo/internal/state/frontier"
)

// hosts guards the interval between the pages of each host.
//
// Invariant: a host's delay in the frontier is at least the longest interval of the collections that request its URLs.
type hosts struct {
	frontier  *frontier.Frontier
	rules     *robots.Cache
	mu        sync.Mutex // guards intervals
	intervals map[string]time.Duration
}

// push enqueues an item at its host, with the minimum interval for the host's pages. A new host waits a whole interval
// first, because the previous round may just have sent it a request.
func (hs *hosts) push(u weburl.URL, it item.Item, interval time.Duration) {
	key := u.Host()
	it.Rank = it.Depth
	hs.mu.Lock()
	defer hs.mu.Unlock()
	was, known := hs.intervals[key]
	interval = max(interval, was)
	hs.intervals[key] = interval
	delay := interval
	if rules, known := hs.rules.Get(u.Origin()); known {
		asked, _ := rules.Delay()
		delay = max(delay, asked)
	}
	if !known {
		hs.frontier.Import(key, delay, delay, it)
		return
	}
	if interval > was {
		hs.frontier.SetDelay(key, delay)
	}
	hs.frontier.Push(key, it)
}

// interval returns a host's interval; 0 if no collection requests its URLs.
func (hs *hosts) interval(host string) time.Duration {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	return hs.intervals[host]
}
