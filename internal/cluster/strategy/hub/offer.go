package hub

import (
	"time"

	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/central"
)

// An offer is a host that a node would hand over.
type offer struct {
	from, to strategy.Node
	until    time.Time // the taker is waited for
	answered bool
	ok       bool // the taker reaches it, and is near enough
}

// Offered decides on a host that a node offers.
func (p *policy) Offered(is central.Offer) {
	o := p.offers[is.Host]
	switch {
	case p.cfg.Level < 0 || !p.Alive(is.To) || is.To == is.From || p.Stays(is.Row, is.To, p.cfg.Stay):
		p.refuse(is)
	case o == nil || o.from != is.From || o.to != is.To:
		p.offers[is.Host] = &offer{from: is.From, to: is.To, until: p.Now().Add(2*p.cfg.Timeout + 4*p.cfg.Retry)}
		p.askTaker(is)
	case o.ok:
		delete(p.offers, is.Host)
		if p.level.vain = 0; p.level.begun.IsZero() {
			p.level.begun = p.Now()
		}
		p.Promise(is)
	case o.answered || !o.until.After(p.Now()):
		p.refuse(is)
	default:
		p.askTaker(is) // once more, if it was lost
	}
}

// Withdrawn forgets an offer.
func (p *policy) Withdrawn(host string) { delete(p.offers, host) }

func (p *policy) askTaker(is central.Offer) {
	p.Probe(is.To, is.Host, 0)
	p.Wait(is.From, is.Host, p.cfg.Window)
}

func (p *policy) refuse(is central.Offer) {
	delete(p.offers, is.Host)
	p.Yours(is.From, is.Host)
}

// longQueue is so long that who is farther away is better than who has it.
const longQueue = 10 * time.Minute

// reached is told whether a node reaches a host, which may have been offered to it.
func (p *policy) reached(b central.Probed) {
	o := p.offers[b.Host]
	if o == nil || o.to != b.From || o.answered {
		return
	}
	o.answered, o.ok = true, b.OK
	has, known := p.near.cost(o.from, b.Host, b.Network)
	if took := float64(b.Took.Microseconds()); b.OK && known && took > 4*(has+float64(p.cfg.Alike.Microseconds())) {
		l := p.level.loads[o.from]
		o.ok = l != nil && l.lasts >= longQueue
	}
}
