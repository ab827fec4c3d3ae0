package bounded

import "time"

// A Throttle allows one event per key and interval. It bounds log lines that others can trigger. Like a Recent, it
// forgets keys that were not used recently.
type Throttle[K comparable] struct {
	interval time.Duration
	last     *Recent[K, time.Time]
}

// NewThrottle returns a Throttle that remembers at least most keys.
func NewThrottle[K comparable](every time.Duration, most int) *Throttle[K] {
	return &Throttle[K]{every, NewRecent[K, time.Time](most)}
}

// Allow reports whether no event of a key was allowed within the last interval. If so, it records one now.
func (s *Throttle[K]) Allow(k K, now time.Time) bool {
	if last, seen := s.last.Get(k); seen && now.Sub(last) < s.interval {
		return false
	}
	s.last.Put(k, now)
	return true
}
