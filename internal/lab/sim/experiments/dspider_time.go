package experiments

import (
	"time"

	"kumo/internal/lab/sim/queue"
)

// A tick is the paper's unit of time, T. It is chosen so that a timeout of five T is as long as in a real crawl.
const tick = time.Second

// forever is later than the end of any run.
const forever = queue.Forever

// ticks returns a duration of t T.
func ticks(t float64) time.Duration { return time.Duration(t * float64(tick)) }

func inTicks(d time.Duration) float64 { return float64(d) / float64(tick) }

// A sharedLink is a link whose bandwidth is shared evenly by its transfers. It keeps the sum of what each transfer has
// received, so that a transfer starts or ends without work for the others.
type sharedLink struct {
	bandwidth   float64 // f/T
	perTransfer float64 // f received until at by a transfer that has run since the beginning
	at          time.Duration
	transfers   queue.Heap[transfer]
	nextEnd     time.Duration // when the first transfer ends, if no other starts
	moved       float64       // f in total
}

type transfer struct {
	end   float64 // value of perTransfer at which it ends
	place int32   // place of the file
}

func newSharedLink(width float64) *sharedLink { return &sharedLink{bandwidth: width, nextEnd: forever} }

func (p *sharedLink) begin(now time.Duration, size float64, place int32) {
	p.advance(now)
	p.transfers.Push(transfer{p.perTransfer + size, place})
	p.updateEnd()
}

// Before reports whether t ends first.
func (t transfer) Before(o transfer) bool {
	return t.end < o.end || t.end == o.end && t.place < o.place
}

func (p *sharedLink) finish() (place int32) {
	first := p.transfers[0]
	p.moved += float64(len(p.transfers)) * (first.end - p.perTransfer)
	p.perTransfer, p.at = first.end, p.nextEnd
	p.transfers.Pop()
	if len(p.transfers) == 0 {
		p.perTransfer = 0 // avoids the loss of precision of a large sum
	}
	p.updateEnd()
	return first.place
}

// advance advances the time. No transfer may end before it.
func (p *sharedLink) advance(now time.Duration) {
	if n := float64(len(p.transfers)); n > 0 {
		// the conversion prevents a fused multiply-add, so that all machines give the same result
		more := float64(inTicks(now-p.at) * p.bandwidth)
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
