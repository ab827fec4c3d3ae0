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
// Invariant: a host's delay in the frontier is at least the longest interval of the collections that want its URLs.
type hosts struct {
	frontier  *frontier.Frontier
	rules     *robots.Cache
	mu        sync.Mutex // guards intervals
	intervals map[string]time.Duration
}

// push enqueues an item at its host, with the least interval that the host's pages must have. A new host owes a whole
// interval: the round before may have sent it a request just now.
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

// interval returns a host's interval; 0 if no collection wants its URLs.
func (hs *hosts) interval(host string) time.Duration {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	return hs.intervals[host]
}
