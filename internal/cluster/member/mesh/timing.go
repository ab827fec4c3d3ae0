package mesh

import "time"

// A Timing is what a host is owed for politeness' sake, whoever fetches it: the delay that it asks for, and how long it
// is to be left alone yet. It goes with a host from one target to the next, by way of the first backup, or straight to
// who asks for the host. Where a target dies nobody knows it; that is noticed after some seconds only.
type Timing struct{ Asked, Wait time.Duration }

// timed is a Timing at a moment.
type timed struct {
	Timing
	at time.Time
}

// now is what is left of it.
func (t timed) now(now time.Time) Timing {
	if !t.at.IsZero() {
		t.Wait = max(t.Wait-now.Sub(t.at), 0)
	}
	return t.Timing
}

// with is what is owed by what two know of a host.
func (t Timing) with(o Timing) Timing { return Timing{max(t.Asked, o.Asked), max(t.Wait, o.Wait)} }

// maxTimings is of how many hosts a first backup knows what they are owed: those that have just moved.
const maxTimings = 1 << 12

// owed is what a host is owed by its next target.
func (m *Machine) owed(host string) Timing {
	t, _ := m.timings.Get(host)
	left := t.now(m.now)
	if left.Wait == 0 && !t.at.IsZero() {
		m.timings.Drop(host)
	}
	return left
}

const timingBits = 31

// pack is a timing as a number of an item or a reply, in milliseconds.
func (t Timing) pack() int64 {
	ms := func(d time.Duration) int64 {
		return min(max(int64((d+time.Millisecond-1)/time.Millisecond), 0), 1<<timingBits-1)
	}
	return ms(t.Asked)<<timingBits | ms(t.Wait)
}

func unpackTiming(n int64) Timing {
	if n < 0 {
		return Timing{}
	}
	return Timing{time.Duration(n>>timingBits) * time.Millisecond, time.Duration(n&(1<<timingBits-1)) * time.Millisecond}
}
