package central

import (
	"time"

	"kumo/internal/base/varint"
	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/central/hosttable"
)

func (l *Leader) handleRequests(from strategy.Node, items []item) {
	if !l.alive[from] {
		return // it repeats the request, and is served once this node knows that it has joined
	}
	if from == l.silentLeader {
		l.silentLeader = ""
	}
	for i := range items {
		switch it := &items[i]; it.kind {
		case itemRequest:
			l.handleRequest(from, it)
		case itemSync:
			l.sendOwned(from, it.number)
		case itemClaim, itemFail:
			l.handleProbeReport(from, it)
		case itemHeld:
			l.ResolveHolder(from, it.host)
		case itemLoad:
			if load, ok := parseLoad(from, it.text); ok {
				l.policy.LoadReported(load)
			}
		case itemOffer:
			l.handleOffer(from, it)
		}
	}
}

// maxList is the maximum number of hosts in an itemList.
const maxList = 1000

func (l *Leader) sendOwned(to strategy.Node, cursor uint64) {
	var w varint.Writer
	next, done := l.hosts.table.Each(to, cursor, maxList, func(host string, r hosttable.Row) {
		if r.State == Promised {
			return // in transit; listed when it arrives
		}
		w.String(host)
		w.Bool(r.State == Parked)
		w.Byte(r.Round)
	})
	if done {
		next = 0
	}
	l.post(to, item{kind: itemList, number: next, text: string(w)})
}

// Owner returns the owner of a host. free reports whether the host may be assigned to a node. The hosts of a departed
// node are free when takeover nodes have received and reported all that it held.
func (l *Leader) Owner(r hosttable.Row) (owner strategy.Node, free bool) {
	switch {
	case r.Owner == "":
		return "", true
	case l.alive[r.Owner]:
		return r.Owner, false
	}
	since, known := l.departed[r.Owner]
	if !known {
		l.departed[r.Owner] = l.epoch // departed before this node had a member list
		since = l.epoch
	}
	if r.State == Promised && l.inTransit(r) {
		return "", false // the node that holds the host will report it
	}
	return "", l.settled >= since
}

// ReplyByRow informs a node of a host's owner, according to the row.
func (l *Leader) ReplyByRow(to strategy.Node, host string, owner strategy.Node, r hosttable.Row) {
	it := item{kind: itemOwner, host: host, node: owner}
	if owner == to {
		switch r.State {
		case Parked:
			it = item{kind: itemOwnedProbe, host: host, number: uint64(r.Round)}
		case Promised:
			if l.inTransit(r) {
				it = item{kind: itemWait, host: host, number: uint64(l.cfg.DecisionWait.Milliseconds())}
				l.broadcastOwner(host, owner, r)
			} else { // no node holds anything of the host
				r.State = Reached
				l.Set(host, r)
			}
		}
	}
	l.answerWhenDurable(to, it)
}

// inTransit reports whether a promised host may still arrive. While members change nothing moves; afterwards moves
// complete soon.
func (l *Leader) inTransit(r hosttable.Row) bool {
	since := l.settledAt
	if l.electedAt.After(since) {
		since = l.electedAt
	}
	// by this node's clock, or an equally correct one
	if set := time.Unix(int64(r.Since), 0); set.After(since) && !set.After(l.now) {
		since = set
	}
	return l.epoch != l.settled || l.now.Sub(since) < 2*MoveTimeout
}

func (l *Leader) handleRequest(from strategy.Node, it *item) {
	r := l.Row(it.host)
	owner, free := l.Owner(r)
	switch {
	case owner != "":
		l.ReplyByRow(from, it.host, owner, r)
	case !free:
		l.ReplyWait(from, it.host, l.cfg.DecisionWait)
	case l.Gathering():
		l.ReplyWait(from, it.host, l.cfg.GatherTime/4)
	default:
		l.policy.OwnerRequested(from, it.host, int(min(it.number, 1<<40)))
	}
}

// handleProbeReport passes the result of a node's probe to the policy.
func (l *Leader) handleProbeReport(from strategy.Node, it *item) {
	l.policy.Probed(ProbeReport{From: from, Host: it.host, OK: it.kind == itemClaim,
		Took: time.Duration(min(it.number, 1<<40)) * time.Microsecond, Network: it.text, Holds: it.node == from})
}

// ResolveHolder handles a node's report that it holds a host.
func (l *Leader) ResolveHolder(from strategy.Node, host string) {
	r := l.Row(host)
	owner, _ := l.Owner(r)
	switch {
	case owner == from && r.State == Promised:
		r.State = Reached
		l.policy.MoveCompleted(host, r)
		if r.Round&Moved != 0 && !l.movedLate(r) { // MinStay counts from the decision: a newer node may get the host
			l.setRow(host, r)
		} else {
			l.Set(host, r)
		}
		l.ReplyOwned(from, host)
	case owner != "":
		l.ReplyByRow(from, host, owner, r)
	default: // the host comes from a departed node
		l.policy.HolderFound(from, host)
	}
}
