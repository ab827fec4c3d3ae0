package mesh

import (
	"time"

	"kumo/internal/base/bounded"
)

// A Timing is a host's politeness state, whichever node fetches it: the delay that it requests, and for how long no
// request may be sent. It moves with a host from one target to the next, through the first backup, or directly to the
// node that requests the host. It is lost if a target dies, which is noticed only after some seconds.
type Timing struct{ Delay, Wait time.Duration }

// timed is a Timing at a moment.
type timed struct {
	Timing
	at time.Time
}

// now returns the rest of the timing at a later time.
func (t timed) now(now time.Time) Timing {
	if !t.at.IsZero() {
		t.Wait = max(t.Wait-now.Sub(t.at), 0)
	}
	return t.Timing
}

// merge combines two nodes' views of a host, keeping the stricter.
func (t Timing) merge(o Timing) Timing { return Timing{max(t.Delay, o.Delay), max(t.Wait, o.Wait)} }

const timingBits = 31

// pack encodes a timing as the number of an item or a reply, in milliseconds.
func (t Timing) pack() int64 {
	ms := func(d time.Duration) int64 {
		return min(max(int64((d+time.Millisecond-1)/time.Millisecond), 0), 1<<timingBits-1)
	}
	return ms(t.Delay)<<timingBits | ms(t.Wait)
}

func unpackTiming(n int64) Timing {
	if n < 0 {
		return Timing{}
	}
	ms := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
	return Timing{ms(n >> timingBits), ms(n & (1<<timingBits - 1))}
}

// maxTimings is the number of hosts whose timings are kept.
const maxTimings = 1 << 12

// timings keeps the timings of hosts that have just moved, for their next targets.
type timings struct {
	core *core
	of   *bounded.Recent[string, timed]
}

func newTimings(c *core) *timings {
	return &timings{core: c, of: bounded.NewRecent[string, timed](maxTimings)}
}

// put merges a host's timing with the rest of the stored one, and keeps the stricter values. A suspended node may report
// the timing of its own last request after another node has fetched from the host.
func (t *timings) put(host string, timing timed) {
	now := t.core.now
	t.of.Put(host, timed{timing.now(now).merge(t.get(host)), now})
}

// get returns the rest of a host's timing, and drops an expired one.
func (t *timings) get(host string) Timing {
	got, _ := t.of.Get(host)
	left := got.now(t.core.now)
	if left.Wait == 0 && !got.at.IsZero() {
		t.of.Delete(host)
	}
	return left
}
