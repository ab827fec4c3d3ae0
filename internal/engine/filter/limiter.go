package filter

import (
	"fmt"
	"sync"

	"golang.org/x/time/rate"
)

// A limiter limits the lines that a program writes to the log: a burst, then one a second. The number of dropped lines
// is logged before the next one.
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

// close logs the number of dropped lines, if any.
func (l *limiter) close() {
	l.mu.Lock()
	lost := l.dropped
	l.dropped = 0
	l.mu.Unlock()
	if lost > 0 {
		l.to(fmt.Sprintf("%d lines of filters were dropped", lost))
	}
}
