package sim

import (
	"fmt"
	"time"
)

// tell adds a line to the story, if one is written.
func (w *world) tell(format string, args ...any) {
	if w.telling {
		w.story = append(w.story, stamp(w.k.now)+" "+fmt.Sprintf(format, args...))
	}
}

// tellOf adds a line about a host, if the story is about it.
func (w *world) tellOf(host int32, format string, args ...any) {
	if w.telling && host == w.focus {
		w.tell(format, args...)
	}
}

func (w *world) violate(format string, args ...any) { w.violateOf(-1, format, args...) }

// violateOf notes that something is as it must not be. The run ends.
func (w *world) violateOf(host int32, format string, args ...any) {
	v := Violation{At: w.k.now, What: fmt.Sprintf(format, args...), Host: int(host)}
	w.violations = append(w.violations, v)
	w.tell("VIOLATION: %s", v.What)
}

// stamp is a moment as a story shows it: minutes, seconds, milliseconds.
func stamp(t moment) string {
	return fmt.Sprintf("%3d:%02d.%03d", t/time.Minute, t%time.Minute/time.Second, t%time.Second/time.Millisecond)
}

// describe is what a holding has of a host, in words.
func (s *holding) describe(n int32) string {
	h := s.hosts[n]
	if h == nil {
		return fmt.Sprintf("known %x, not held", s.seen[n])
	}
	return fmt.Sprintf("known %x, waiting %x", s.seen[n], h.waiting)
}
