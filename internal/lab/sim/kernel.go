package sim

import (
	"math/rand/v2"
	"time"
)

// began is what a right clock shows when a run begins.
var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// A moment is a time since a run began, in nanoseconds.
type moment = time.Duration

// forever is later than any run ends.
const forever = moment(1) << 62

// A kernel is virtual time: things happen in order of their moments, and in the order they were asked for where those
// are the same.
type kernel struct {
	now  moment
	heap []due
	soon line // due now; they come after what is in the heap for this moment, because they were asked for later
	seq  uint64
	rng  *rand.Rand
	ran  uint64 // events
}

// due is something that happens at a moment. With a doer it is that one's own doing.
type due struct {
	at  moment
	seq uint64
	by  doer
	f   func()
}

// A doer is a process: what it was about to do it does not if it has ended, and later if it is paused.
type doer interface{ do(f func()) }

// A line is events in the order in which they are due, which is that of their coming.
type line struct {
	events []due
	next   int
}

func (l *line) put(d due) { l.events = append(l.events, d) }

func (l *line) empty() bool { return l.next == len(l.events) }

func (l *line) take() due {
	d := l.events[l.next]
	l.events[l.next] = due{}
	if l.next++; l.empty() {
		l.events, l.next = l.events[:0], 0
	}
	return d
}

func newKernel(seed uint64) *kernel {
	return &kernel{rng: rand.New(rand.NewPCG(seed, 0x6b756d6f))}
}

// after asks for f to be called when d has passed.
func (k *kernel) after(d time.Duration, f func()) { k.within(nil, d, f) }

// within asks for f to be called as a process's doing, if by is one.
func (k *kernel) within(by doer, d time.Duration, f func()) {
	k.seq++
	e := due{at: k.now + d, seq: k.seq, by: by, f: f}
	if d <= 0 {
		e.at = k.now
		k.soon.put(e)
		return
	}
	k.push(e)
}

// next takes the event that is to happen next, if it is to happen until a moment.
func (k *kernel) next(until moment) (due, bool) {
	if !k.soon.empty() && (len(k.heap) == 0 || k.heap[0].at > k.now) {
		return k.soon.take(), true
	}
	if len(k.heap) == 0 || k.heap[0].at > until {
		return due{}, false
	}
	return k.pop(), true
}

// run lets time pass up to a moment, or to where nothing is left to happen, or stop says so.
func (k *kernel) run(until moment, stop func() bool) {
	for !stop() {
		d, ok := k.next(until)
		if !ok {
			k.now = max(k.now, until)
			return
		}
		k.now = d.at
		k.ran++
		if d.by == nil {
			d.f()
		} else {
			d.by.do(d.f)
		}
	}
}

func (d due) before(e due) bool { return d.at < e.at || d.at == e.at && d.seq < e.seq }

// push puts an event into the heap, of which each node has four children: half as deep as one with two, and a cache
// line's worth.
func (k *kernel) push(d due) {
	k.heap = append(k.heap, d)
	h := k.heap
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 4
		if !d.before(h[up]) {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = d
}

func (k *kernel) pop() due {
	h := k.heap
	top, last := h[0], h[len(h)-1]
	h[len(h)-1] = due{}
	h = h[:len(h)-1]
	k.heap = h
	if len(h) > 0 {
		k.sink(last)
	}
	return top
}

// sink puts d where the heap's first was.
func (k *kernel) sink(d due) {
	h, i := k.heap, 0
	for {
		least := 4*i + 1
		if least >= len(h) {
			break
		}
		for c := least + 1; c < min(4*i+5, len(h)); c++ {
			if h[c].before(h[least]) {
				least = c
			}
		}
		if !h[least].before(d) {
			break
		}
		h[i] = h[least]
		i = least
	}
	h[i] = d
}

// between draws a time from low to high, evenly.
func (k *kernel) between(low, high time.Duration) time.Duration {
	if high <= low {
		return low
	}
	return low + time.Duration(k.rng.Int64N(int64(high-low)))
}

// about draws a time around a mean, exponentially: most are shorter, some much longer, none longer than eight times the
// mean.
func (k *kernel) about(mean time.Duration) time.Duration {
	return min(time.Duration(k.rng.ExpFloat64()*float64(mean)), 8*mean)
}

func (k *kernel) chance(p float64) bool { return p > 0 && k.rng.Float64() < p }
