package wait

import (
	"sync/atomic"
	"time"
)

// A Heartbeat records when a loop last came around, so that another goroutine can detect a loop that is stuck. Its zero
// value belongs to a loop that does not run.
type Heartbeat struct{ last atomic.Pointer[time.Time] }

// Beat records that the loop came around.
func (h *Heartbeat) Beat() {
	now := time.Now()
	h.last.Store(&now)
}

// Stop records that the loop has ended.
func (h *Heartbeat) Stop() { h.last.Store(nil) }

// Silence returns the time since the loop came around; 0 if it does not run.
func (h *Heartbeat) Silence() time.Duration {
	if at := h.last.Load(); at != nil {
		return time.Since(*at)
	}
	return 0
}
