package p2p

import (
	"sync"
	"time"
)

// A rateLimiter bounds what one peer sends: a rate per second, with a burst of one second. A peer that exceeds it waits
// until the excess is paid off.
type rateLimiter struct {
	messages, bytes float64 // per second

	mu   sync.Mutex // guards the fields below
	last time.Time
	left [2]float64 // messages and bytes that the peer may send now; negative: excess
}

func (p *rateLimiter) reserve(now time.Time, messages, bytes int) (wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	past := 1.0
	if !p.last.IsZero() {
		past = now.Sub(p.last).Seconds()
	}
	p.last = now
	for i, a := range [2]struct{ rate, n float64 }{{p.messages, float64(messages)}, {p.bytes, float64(bytes)}} {
		p.left[i] = min(p.left[i]+past*a.rate, a.rate) - a.n
		if p.left[i] < 0 {
			wait = max(wait, time.Duration(-p.left[i]/a.rate*float64(time.Second)))
		}
	}
	return wait
}
