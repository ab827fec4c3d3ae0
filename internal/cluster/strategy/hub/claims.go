package hub

import (
	"slices"

	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/central"
	"kumo/internal/cluster/strategy/central/hosttable"
)

// Probed is told whether a node reaches a host.
func (p *policy) Probed(b central.Probed) {
	p.near.learn(b.Host, b.Network, b.From, b.OK, b.Took.Microseconds())
	p.reached(b)
	r := p.Row(b.Host)
	switch owner, free := p.Owner(r); {
	case owner == "" && b.Holds:
		p.Holds(b.From, b.Host)
	case b.OK:
		p.claims(b, r, owner, free)
	default:
		p.fails(b, r, owner, free)
	}
}

// claims is told that a node reaches a host.
func (p *policy) claims(b central.Probed, r hosttable.Row, owner strategy.Node, free bool) {
	from := b.From
	switch {
	case owner == from:
		if r.State == central.Parked {
			r.State, r.Round = central.Reached, 0
			p.Set(b.Host, r)
			p.conclude(b.Host, from)
		}
		p.TellOwner(from, b.Host, owner, r)
	case owner != "" && r.State == central.Parked: // who owns it does not reach it
		p.Set(b.Host, hosttable.Row{Owner: from, State: central.Promised})
		p.conclude(b.Host, from)
		p.Theirs(owner, b.Host, from)
		p.WaitAfter(from, b.Host, p.cfg.Wait)
	case owner != "":
		p.TellOwner(from, b.Host, owner, r)
	case !free:
		p.Wait(from, b.Host, p.cfg.Wait)
	default:
		t := p.search(b.Host, "", r)
		if !slices.ContainsFunc(t.claims, func(c claim) bool { return c.by == from }) {
			t.claims = append(t.claims, claim{from, b.Took})
		}
		p.unask(t, from)
		if len(t.claims) == 1 {
			t.until = p.Now().Add(p.cfg.Window)
			p.deciding = append(p.deciding, t)
		}
		if len(t.asked) == 0 {
			p.choose(t)
			return
		}
		p.Wait(from, b.Host, 2*p.cfg.Window)
	}
}

// fails is told that it does not.
func (p *policy) fails(b central.Probed, r hosttable.Row, owner strategy.Node, free bool) {
	from := b.From
	switch {
	case owner != "" && r.State != central.Parked:
		p.TellOwner(from, b.Host, owner, r)
		return
	case owner == "" && !free:
		p.Wait(from, b.Host, p.cfg.Wait)
		return
	}
	t := p.search(b.Host, owner, r)
	if t.network == "" {
		t.network = b.Network
	}
	if owner == "" || owner == from {
		t.want(from)
	}
	p.unask(t, from)
	if !slices.Contains(t.failed, from) {
		t.failed = append(t.failed, from)
	}
	if owner != "" && owner != from {
		p.Theirs(from, b.Host, owner) // it need not do more
	} else {
		p.Wait(from, b.Host, p.cfg.Wait)
	}
	p.goOn(t)
}
