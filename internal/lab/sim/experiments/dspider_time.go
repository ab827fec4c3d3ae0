package experiments

import "time"

// A tick is the paper's unit of time, T, as long as a timeout of five of them is in a real crawl.
const tick = time.Second

// forever is later than any run ends.
const forever = time.Duration(1) << 62

// ticks is a duration of so many T.
func ticks(t float64) time.Duration { return time.Duration(t * float64(tick)) }

// inTicks is a duration in T.
func inTicks(d time.Duration) float64 { return float64(d) / float64(tick) }

// An agenda holds what is to happen, in order of its moment, and in the order in which it was put there where those are
// the same. Entries are plain data, so that the millions of a run cost no allocation each, as those of package sim,
// functions, would.
type agenda[E any] struct {
	heap []entry[E]
	seq  uint64
}

type entry[E any] struct {
	at   time.Duration
	seq  uint64
	what E
}

func (e *entry[E]) before(o *entry[E]) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

// next is the moment of the first entry.
func (a *agenda[E]) next() time.Duration {
	if len(a.heap) == 0 {
		return forever
	}
	return a.heap[0].at
}

func (a *agenda[E]) put(at time.Duration, what E) {
	a.seq++
	e := entry[E]{at, a.seq, what}
	a.heap = append(a.heap, e)
	i := len(a.heap) - 1
	for i > 0 {
		up := (i - 1) / 4
		if !e.before(&a.heap[up]) {
			break
		}
		a.heap[i] = a.heap[up]
		i = up
	}
	a.heap[i] = e
}

func (a *agenda[E]) take() E {
	top, end := a.heap[0].what, len(a.heap)-1
	last := a.heap[end]
	a.heap[end] = entry[E]{}
	a.heap = a.heap[:end]
	if end > 0 {
		a.sink(last)
	}
	return top
}

// sink puts e where the heap's first was.
func (a *agenda[E]) sink(e entry[E]) {
	h, i := a.heap, 0
	for {
		least := 4*i + 1
		if least >= len(h) {
			break
		}
		for c := least + 1; c < min(4*i+5, len(h)); c++ {
			if h[c].before(&h[least]) {
				least = c
			}
		}
		if !h[least].before(&e) {
			break
		}
		h[i] = h[least]
		i = least
	}
	h[i] = e
}

// A pipe is a link whose bandwidth is shared evenly by the transfers that run over it. What each of them has got since
// it began is the growth of one sum, so that a transfer that comes or goes costs no look at the others.
type pipe struct {
	width float64 // f a T
	got   float64 // f that a transfer has got that ran from the beginning until at
	at    time.Duration
	runs  []transfer    // a heap by end
	ends  time.Duration // when the first of them ends, as things are
	moved float64       // f in all
}

type transfer struct {
	end   float64 // of got
	place int32   // who waits for it
}

func newPipe(width float64) *pipe { return &pipe{width: width, ends: forever} }

// begin starts a transfer.
func (p *pipe) begin(now time.Duration, size float64, place int32) {
	p.pass(now)
	t := transfer{p.got + size, place}
	p.runs = append(p.runs, t)
	i := len(p.runs) - 1
	for i > 0 && t.before(p.runs[(i-1)/2]) {
		p.runs[i] = p.runs[(i-1)/2]
		i = (i - 1) / 2
	}
	p.runs[i] = t
	p.plan()
}

func (t transfer) before(o transfer) bool {
	return t.end < o.end || t.end == o.end && t.place < o.place
}

// finish ends the transfer whose time has come.
func (p *pipe) finish() (place int32) {
	first := p.runs[0]
	p.moved += float64(len(p.runs)) * (first.end - p.got)
	p.got, p.at = first.end, p.ends
	end := len(p.runs) - 1
	last := p.runs[end]
	p.runs = p.runs[:end]
	i := 0
	for c := 1; c < end; c = 2*i + 1 {
		if c+1 < end && p.runs[c+1].before(p.runs[c]) {
			c++
		}
		if !p.runs[c].before(last) {
			break
		}
		p.runs[i] = p.runs[c]
		i = c
	}
	if end > 0 {
		p.runs[i] = last
	} else {
		p.got = 0 // so that it does not lose digits as it grows
	}
	p.plan()
	return first.place
}

// pass lets time pass, in which no transfer ends.
func (p *pipe) pass(now time.Duration) {
	if n := float64(len(p.runs)); n > 0 {
		more := float64(inTicks(now-p.at) * p.width) // the conversion keeps this a rounded product on any machine
		p.got += more / n
		p.moved += more
	}
	p.at = now
}

func (p *pipe) plan() {
	if len(p.runs) == 0 {
		p.ends = forever
		return
	}
	left := max(0, p.runs[0].end-p.got)
	wait := float64(left*float64(len(p.runs))) / p.width
	p.ends = p.at + ticks(wait) + 1
}
