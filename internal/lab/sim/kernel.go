package sim

import (
	"math/rand/v2"
	"time"

	"kumo/internal/lab/sim/queue"
)

// began is what a right clock shows when a run begins.
var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// A moment is a time since a run began, in nanoseconds.
type moment = time.Duration

// forever is later than any run ends.
const forever = queue.Forever

// A kernel is virtual time: things happen in order of their moments, and in the order they were asked for where those
// are the same.
type kernel struct {
	now        moment
	timed      queue.Agenda[event]
	immediate  queue.FIFO[event] // due now; they come after what later has for this moment, as they were asked for later
	rng        *rand.Rand
	eventCount uint64 // events
}

// An event is something that happens. With a doer it is that one's own doing.
type event struct {
	owner eventOwner
	f     func()
}

// A doer is a process: what it was about to do it does not if it has ended, and later if it is paused.
type eventOwner interface{ do(f func()) }

func newKernel(seed uint64) *kernel {
	return &kernel{rng: rand.New(rand.NewPCG(seed, 0x6b756d6f))}
}

func (k *kernel) after(d time.Duration, f func()) { k.schedule(nil, d, f) }

// schedule asks for f to be called as a process's doing, if by is one.
func (k *kernel) schedule(by eventOwner, d time.Duration, f func()) {
	if d <= 0 {
		k.immediate.Push(event{by, f})
		return
	}
	k.timed.Put(k.now+d, event{by, f})
}

// run lets time pass up to a moment, or to where nothing is left to happen, or stop says so.
func (k *kernel) run(until moment, stop func() bool) {
	for !stop() {
		var e event
		switch at := k.timed.Next(); {
		case k.immediate.Len() > 0 && at > k.now:
			e = k.immediate.Pop()
		case at > until || at == forever:
			k.now = max(k.now, until)
			return
		default:
			k.now, e = at, k.timed.Take()
		}
		k.eventCount++
		if e.owner == nil {
			e.f()
		} else {
			e.owner.do(e.f)
		}
	}
}

// uniform draws a time from low to high, evenly.
func (k *kernel) uniform(low, high time.Duration) time.Duration {
	if high <= low {
		return low
	}
	return low + time.Duration(k.rng.Int64N(int64(high-low)))
}

// exponential draws a time around a mean, exponentially: most are shorter, some much longer, none longer than eight times the
// mean.
func (k *kernel) exponential(mean time.Duration) time.Duration {
	return min(time.Duration(k.rng.ExpFloat64()*float64(mean)), 8*mean)
}

func (k *kernel) chance(p float64) bool { return p > 0 && k.rng.Float64() < p }
