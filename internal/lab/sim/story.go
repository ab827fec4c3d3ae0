package sim

import (
	"fmt"
	"time"
)

// A narrative is what a run reports besides figures: what must not be and, if it is telling, a line for each event.
type runLog struct {
	k            *kernel
	storyEnabled bool  // a story is written
	focus        int32 // the host it follows; -1: none
	story        []string
	violations   []Violation
}

// A Violation is what must not be.
type Violation struct {
	At      time.Duration
	Message string
	Host    int // number of the host it is about; -1: none
}

func (v Violation) String() string {
	return fmt.Sprintf("at %v: %s", v.At.Round(time.Millisecond), v.Message)
}

// tell adds a line to the story, if one is written.
func (n *runLog) logEvent(format string, args ...any) {
	if n.storyEnabled {
		n.story = append(n.story, formatTime(n.k.now)+" "+fmt.Sprintf(format, args...))
	}
}

// logHost adds a line about a host, if the story is about it.
func (n *runLog) logHost(host int32, format string, args ...any) {
	if n.storyEnabled && host == n.focus {
		n.logEvent(format, args...)
	}
}

func (n *runLog) violate(format string, args ...any) { n.violateHost(-1, format, args...) }

// violateHost records that something is as it must not be. A run of a cluster with members ends with it.
func (n *runLog) violateHost(host int32, format string, args ...any) {
	v := Violation{At: n.k.now, Message: fmt.Sprintf(format, args...), Host: int(host)}
	n.violations = append(n.violations, v)
	n.logEvent("VIOLATION: %s", v.Message)
}

// formatTime is a moment as a story shows it: minutes, seconds, milliseconds.
func formatTime(t moment) string {
	return fmt.Sprintf("%3d:%02d.%03d", t/time.Minute, t%time.Minute/time.Second, t%time.Second/time.Millisecond)
}

func (s *nodeState) describe(n int32) string {
	h := s.hosts[n]
	if h == nil {
		return fmt.Sprintf("known %x, not held", s.seen[n])
	}
	return fmt.Sprintf("known %x, waiting %x", s.seen[n], h.waiting)
}
