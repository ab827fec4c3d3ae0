package batch

import "sync"

// originRules holds a round's state of robots.txt files that is not part of their rules.
type originRules struct {
	mu       sync.Mutex        // guards the fields below
	deferred map[string]bool   // origins whose robots.txt redirects to a target that the next round fetches
	failures map[string]string // origins whose robots.txt did not answer → why
}

// setDeferred sets whether an origin's robots.txt is deferred to the next round.
func (r *originRules) setDeferred(origin string, deferred bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deferred[origin] = deferred
}

func (r *originRules) isDeferred(origin string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.deferred[origin]
}

// setFailure records why an origin's robots.txt did not answer.
func (r *originRules) setFailure(origin, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.failures) < maxPending {
		r.failures[origin] = ": " + why
	}
}

// failure returns why an origin's robots.txt did not answer, after a colon; "" if it did.
func (r *originRules) failure(origin string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failures[origin]
}
