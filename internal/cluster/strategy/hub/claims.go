package hub

import (
	"slices"

	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/central"
	"kumo/internal/cluster/strategy/central/hosttable"
)

// Probed handles the result of a node's probe.
func (p *policy) Probed(b central.ProbeReport) {
	p.latencies.record(b.Host, b.Network, b.From, b.OK, b.Took.Microseconds())
	p.receiverProbed(b)
	r := p.Row(b.Host)
	switch owner, free := p.Owner(r); {
	case owner == "" && b.Holds:
		p.ResolveHolder(b.From, b.Host)
	case b.OK:
		p.handleClaim(b, r, owner, free)
	default:
		p.handleFailure(b, r, owner, free)
	}
}

// handleClaim handles the report of a node that it reaches a host.
func (p *policy) handleClaim(b central.ProbeReport, r hosttable.Row, owner strategy.Node, free bool) {
	from := b.From
	switch {
	case owner == from:
		if r.State == central.Parked {
			r.State, r.Round = central.Reached, 0
			p.Set(b.Host, r)
			p.finish(b.Host, from)
		}
		p.ReplyByRow(from, b.Host, owner, r)
	case owner != "" && r.State == central.Parked: // the owner does not reach it
		p.Set(b.Host, hosttable.Row{Owner: from, State: central.Promised})
		p.finish(b.Host, from)
		p.ReplyOwner(owner, b.Host, from)
		p.ReplyWaitDurable(from, b.Host, p.cfg.DecisionWait)
	case owner != "":
		p.ReplyByRow(from, b.Host, owner, r)
	case !free:
		p.ReplyWait(from, b.Host, p.cfg.DecisionWait)
	default:
		t := p.search(b.Host, "", r)
		if !slices.ContainsFunc(t.claims, func(c claim) bool { return c.by == from }) {
			t.claims = append(t.claims, claim{from, b.Took})
		}
		p.dropProbe(t, from)
		if len(t.claims) == 1 {
			t.decideBy = p.Now().Add(p.cfg.Window)
			p.deciding = append(p.deciding, t)
		}
		if len(t.probes) == 0 {
			p.choose(t)
			return
		}
		p.ReplyWait(from, b.Host, 2*p.cfg.Window)
	}
}

// handleFailure handles the report of a node that it does not reach a host.
func (p *policy) handleFailure(b central.ProbeReport, r hosttable.Row, owner strategy.Node, free bool) {
	from := b.From
	switch {
	case owner != "" && r.State != central.Parked:
		p.ReplyByRow(from, b.Host, owner, r)
		return
	case owner == "" && !free:
		p.ReplyWait(from, b.Host, p.cfg.DecisionWait)
		return
	}
	t := p.search(b.Host, owner, r)
	if t.network == "" {
		t.network = b.Network
	}
	if owner == "" || owner == from {
		t.addWaiter(from)
	}
	p.dropProbe(t, from)
	if !slices.Contains(t.failed, from) {
		t.failed = append(t.failed, from)
	}
	if owner != "" && owner != from {
		p.ReplyOwner(from, b.Host, owner) // no other action is needed
	} else {
		p.ReplyWait(from, b.Host, p.cfg.DecisionWait)
	}
	p.resume(t)
}
