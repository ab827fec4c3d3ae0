package cputime

import (
	"testing"
	"time"
)

// TestOf tests that work counts and waiting does not.
func TestOf(t *testing.T) {
	waited := Of(func() { time.Sleep(50 * time.Millisecond) })
	n := 0
	worked := Of(func() {
		for began := now(); now()-began < 50*time.Millisecond; n++ {
		}
	})
	if waited > 25*time.Millisecond || worked < 50*time.Millisecond {
		t.Errorf("waiting for 50 ms counts as %v, 50 ms of work as %v", waited, worked)
	}
}
