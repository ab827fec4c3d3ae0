package filter

import (
	"fmt"
	"sync"
	"time"
)

// A limiter lets a program say what it likes, and the log stay readable: some lines at once, then one a second. How
// many were left out is said with the next.
type limiter struct {
	to func(string)

	mu   sync.Mutex
	free float64 // lines that may be said now
	at   time.Time
	lost int
}

const burst = 20

func newLimiter(to func(string)) *limiter {
	if to == nil {
		to = func(string) {}
	}
	return &limiter{to: to, free: burst, at: time.Now()}
}

func (l *limiter) say(line string) {
	l.mu.Lock()
	now := time.Now()
	l.free, l.at = min(burst, l.free+now.Sub(l.at).Seconds()), now
	if l.free < 1 {
		l.lost++
		l.mu.Unlock()
		return
	}
	l.free--
	lost := l.lost
	l.lost = 0
	l.mu.Unlock()
	l.tell(lost)
	l.to(line)
}

func (l *limiter) tell(lost int) {
	if lost > 0 {
		l.to(fmt.Sprintf("%d lines of filters were left out", lost))
	}
}

// close says what was left out and not said.
func (l *limiter) close() {
	l.mu.Lock()
	lost := l.lost
	l.lost = 0
	l.mu.Unlock()
	l.tell(lost)
}
