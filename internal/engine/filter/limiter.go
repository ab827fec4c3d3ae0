package filter

import (
	"fmt"
	"sync"

	"golang.org/x/time/rate"
)

// A limiter lets a program say what it likes, and the log stay readable: some lines at once, then one a second. How
// many were left out is said with the next.
type limiter struct {
	to func(string)

	rate *rate.Limiter

	mu      sync.Mutex
	dropped int
}

const burst = 20

func newLimiter(to func(string)) *limiter {
	if to == nil {
		to = func(string) {}
	}
	return &limiter{to: to, rate: rate.NewLimiter(1, burst)}
}

func (l *limiter) say(line string) {
	if !l.rate.Allow() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.dropped++
		return
	}
	l.close()
	l.to(line)
}

// close says what was left out and not said.
func (l *limiter) close() {
	l.mu.Lock()
	lost := l.dropped
	l.dropped = 0
	l.mu.Unlock()
	if lost > 0 {
		l.to(fmt.Sprintf("%d lines of filters were left out", lost))
	}
}
