package bounded

import "time"

// A Seldom says of each key, once in an interval, that its time has come: for lines of a log that others could have
// written without end. It forgets keys that were not seen lately, as a Recent does.
type Seldom[K comparable] struct {
	every time.Duration
	last  *Recent[K, time.Time]
}

// NewSeldom makes one that knows as many keys.
func NewSeldom[K comparable](every time.Duration, most int) *Seldom[K] {
	return &Seldom[K]{every, NewRecent[K, time.Time](most)}
}

// Due reports whether the interval of a key is over, and begins the next one if it is.
func (s *Seldom[K]) Due(k K, now time.Time) bool {
	if last, seen := s.last.Get(k); seen && now.Sub(last) < s.every {
		return false
	}
	s.last.Put(k, now)
	return true
}
