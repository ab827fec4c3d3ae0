package sim

import (
	"time"

	"kumo/internal/cluster/member/peer"
)

// A stepper tells a process's peer what happens, and the time.
type stepper struct {
	lifecycle
	peer      *peer.Peer
	onActions func([]peer.Action)
	processor func() time.Duration // as in MeshConfig
	stepTime  *time.Duration       // all steps, by that

	inbox       []peer.Event
	actions     []peer.Action
	stepping    bool
	wakeTime    moment        // when the peer wants a Tick
	timerAt     moment        // when it is seen to next, not after that; 0: never
	clockOffset time.Duration // of the process's clock, by which it has leapt
}

func (p *stepper) now() time.Time { return began.Add(p.k.now + p.clockOffset) }

// tell tells the peer something, after all that it has been told.
func (p *stepper) deliver(e peer.Event) {
	p.inbox = append(p.inbox, e)
	if p.stepping {
		return
	}
	p.stepping = true
	for len(p.inbox) > 0 {
		in := p.inbox
		p.inbox = nil
		begin := p.processorTime()
		p.actions = p.peer.Step(p.now(), in, p.actions[:0])
		*p.stepTime += p.processorTime() - begin
		p.onActions(p.actions)
		clear(in)
		if p.inbox == nil {
			p.inbox = in[:0]
		}
	}
	p.stepping = false
}

func (p *stepper) processorTime() time.Duration {
	if p.processor == nil {
		return 0
	}
	return p.processor()
}

func (p *stepper) wakeAt(at time.Time) {
	if p.wakeTime = at.Sub(began) - p.clockOffset; p.timerAt == 0 || p.wakeTime < p.timerAt {
		p.setTimer()
	}
}

// arm sees to it that the peer gets a Tick.
func (p *stepper) setTimer() {
	p.timerAt = max(p.wakeTime, p.k.now)
	p.after(p.timerAt-p.k.now, p.tick)
}

// tick gives the peer its Tick. Where that has been put off it sees to it again.
func (p *stepper) tick() {
	switch now := p.k.now; {
	case p.timerAt == 0 || now < p.timerAt: // another one was asked for since
	case p.wakeTime > now:
		p.setTimer()
	default:
		p.timerAt = 0
		p.deliver(peer.Tick{})
	}
}

// leap lets the clock of the process go ahead at once, as when its wall clock is set, or its machine was suspended.
func (p *stepper) leap(d time.Duration) {
	p.do(func() {
		p.clockOffset += d
		p.wakeTime -= d
		p.setTimer()
	})
}
