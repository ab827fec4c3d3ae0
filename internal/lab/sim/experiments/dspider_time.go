package experiments

import (
	"time"

	"kumo/internal/lab/sim/queue"
)

// A tick is the paper's unit of time, T, as long as a timeout of five of them is in a real crawl.
const tick = time.Second

// forever is later than any run ends.
const forever = queue.Forever

// ticks is a duration of so many T.
func ticks(t float64) time.Duration { return time.Duration(t * float64(tick)) }

func inTicks(d time.Duration) float64 { return float64(d) / float64(tick) }

// A pipe is a link whose bandwidth is shared evenly by the transfers that run over it. What each of them has got since
// it began is the growth of one sum, so that a transfer that comes or goes costs no look at the others.
type pipe struct {
	width float64 // f a T
	got   float64 // f that a transfer has got that ran from the beginning until at
	at    time.Duration
	runs  queue.Heap[transfer]
	ends  time.Duration // when the first of them ends, as things are
	moved float64       // f in all
}

type transfer struct {
	end   float64 // of got
	place int32   // who waits for it
}

func newPipe(width float64) *pipe { return &pipe{width: width, ends: forever} }

func (p *pipe) begin(now time.Duration, size float64, place int32) {
	p.pass(now)
	p.runs.Push(transfer{p.got + size, place})
	p.plan()
}

// Before reports whether it ends first.
func (t transfer) Before(o transfer) bool {
	return t.end < o.end || t.end == o.end && t.place < o.place
}

func (p *pipe) finish() (place int32) {
	first := p.runs[0]
	p.moved += float64(len(p.runs)) * (first.end - p.got)
	p.got, p.at = first.end, p.ends
	p.runs.Pop()
	if len(p.runs) == 0 {
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
