package web

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"
)

// A Check returns an error if a process is not healthy. It may block for as long as the process is stuck.
type Check func() error

// A prober answers requests with the result of a check. A check that blocks runs once, however many requests come.
type prober struct {
	check Check
	limit time.Duration // a check that runs for longer has failed

	mu    sync.Mutex    // guards the fields below
	began time.Time     // start of the running check
	done  chan struct{} // closed at its end; nil: none is running
	last  error         // result of the last finished check
}

const (
	// AliveLimit is the time without progress after which a process counts as stuck. A slow disk may block it for
	// shorter times.
	AliveLimit = 2 * time.Minute
	// ReadyLimit is the same for readiness.
	ReadyLimit = 15 * time.Second
	probeWait  = 800 * time.Millisecond // for the result of a check; a probe of Kubernetes waits 1 s by default
)

// result starts a check, or joins the running one. While a check runs for less than the limit, the previous result is
// valid.
func (p *prober) result(ctx context.Context) error {
	p.mu.Lock()
	if p.done == nil {
		p.begin()
	}
	done := p.done
	p.mu.Unlock()
	enough := time.NewTimer(probeWait)
	defer enough.Stop()
	select {
	case <-done:
	case <-enough.C:
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done == done && time.Since(p.began) > p.limit {
		return stuckError(time.Since(p.began))
	}
	return p.last
}

// begin starts the check in a goroutine. The caller holds mu.
func (p *prober) begin() {
	done := make(chan struct{})
	p.began, p.done = time.Now(), done
	go func() {
		err := p.check()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.last, p.done = err, nil
		close(done)
	}()
}

type stuckError time.Duration

func (e stuckError) Error() string {
	return "health check: no result for " + time.Duration(e).Round(time.Second).String() +
		": a lock or the disk is blocked"
}

// Health is the body of an answer of /healthz and /readyz.
type Health struct {
	Status  string   `json:"status"` // "ok" or "failed"
	Reasons []string `json:"reasons,omitempty"`
}

// ServeHTTP answers 200 if the check has no error, and else 503 with the reasons.
func (p *prober) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	is, code := Health{Status: "ok"}, http.StatusOK
	if err := p.result(r.Context()); err != nil {
		is, code = Health{Status: "failed", Reasons: strings.Split(err.Error(), "\n")}, http.StatusServiceUnavailable
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(is) // the client may have disconnected
}
