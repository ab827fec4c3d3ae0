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
	reached  bool // the taker reaches it, and is near enough
}

// Offered decides on a host that a node offers.
func (p *policy) Offered(is central.Offer) {
	o := p.offers[is.Host]
	switch {
	case p.cfg.BalanceInterval < 0 || !p.Alive(is.To) || is.To == is.From || p.MovedRecently(is.Row, is.To, p.cfg.MinStay):
		p.refuse(is)
	case o == nil || o.from != is.From || o.to != is.To:
		p.offers[is.Host] = &offer{from: is.From, to: is.To, until: p.Now().Add(2*p.cfg.Timeout + 4*p.cfg.Retry)}
		p.probeReceiver(is)
	case o.reached:
		delete(p.offers, is.Host)
		if p.balancer.fruitless = 0; p.balancer.moveBegan.IsZero() {
			p.balancer.moveBegan = p.Now()
		}
		p.Promise(is)
	case o.answered || !o.until.After(p.Now()):
		p.refuse(is)
	default:
		p.probeReceiver(is) // once more, if it was lost
	}
}

// Withdrawn forgets an offer.
func (p *policy) Withdrawn(host string) { delete(p.offers, host) }

func (p *policy) probeReceiver(is central.Offer) {
	p.RequestProbe(is.To, is.Host, 0)
	p.ReplyWait(is.From, is.Host, p.cfg.Window)
}

func (p *policy) refuse(is central.Offer) {
	delete(p.offers, is.Host)
	p.ReplyOwned(is.From, is.Host)
}

// longQueue is so long that who is farther away is better than who has it.
const longQueue = 10 * time.Minute

// receiverProbed is told whether a node reaches a host, which may have been offered to it.
func (p *policy) receiverProbed(b central.ProbeReport) {
	o := p.offers[b.Host]
	if o == nil || o.to != b.From || o.answered {
		return
	}
	o.answered, o.reached = true, b.OK
	has, known := p.latencies.cost(o.from, b.Host, b.Network)
	if took := float64(
		b.Took.Microseconds(),
	); b.OK && known &&
		took > 4*(has+float64(p.cfg.SimilarLatency.Microseconds())) {
		l := p.balancer.loads[o.from]
		o.reached = l != nil && l.queueTime >= longQueue
	}
}
