package central

import (
	"time"

	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/central/hosttable"
)

// How a host moves to a node that has less to do:
//
//	leader → giver         give so many hosts to the taker
//	giver                  stops some hosts with long queues, and offers them until it has an answer
//	leader → giver         it is the taker's, which is in the log by then; or: it stays yours.
//	                       Before that it may have the taker probe the host
//	giver                  hands all of them over, under one epoch
//
// A giver that has offered a host asks nothing of it, and the leader gives it away only when it is offered: so no
// lost message and no dead leader makes two owners, and who takes the leader's place is offered the same
// hosts.

// handleOffer has the policy decide on a host that a node offers.
func (l *Leader) handleOffer(from strategy.Node, it *item) {
	r := l.Row(it.host)
	if owner, _ := l.Owner(r); owner != from || r.State != Reached {
		l.policy.Withdrawn(it.host)
		l.ResolveHolder(from, it.host)
		return
	}
	l.policy.Offered(Offer{it.host, from, it.node, int(min(it.number, 1<<40)), r})
}

// MovedRecently reports whether a host may not move to a node, because it has moved for load within a time: so none goes to and
// fro. The clock of an earlier leader may be wrong: what it has moved stays from the beginning of this term. A
// node that has come since is new to the host: nodes may come one after the other, and those before it may have nothing
// but what has moved.
func (l *Leader) MovedRecently(r hosttable.Row, to strategy.Node, stay time.Duration) bool {
	if r.Round&Moved == 0 {
		return false
	}
	if came := l.joined[to]; came.After(l.electedAt) && came.Unix() > int64(r.Since) {
		return false
	}
	return min(l.now.Sub(l.electedAt), l.now.Sub(time.Unix(int64(r.Since), 0)).Abs()) < stay
}

// maxMoveDelay is what a move takes at most that begins to count when it was decided.
const maxMoveDelay = 5 * time.Second

// movedLate reports whether a host comes long after its move was decided, as the log could not be written meanwhile: it
// would be free to move on when it has come.
func (l *Leader) movedLate(r hosttable.Row) bool {
	return l.now.Sub(time.Unix(int64(r.Since), 0)).Abs() > maxMoveDelay
}

// broadcastOwner tells all nodes whose a host is that has moved for load and does not come: who has it yet may be another
// process than the one that has offered it.
func (l *Leader) broadcastOwner(host string, owner strategy.Node, r hosttable.Row) {
	since := l.electedAt
	if set := time.Unix(int64(r.Since), 0); set.After(since) && !set.After(l.now) { // by this clock
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
