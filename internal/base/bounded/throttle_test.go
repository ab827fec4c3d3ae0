package bounded

import (
	"testing"
	"time"
)

func TestSeldom(t *testing.T) {
	s, now := NewThrottle[int](time.Minute, 2), time.Unix(1e9, 0)
	for i, c := range []struct {
		key   int
		after time.Duration
		due   bool
	}{
		{1, 0, true}, {1, time.Second, false}, {2, time.Second, true}, {1, 59 * time.Second, false},
		{1, time.Minute, true}, {1, time.Minute, false}, {2, time.Minute, false}, {2, 61 * time.Second, true},
	} {
		if due := s.Allow(c.key, now.Add(c.after)); due != c.due {
			t.Errorf("step %d: %v", i, due)
		}
	}
	for k := range 1000 {
		s.Allow(k, now)
	}
	if n := s.last.Len(); n > 6 {
		t.Errorf("%d keys are known", n)
	}
}
