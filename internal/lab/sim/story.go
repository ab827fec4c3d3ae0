package sim

import (
	"fmt"
	"time"
)

// A narrative is what a run reports besides figures: what must not be and, if it is telling, a line for each event.
type narrative struct {
	k          *kernel
	telling    bool  // a story is written
	focus      int32 // the host it follows; -1: none
	story      []string
	violations []Violation
}

// A Violation is what must not be.
type Violation struct {
	At   time.Duration
	What string
	Host int // number of the host it is about; -1: none
}

func (v Violation) String() string {
	return fmt.Sprintf("at %v: %s", v.At.Round(time.Millisecond), v.What)
}

// tell adds a line to the story, if one is written.
func (n *narrative) tell(format string, args ...any) {
	if n.telling {
		n.story = append(n.story, stamp(n.k.now)+" "+fmt.Sprintf(format, args...))
	}
}

// tellOf adds a line about a host, if the story is about it.
func (n *narrative) tellOf(host int32, format string, args ...any) {
	if n.telling && host == n.focus {
		n.tell(format, args...)
	}
}

func (n *narrative) violate(format string, args ...any) { n.violateOf(-1, format, args...) }

// violateOf records that something is as it must not be. A run of a cluster with members ends with it.
func (n *narrative) violateOf(host int32, format string, args ...any) {
	v := Violation{At: n.k.now, What: fmt.Sprintf(format, args...), Host: int(host)}
	n.violations = append(n.violations, v)
	n.tell("VIOLATION: %s", v.What)
}

// stamp is a moment as a story shows it: minutes, seconds, milliseconds.
func stamp(t moment) string {
	return fmt.Sprintf("%3d:%02d.%03d", t/time.Minute, t%time.Minute/time.Second, t%time.Second/time.Millisecond)
}

func (s *holding) describe(n int32) string {
	h := s.hosts[n]
	if h == nil {
		return fmt.Sprintf("known %x, not held", s.seen[n])
	}
	return fmt.Sprintf("known %x, waiting %x", s.seen[n], h.waiting)
}
