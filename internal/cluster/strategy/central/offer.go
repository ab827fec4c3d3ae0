package central

import (
	"time"

	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/central/hosttable"
)

// How a host moves to a node with less work:
//
//	leader → donor       request to offer some hosts to the receiver
//	donor                pauses some hosts with long queues, and offers them until it has an answer
//	leader → donor       the receiver owns the host (sent when that is in the log), or the donor keeps it.
//	                     Before that, the leader may have the receiver probe the host
//	donor                hands all granted hosts over in one epoch
//
// A donor sends no requests to a host that it has offered, and the leader reassigns only offered hosts. So no lost
// message and no failed leader can produce two owners. A new leader receives the same offers again.

// handleOffer passes a node's offer of a host to the policy.
func (l *Leader) handleOffer(from strategy.Node, it *item) {
	r := l.Row(it.host)
	if owner, _ := l.Owner(r); owner != from || r.State != Reached {
		l.policy.Withdrawn(it.host)
		l.ResolveHolder(from, it.host)
		return
	}
	l.policy.Offered(Offer{it.host, from, it.node, int(min(it.number, 1<<40)), r})
}

// MovedRecently reports whether a host must not move to a node because it has moved for load within stay. This prevents
// hosts from moving back and forth. The clock of an earlier leader may be wrong, so its moves count as made at the
// start of this term. Nodes that joined after the move are exempt: when nodes join one after the other, earlier ones
// may own only moved hosts.
func (l *Leader) MovedRecently(r hosttable.Row, to strategy.Node, stay time.Duration) bool {
	if r.Round&Moved == 0 {
		return false
	}
	if came := l.joined[to]; came.After(l.electedAt) && came.Unix() > int64(r.Since) {
		return false
	}
	return min(l.now.Sub(l.electedAt), l.now.Sub(time.Unix(int64(r.Since), 0)).Abs()) < stay
}

// maxMoveDelay is the maximum delay of a move whose MinStay counts from its decision.
const maxMoveDelay = 5 * time.Second

// movedLate reports whether a host arrives long after the decision to move it, because the log was not writable in
// between. Otherwise the host could move on at once.
func (l *Leader) movedLate(r hosttable.Row) bool {
	return l.now.Sub(time.Unix(int64(r.Since), 0)).Abs() > maxMoveDelay
}

// broadcastOwner sends the owner of a host whose move does not complete to all nodes. The node that still holds the
// host may have restarted since it made the offer.
func (l *Leader) broadcastOwner(host string, owner strategy.Node, r hosttable.Row) {
	since := l.electedAt
	if set := time.Unix(int64(r.Since), 0); set.After(since) && !set.After(l.now) { // by this node's clock
		since = set
	}
	if r.Round&Moved == 0 || l.now.Sub(since) < MoveTimeout/4 {
		return
	}
	for _, n := range l.members {
		if n != owner {
			l.answerWhenDurable(n, item{kind: itemOwner, host: host, node: owner})
		}
	}
}
