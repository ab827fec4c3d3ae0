package quorum

import (
	"maps"
	"time"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
)

// An ownership guards the decision which hosts this node may use: it places hosts under each epoch since the last
// finalized one, and publishes the View that workers query.
//
// Its output is the action Publish. Invariant: this node uses no host that another node may still hold. So until all
// expected transfers of the epoch are complete, it uses only hosts that it owned under all epochs since the last
// complete one.
type ownership struct {
	env    *env
	placer strategy.Placer
	moves  func(epoch uint64, from strategy.Node) map[string]strategy.Node // single hosts that move

	started      bool // the node is a member
	until        time.Time
	route        strategy.View        // owners, if the strategy is no Placer
	places       map[uint64]placement // by epoch, from the last finalized one
	received     uint64               // last epoch whose expected transfers are all complete
	acknowledged uint64               // last such epoch that the strategy has acknowledged; a Placer does not need to
	view         *View
}

// start begins with the hosts of the last finalized epoch.
func (o *ownership) start() {
	o.started = true
	o.received, o.acknowledged = o.env.table.Finalized, o.env.table.Finalized
}

func (o *ownership) newEpoch() {
	t := o.env.table
	for e := t.Finalized; e <= t.Epoch; e++ {
		if o.places[e] == nil {
			o.places[e] = o.place(e)
		}
	}
	o.received = max(o.received, t.Finalized)
}

func (o *ownership) epochFinalized() {
	s := o.env.table.Finalized
	maps.DeleteFunc(o.places, func(e uint64, _ placement) bool { return e < s })
	o.received, o.acknowledged = max(o.received, s), max(o.acknowledged, s)
}

func (o *ownership) place(epoch uint64) placement {
	members := o.env.table.membersAt(epoch)
	if o.placer != nil {
		return placerPlacement{o.placer.Place(members)}
	}
	return stickyPlacement{members, func(from strategy.Node) map[string]strategy.Node { return o.moves(epoch, from) }}
}

// destination returns where a node's hosts go under an epoch.
func (o *ownership) destination(epoch uint64, from strategy.Node) destination {
	return o.places[epoch].of(from)
}

// placed reports whether an epoch's placement is still known: it is no earlier than the last finalized epoch.
func (o *ownership) placed(epoch uint64) bool { return o.places[epoch] != nil }

// complete applies that all expected transfers of the epoch are complete.
func (o *ownership) complete() {
	if epoch := o.env.table.Epoch; o.received < epoch && o.env.table.has(o.env.self) {
		o.received = epoch
		o.publish()
		if o.placer == nil {
			o.env.do(member.AllReceived{Epoch: epoch})
		}
	}
}

func (o *ownership) acknowledge(epoch uint64) { o.acknowledged = max(o.acknowledged, epoch) }

// known reports whether this node, if it is a member, has all its hosts, and the strategy has acknowledged them.
func (o *ownership) known() bool {
	epoch := o.env.table.Epoch
	return o.received >= epoch && (o.placer != nil || o.acknowledged >= epoch) || !o.env.table.has(o.env.self)
}

func (o *ownership) setRoute(v strategy.View) {
	o.route = v
	o.publish()
}

// extend applies a renewal of the node's lease.
func (o *ownership) extend(until time.Time) {
	o.until = until
	o.publish()
}

// publish replaces the view that workers query.
func (o *ownership) publish() {
	if !o.started {
		return
	}
	t := o.env.table
	o.view = &View{self: o.env.self, epoch: t.Epoch, until: o.until, owner: o.route, in: t.has(o.env.self)}
	if o.placer != nil {
		o.view.owner = o.places[t.Epoch].(placerPlacement).view
		for e := o.received; e < t.Epoch; e++ {
			o.view.past = append(o.view.past, o.places[e].(placerPlacement).view)
		}
	}
	o.env.do(member.Publish{View: o.view})
}

// end publishes a view without hosts.
func (o *ownership) end() {
	o.view = &View{self: o.env.self, epoch: o.view.epoch}
	o.env.do(member.Publish{View: o.view})
}

// A placement returns the destinations of a node's hosts under one epoch.
type placement interface {
	of(from strategy.Node) destination
}

// A destination returns the node to which one node transfers a host; "" if the host stays. Any goroutine may call it.
type destination func(host string) strategy.Node

// A placerPlacement is the placement of a Placer: hosts move to their owners.
type placerPlacement struct{ view strategy.View }

func (p placerPlacement) of(from strategy.Node) destination {
	return func(host string) strategy.Node {
		if owner, state := p.view.Owner(host); state == strategy.Owned && owner != from {
			return owner
		}
		return ""
	}
}

// A stickyPlacement is the placement under strategies that are no Placers: members keep their hosts, except single
// hosts that move to other members. Hosts of departed nodes go to fallback owners, unless they were about to move.
type stickyPlacement struct {
	members []strategy.Member
	moves   func(from strategy.Node) map[string]strategy.Node
}

func (k stickyPlacement) of(from strategy.Node) destination {
	_, stays := find(k.members, from)
	moves := k.moves(from)
	return func(host string) strategy.Node {
		to := moves[host]
		if _, there := find(k.members, to); !there { // the target may have died
			if to = ""; !stays {
				to = fallbackOwner(k.members, host)
			}
		}
		if to == from {
			return ""
		}
		return to
	}
}

// fallbackOwner returns the member that receives a departed node's host; "" without members. It spreads hosts over all
// members, and all nodes compute the same.
func fallbackOwner(members []strategy.Member, host string) strategy.Node {
	if len(members) == 0 {
		return ""
	}
	return members[hashOf(host)%uint64(len(members))].Node
}

// A shift is the set of hosts that a change of the members moves.
type shift uint8

const (
	shiftsAny   shift = iota // between any two nodes
	shiftsLeast              // to new members, and from departed ones
	shiftsNone               // from departed members, and single hosts
)

func (c *Config) shift() shift {
	switch {
	case c.Place == nil:
		return shiftsNone
	case c.Place.Minimal():
		return shiftsLeast
	}
	return shiftsAny
}
