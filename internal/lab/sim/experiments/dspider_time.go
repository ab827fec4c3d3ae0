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
type sharedLink struct {
	bandwidth   float64 // f a T
	perTransfer float64 // f that a transfer has got that ran from the beginning until at
	at          time.Duration
	transfers   queue.Heap[transfer]
	nextEnd     time.Duration // when the first of them ends, as things are
	moved       float64       // f in all
}

type transfer struct {
	end   float64 // of got
	place int32   // who waits for it
}

func newSharedLink(width float64) *sharedLink { return &sharedLink{bandwidth: width, nextEnd: forever} }

func (p *sharedLink) begin(now time.Duration, size float64, place int32) {
	p.advance(now)
	p.transfers.Push(transfer{p.perTransfer + size, place})
	p.updateEnd()
}

// Before reports whether it ends first.
func (t transfer) Before(o transfer) bool {
	return t.end < o.end || t.end == o.end && t.place < o.place
}

func (p *sharedLink) finish() (place int32) {
	first := p.transfers[0]
	p.moved += float64(len(p.transfers)) * (first.end - p.perTransfer)
	p.perTransfer, p.at = first.end, p.nextEnd
	p.transfers.Pop()
	if len(p.transfers) == 0 {
		p.perTransfer = 0 // so that it does not lose digits as it grows
	}
	p.updateEnd()
	return first.place
}

// advance lets time pass, in which no transfer ends.
func (p *sharedLink) advance(now time.Duration) {
	if n := float64(len(p.transfers)); n > 0 {
		more := float64(inTicks(now-p.at) * p.bandwidth) // the conversion keeps this a rounded product on any machine
		p.perTransfer += more / n
		p.moved += more
	}
	p.at = now
}

func (p *sharedLink) updateEnd() {
	if len(p.transfers) == 0 {
		p.nextEnd = forever
		return
	}
	left := max(0, p.transfers[0].end-p.perTransfer)
	wait := float64(left*float64(len(p.transfers))) / p.bandwidth
	p.nextEnd = p.at + ticks(wait) + 1
}
