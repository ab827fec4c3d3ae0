package hub

import (
	"time"

	"kumo/internal/strategy"
	"kumo/internal/strategy/hub/hosttable"
	"kumo/internal/strategy/leader"
)

// How a host moves to a node that has less to do:
//
//	control unit → giver   give so many hosts to the taker
//	giver                  stops some hosts with long queues, as if they were nobody's, and offers them, again and again until it has an answer
//	control unit → taker   can you reach it?
//	taker → control unit   yes, or no
//	control unit → giver   it is the taker's, which is in the log by then; or: it stays yours
//	giver                  hands all of them over, under one epoch
//
// A giver that has offered a host asks nothing of it, and the control unit gives it away only when it is offered: so no
// lost message and no dead control unit makes two owners, and who takes the control unit's place is offered the same
// hosts.

// An offer is a host that a node would hand over.
type offer struct {
	from, to strategy.Node
	until    time.Time // the taker is waited for
	answered bool
	ok       bool // the taker reaches it, and is near enough
}

// offered decides on a host that a node offers.
func (u *controller) offered(from strategy.Node, it *item) {
	r := u.row(it.host)
	owner, _ := u.owner(r)
	if owner != from || r.State != rowReached {
		delete(u.offers, it.host)
		u.holds(from, &item{kind: itemHold, host: it.host})
		return
	}
	o := u.offers[it.host]
	switch {
	case u.cfg.Level < 0 || !u.alive[it.node] || it.node == from || u.stays(r, it.node):
		u.refuse(from, it.host)
	case o == nil || o.from != from || o.to != it.node:
		u.offers[it.host] = &offer{from: from, to: it.node, until: u.now.Add(2*u.cfg.Timeout + 4*u.cfg.Retry)}
		u.askTaker(from, it)
	case o.ok:
		delete(u.offers, it.host)
		if u.level.vain = 0; u.level.begun.IsZero() {
			u.level.begun = u.now
		}
		u.set(it.host, hosttable.Row{Owner: o.to, State: rowPromised, Round: roundMoved})
		u.answer(from, item{kind: itemOwner, host: it.host, node: o.to})
	case o.answered || !o.until.After(u.now):
		u.refuse(from, it.host)
	default:
		u.askTaker(from, it) // once more, if it was lost
	}
}

func (u *controller) askTaker(from strategy.Node, it *item) {
	u.post(it.node, leader.Answer, item{kind: itemProbe, host: it.host})
	u.post(from, leader.Answer, item{kind: itemWait, host: it.host, number: uint64(u.cfg.Window.Milliseconds())})
}

func (u *controller) refuse(to strategy.Node, host string) {
	delete(u.offers, host)
	u.answer(to, item{kind: itemYours, host: host})
}

// stays reports whether a host may not move to a node, because it has moved for load not long ago: so none goes to and
// fro. The clock of an earlier control unit may be wrong: what it has moved stays from the beginning of this term. A
// node that has come since is new to the host: nodes may come one after the other, and those before it may have nothing
// but what has moved.
func (u *controller) stays(r hosttable.Row, to strategy.Node) bool {
	if r.Round&roundMoved == 0 {
		return false
	}
	if came := u.joined[to]; came.After(u.leadAt) && came.Unix() > int64(r.Since) {
		return false
	}
	return min(u.now.Sub(u.leadAt), u.now.Sub(time.Unix(int64(r.Since), 0)).Abs()) < u.cfg.Stay
}

// longQueue is so long that who is farther away is better than who has it.
const longQueue = 10 * time.Minute

// probed is told whether a node reaches a host, which may have been offered to it.
func (u *controller) probed(by strategy.Node, it *item, ok bool) {
	o := u.offers[it.host]
	if o == nil || o.to != by || o.answered {
		return
	}
	o.answered, o.ok = true, ok
	has, known := u.near.known(o.from, it.host, it.text)
	if took := float64(it.number); ok && known && took > 4*(has+float64(u.cfg.Alike.Microseconds())) {
		l := u.level.loads[o.from]
		o.ok = l != nil && l.lasts >= longQueue
	}
}

// remind tells all nodes whose a host is that has moved for load and does not come: who has it yet may be another
// process than the one that has offered it.
func (u *controller) remind(host string, owner strategy.Node, r hosttable.Row) {
	since := u.leadAt
	if set := time.Unix(int64(r.Since), 0); set.After(since) && !set.After(u.now) { // by this clock
		since = set
	}
	if r.Round&roundMoved == 0 || u.now.Sub(since) < movePatience/4 {
		return
	}
	for _, n := range u.members {
		if n != owner {
			u.answer(n, item{kind: itemOwner, host: host, node: owner})
		}
	}
}
