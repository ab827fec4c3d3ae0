package sim

import (
	"time"

	"kumo/internal/cluster/member/peer"
)

// A stepper tells a process's peer what happens, and the time.
type stepper struct {
	life
	peer      *peer.Peer
	act       func([]peer.Action)
	processor func() time.Duration // as in MeshConfig
	took      *time.Duration       // all steps, by that

	inbox    []peer.Event
	acts     []peer.Action
	stepping bool
	wake     moment        // when the peer wants a Tick
	armed    moment        // when it is seen to next, not after that; 0: never
	ahead    time.Duration // of the process's clock, by which it has leapt
}

func (p *stepper) now() time.Time { return began.Add(p.k.now + p.ahead) }

// tell tells the peer something, after all that it has been told.
func (p *stepper) tell(e peer.Event) {
	p.inbox = append(p.inbox, e)
	if p.stepping {
		return
	}
	p.stepping = true
	for len(p.inbox) > 0 {
		in := p.inbox
		p.inbox = nil
		begin := p.measure()
		p.acts = p.peer.Step(p.now(), in, p.acts[:0])
		*p.took += p.measure() - begin
		p.act(p.acts)
		clear(in)
		if p.inbox == nil {
			p.inbox = in[:0]
		}
	}
	p.stepping = false
}

func (p *stepper) measure() time.Duration {
	if p.processor == nil {
		return 0
	}
	return p.processor()
}

func (p *stepper) wakeAt(at time.Time) {
	if p.wake = at.Sub(began) - p.ahead; p.armed == 0 || p.wake < p.armed {
		p.arm()
	}
}

// arm sees to it that the peer gets a Tick.
func (p *stepper) arm() {
	p.armed = max(p.wake, p.k.now)
	p.after(p.armed-p.k.now, p.tick)
}

// tick gives the peer its Tick. Where that has been put off it sees to it again.
func (p *stepper) tick() {
	switch now := p.k.now; {
	case p.armed == 0 || now < p.armed: // another one was asked for since
	case p.wake > now:
		p.arm()
	default:
		p.armed = 0
		p.tell(peer.Tick{})
	}
}

// leap lets the clock of the process go ahead at once, as when its wall clock is set, or its machine was suspended.
func (p *stepper) leap(d time.Duration) {
	p.do(func() {
		p.ahead += d
		p.wake -= d
		p.arm()
	})
}
