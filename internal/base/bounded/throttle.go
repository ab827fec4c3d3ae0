package bounded

import "time"

// A Seldom says of each key, once in an interval, that its time has come: for lines of a log that others could have
// written without end. It forgets keys that were not seen lately, as a Recent does.
type Throttle[K comparable] struct {
	interval time.Duration
	last     *Recent[K, time.Time]
}

// NewThrottle makes one that knows as many keys.
func NewThrottle[K comparable](every time.Duration, most int) *Throttle[K] {
	return &Throttle[K]{every, NewRecent[K, time.Time](most)}
}

// Allow reports whether the interval of a key is over, and begins the next one if it is.
func (s *Throttle[K]) Allow(k K, now time.Time) bool {
	if last, seen := s.last.Get(k); seen && now.Sub(last) < s.interval {
		return false
	}
	s.last.Put(k, now)
	return true
}
