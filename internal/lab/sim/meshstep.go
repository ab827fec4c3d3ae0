package sim

import (
	"time"

	"kumo/internal/cluster/member/peer"
)

// A stepper runs a process's peer: it delivers events and timer ticks.
type stepper struct {
	lifecycle
	peer      *peer.Peer
	onActions func([]peer.Action)
	processor func() time.Duration // as in MeshConfig
	stepTime  *time.Duration       // total time of all steps, measured by processor

	inbox       []peer.Event
	actions     []peer.Action
	stepping    bool
	wakeTime    moment        // when the peer wants a Tick
	timerAt     moment        // time of the next check for a Tick, at most wakeTime; 0: none
	clockOffset time.Duration // how far the process's clock has jumped ahead
}

func (p *stepper) now() time.Time { return began.Add(p.k.now + p.clockOffset) }

// deliver passes an event to the peer, after all earlier events.
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

// setTimer schedules the peer's Tick.
func (p *stepper) setTimer() {
	p.timerAt = max(p.wakeTime, p.k.now)
	p.after(p.timerAt-p.k.now, p.tick)
}

// tick delivers a Tick, or reschedules it if the peer has postponed it.
func (p *stepper) tick() {
	switch now := p.k.now; {
	case p.timerAt == 0 || now < p.timerAt: // superseded by a later timer
	case p.wakeTime > now:
		p.setTimer()
	default:
		p.timerAt = 0
		p.deliver(peer.Tick{})
	}
}

// leap moves the process's clock ahead at once, as when the wall clock is set or the machine was suspended.
func (p *stepper) leap(d time.Duration) {
	p.do(func() {
		p.clockOffset += d
		p.wakeTime -= d
		p.setTimer()
	})
}
