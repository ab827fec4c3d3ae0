package mesh

import (
	"testing"
	"time"
)

func TestTimingIsPacked(t *testing.T) {
	for _, c := range []struct{ is, want Timing }{
		{Timing{}, Timing{}},
		{Timing{30 * time.Second, 1500 * time.Microsecond}, Timing{30 * time.Second, 2 * time.Millisecond}},
		{Timing{time.Second, -time.Second}, Timing{time.Second, 0}},
		{Timing{1 << 62, 1 << 62}, Timing{(1<<31 - 1) * time.Millisecond, (1<<31 - 1) * time.Millisecond}},
	} {
		if got := unpackTiming(c.is.pack()); got != c.want {
			t.Errorf("%+v: %+v, want %+v", c.is, got, c.want)
		}
	}
	if got := unpackTiming(-1); got != (Timing{}) {
		t.Errorf("of a number that is none: %+v", got)
	}
	at := time.Unix(1000, 0)
	left := timed{Timing{time.Second, 3 * time.Second}, at}
	if got := left.now(at.Add(2 * time.Second)); got != (Timing{time.Second, time.Second}) {
		t.Errorf("after 2 s: %+v", got)
	}
	if got := left.now(at.Add(5 * time.Second)); got.Wait != 0 {
		t.Errorf("after 5 s: %+v", got)
	}
}
