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

// TestTimingsKeepTheStricter: a node that was suspended reports a host's timing as of its own last request. Another
// node has fetched the host since.
func TestTimingsKeepTheStricter(t *testing.T) {
	b := newBench(t, "a~1", "b~1")
	s := b.openHosts()
	host := b.host(b.place.isFirst)
	moved := func(wait time.Duration) {
		s.moved("old~1", item{host: host, node: "new~1", number: Timing{Delay: 4 * time.Second, Wait: wait}.pack()})
	}
	moved(3 * time.Second)
	b.pass(time.Second)
	moved(500 * time.Millisecond)
	b.want("the rest of the longer wait", s.timings.get(host).Wait, 2*time.Second)
	moved(3 * time.Second)
	b.want("a longer wait", s.timings.get(host).Wait, 3*time.Second)
	b.pass(3 * time.Second)
	b.want("an expired one", s.timings.get(host).Wait, time.Duration(0))
}
