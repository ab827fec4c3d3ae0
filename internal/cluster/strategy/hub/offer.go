package hub

import (
	"time"

	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/central"
)

// An offer is a host that its owner offers to another node.
type offer struct {
	from, to strategy.Node
	until    time.Time // limit of the wait for the receiver's probe
	answered bool
	reached  bool // the receiver reaches the host, and is near enough
}

// Offered decides on an offer, after the receiver has probed the host.
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
		p.probeReceiver(is) // again, in case the request was lost
	}
}

// Withdrawn drops an offer.
func (p *policy) Withdrawn(host string) { delete(p.offers, host) }

func (p *policy) probeReceiver(is central.Offer) {
	p.RequestProbe(is.To, is.Host, 0)
	p.ReplyWait(is.From, is.Host, p.cfg.Window)
}

func (p *policy) refuse(is central.Offer) {
	delete(p.offers, is.Host)
	p.ReplyOwned(is.From, is.Host)
}

// longQueue is the queue time from which a more distant node is better than the owner.
const longQueue = 10 * time.Minute

// receiverProbed handles a probe's result if the host is offered to that node.
func (p *policy) receiverProbed(b central.ProbeReport) {
	o := p.offers[b.Host]
	if o == nil || o.to != b.From || o.answered {
		return
	}
	o.answered, o.reached = true, b.OK
	has, known := p.latencies.cost(o.from, b.Host, b.Network)
	took, similar := float64(b.Took.Microseconds()), float64(p.cfg.SimilarLatency.Microseconds())
	if b.OK && known && took > 4*(has+similar) {
		l := p.balancer.loads[o.from]
		o.reached = l != nil && l.queueTime >= longQueue
	}
}
