package node

import (
	"sync"
	"time"
)

// A Rate computes the recent rate of a counter, per second. It is safe for concurrent use.
type Rate struct {
	mu    sync.Mutex // guards below
	count int64
	when  time.Time
	rate  float64
}

// rateWindow is the time over which a Rate is computed.
const rateWindow = 3 * time.Second

// At returns the rate, given the count until now.
func (r *Rate) At(now time.Time, count int64) float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch d := now.Sub(r.when); {
	case r.when.IsZero():
		r.count, r.when = count, now
	case d >= rateWindow:
		r.rate = float64(count-r.count) / d.Seconds()
		r.count, r.when = count, now
	}
	return r.rate
}
