package batch

import (
	"sync"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/weburl"
	"kumo/internal/content/robots"
	"kumo/internal/state/frontier"
)

// originRules guards the robots.txt of each origin: known, requested in this round, or deferred to the next one.
//
// Invariants: a task requests the robots.txt of an origin once at a time. URLs of an origin are parked in the frontier
// while its robots.txt is requested, and only then: whoever ends the request calls Unpark after answer or deferTo.
type originRules struct {
	cache    *robots.Cache
	frontier *frontier.Frontier

	mu        sync.Mutex // guards the fields below
	requested map[string]bool
	deferred  map[string]string // origins whose robots.txt the next round requests → its URL
	failures  map[string]string // origins whose robots.txt did not answer → why
}

func newOriginRules(cache *robots.Cache, f *frontier.Frontier) *originRules {
	return &originRules{cache: cache, frontier: f, requested: map[string]bool{}, deferred: map[string]string{},
		failures: map[string]string{}}
}

// request parks the host of a URL until its origin's robots.txt is known, and requests it if nobody has. It returns
// false, with nothing done, if this round cannot fetch it.
func (r *originRules) request(u weburl.URL) bool {
	origin, host := u.Origin(), u.Host()
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, elsewhere := r.deferred[origin]; elsewhere {
		return false
	}
	if _, known := r.cache.Get(origin); known { // by now
		return true
	}
	r.frontier.Park(host, origin)
	if !r.requested[origin] {
		r.requested[origin] = true
		r.frontier.Push(host, item.Item{URL: origin + "/robots.txt", Robots: origin})
	}
	return true
}

// answer stores an origin's robots.txt.
func (r *originRules) answer(origin string, status int, body []byte) *robots.Rules {
	rules := r.cache.Answer(origin, status, body)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.requested, origin)
	return rules
}

// deferTo leaves an origin's robots.txt, which redirects to a URL, to the next round.
func (r *originRules) deferTo(origin, url string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deferred[origin] = url
	delete(r.requested, origin)
}

// dropDeferred drops the deferred origins whose robots.txt is known.
func (r *originRules) dropDeferred() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for origin := range r.deferred {
		if _, known := r.cache.Get(origin); known {
			delete(r.deferred, origin)
		}
	}
}

// delay returns the delay that an origin requests; 0 if it is unknown.
func (r *originRules) delay(origin string) time.Duration {
	rules, known := r.cache.Get(origin)
	if !known {
		return 0
	}
	delay, _ := rules.Delay()
	return delay
}

// fail records why an origin's robots.txt did not answer.
func (r *originRules) fail(origin, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.failures) < mostPending {
		r.failures[origin] = why
	}
}

// failure returns why an origin's robots.txt did not answer, after a colon; "" if it did.
func (r *originRules) failure(origin string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if why := r.failures[origin]; why != "" {
		return ": " + why
	}
	return ""
}
