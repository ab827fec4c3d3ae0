package crawl

import (
	"testing"
	"time"
)

// TestAPauseIsToldOnceAMinute: the log shows every minute that the crawl still waits, and for what.
func TestAPauseIsToldOnceAMinute(t *testing.T) {
	free, paused, resumed := uint64(10), 0, 0
	s := diskGuard{minFree: 100, free: func() (uint64, error) { return free, nil }}
	l := Listener{Paused: func(uint64) { paused++ }, Resumed: func(uint64) { resumed++ }}
	now := time.Unix(0, 0)
	look := func() {
		t.Helper()
		if err := s.check(now, l); err != nil {
			t.Fatal(err)
		}
		now = now.Add(5 * time.Second)
	}
	for range 5 * 12 { // five minutes
		look()
	}
	if paused != 5 || resumed != 0 {
		t.Errorf("told %d times of the pause, %d times of its end", paused, resumed)
	}
	free = 100
	look()
	look()
	if paused != 5 || resumed != 1 {
		t.Errorf("then told %d times of the pause, %d times of its end", paused, resumed)
	}
}
