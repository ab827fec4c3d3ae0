package sim

import (
	"math/rand/v2"
	"time"

	"kumo/internal/lab/sim/queue"
)

// began is the correct wall-clock time at the beginning of a run.
var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// A moment is a time since the beginning of the run.
type moment = time.Duration

// forever is later than the end of any run.
const forever = queue.Forever

// A kernel runs events in virtual time, ordered by time and then by when they were scheduled.
type kernel struct {
	now   moment
	timed queue.Agenda[event]
	// due now; they run after the events of timed for this moment, which were scheduled earlier
	immediate  queue.FIFO[event]
	rng        *rand.Rand
	eventCount uint64 // events run so far
}

// An event is a scheduled call. Its owner, if any, decides when to make it.
type event struct {
	owner eventOwner
	f     func()
}

// An eventOwner is a process: it drops the calls if it has ended, and delays them while it is paused.
type eventOwner interface{ do(f func()) }

func newKernel(seed uint64) *kernel {
	return &kernel{rng: rand.New(rand.NewPCG(seed, 0x6b756d6f))}
}

func (k *kernel) after(d time.Duration, f func()) { k.schedule(nil, d, f) }

// schedule schedules f. A non-nil by is the process that calls it.
func (k *kernel) schedule(by eventOwner, d time.Duration, f func()) {
	if d <= 0 {
		k.immediate.Push(event{by, f})
		return
	}
	k.timed.Put(k.now+d, event{by, f})
}

// run runs events up to a time, until none is left, or until stop returns true.
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

// uniform draws a uniformly distributed time from low to high.
func (k *kernel) uniform(low, high time.Duration) time.Duration {
	if high <= low {
		return low
	}
	return low + time.Duration(k.rng.Int64N(int64(high-low)))
}

// exponential draws an exponentially distributed time, at most eight times the mean.
func (k *kernel) exponential(mean time.Duration) time.Duration {
	return min(time.Duration(k.rng.ExpFloat64()*float64(mean)), 8*mean)
}

func (k *kernel) chance(p float64) bool { return p > 0 && k.rng.Float64() < p }
