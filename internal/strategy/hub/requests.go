package hub

import (
	"slices"
	"time"

	"kumo/internal/strategy"
	"kumo/internal/strategy/hub/hosttable"
	"kumo/internal/strategy/leader"
	"kumo/internal/varint"
)

// asked answers what a node asks.
func (u *controller) asked(from strategy.Node, items []item) {
	if !u.alive[from] {
		return // it will ask again when this node knows that it has joined, if it has
	}
	if from == u.mute {
		u.mute = ""
	}
	for i := range items {
		switch it := &items[i]; it.kind {
		case itemWant:
			u.wants(from, it)
		case itemSync:
			u.list(from, it.number)
		case itemClaim:
			u.claims(from, it)
		case itemFail:
			u.fails(from, it)
		case itemHold:
			u.holds(from, it)
		case itemLoad:
			u.level.hear(u.now, from, it)
		case itemOffer:
			u.offered(from, it)
		}
	}
}

// maxList is how many hosts of a node it is told at once.
const maxList = 1000

func (u *controller) list(to strategy.Node, cursor uint64) {
	var w varint.Writer
	next, done := u.table.Each(to, cursor, maxList, func(host string, r hosttable.Row) {
		if r.State == rowPromised {
			return // it will come, or be asked for
		}
		w.String(host)
		w.Bool(r.State == rowParked)
		w.Byte(r.Round)
	})
	if done {
		next = 0
	}
	u.post(to, leader.Answer, item{kind: itemList, number: next, text: string(w)})
}

// owner is who owns a host; free says that it may be given to somebody. What was a node's that is none any more is free
// once all that it held is in others' hands, and they have said so.
func (u *controller) owner(r hosttable.Row) (owner strategy.Node, free bool) {
	switch {
	case r.Owner == "":
		return "", true
	case u.alive[r.Owner]:
		return r.Owner, false
	}
	since, known := u.gone[r.Owner]
	if !known {
		u.gone[r.Owner] = u.epoch // before this node knew of members
		since = u.epoch
	}
	if r.State == rowPromised && u.onItsWay(r) {
		return "", false // who has it yet will say so
	}
	return "", u.settled >= since
}

func (u *controller) tellOwner(to strategy.Node, host string, owner strategy.Node, r hosttable.Row) {
	it := item{kind: itemOwner, host: host, node: owner}
	if owner == to {
		switch r.State {
		case rowParked:
			it = item{kind: itemProve, host: host, number: uint64(r.Round)}
		case rowPromised:
			if u.onItsWay(r) {
				it = item{kind: itemWait, host: host, number: uint64(u.cfg.Wait.Milliseconds())}
				u.remind(host, owner, r)
			} else { // nobody had anything of it
				r.State = rowReached
				u.set(host, r)
			}
		}
	}
	u.answer(to, it)
}

// onItsWay reports whether a host may yet come that was promised: as long as members change, nothing moves, and what is
// to move does so soon after.
func (u *controller) onItsWay(r hosttable.Row) bool {
	since := u.calm
	if u.leadAt.After(since) {
		since = u.leadAt
	}
	// by this clock, or one that is as right
	if set := time.Unix(int64(r.Since), 0); set.After(since) && !set.After(u.now) {
		since = set
	}
	return u.epoch != u.settled || u.now.Sub(since) < 2*movePatience
}

func (u *controller) wait(to strategy.Node, host string) {
	u.post(to, leader.Answer, item{kind: itemWait, host: host, number: uint64(u.cfg.Wait.Milliseconds())})
}

func (u *controller) wants(from strategy.Node, it *item) {
	r := u.row(it.host)
	owner, free := u.owner(r)
	switch {
	case owner != "":
		u.tellOwner(from, it.host, owner, r)
	case !free:
		u.wait(from, it.host)
	case u.gathering():
		u.post(from, leader.Answer, item{kind: itemWait, host: it.host, number: uint64(u.cfg.Gather.Milliseconds() / 4)})
	default:
		t := u.search(it.host, "", r)
		t.want(from)
		if len(t.asked)+len(t.claims) == 0 {
			u.askFirst(t, from)
		}
		if i := t.question(from); i >= 0 {
			u.post(from, leader.Answer, item{kind: itemProbe, host: it.host, number: uint64(t.round)}) // once more, if it was lost
		} else {
			u.wait(from, it.host)
		}
	}
}

func (u *controller) claims(from strategy.Node, it *item) {
	u.near.learn(it.host, it.text, from, true, int64(it.number))
	u.probed(from, it, true)
	r := u.row(it.host)
	owner, free := u.owner(r)
	if owner == "" && it.node == from {
		u.holds(from, it)
		return
	}
	switch {
	case owner == from:
		if r.State == rowParked {
			r.State, r.Round = rowReached, 0
			u.set(it.host, r)
			u.conclude(it.host, from)
		}
		u.tellOwner(from, it.host, owner, r)
	case owner != "" && r.State == rowParked: // who owns it does not reach it
		u.set(it.host, hosttable.Row{Owner: from, State: rowPromised})
		u.conclude(it.host, from)
		u.answer(owner, item{kind: itemOwner, host: it.host, node: from})
		u.answer(from, item{kind: itemWait, host: it.host, number: uint64(u.cfg.Wait.Milliseconds())})
	case owner != "":
		u.tellOwner(from, it.host, owner, r)
	case !free:
		u.wait(from, it.host)
	default:
		t := u.search(it.host, "", r)
		if !slices.ContainsFunc(t.claims, func(c claim) bool { return c.by == from }) {
			t.claims = append(t.claims, claim{from, time.Duration(it.number) * time.Microsecond})
		}
		u.unask(t, from)
		if len(t.claims) == 1 {
			t.until = u.now.Add(u.cfg.Window)
			u.deciding = append(u.deciding, t)
		}
		if len(t.asked) == 0 {
			u.choose(t)
			return
		}
		u.post(from, leader.Answer, item{kind: itemWait, host: it.host, number: uint64(2 * u.cfg.Window.Milliseconds())})
	}
}

func (u *controller) fails(from strategy.Node, it *item) {
	u.near.learn(it.host, it.text, from, false, 0)
	u.probed(from, it, false)
	r := u.row(it.host)
	owner, free := u.owner(r)
	if owner == "" && it.node == from {
		u.holds(from, it)
		return
	}
	switch {
	case owner != "" && owner != from && r.State != rowParked:
		u.tellOwner(from, it.host, owner, r)
		return
	case owner == from && r.State != rowParked:
		u.tellOwner(from, it.host, owner, r)
		return
	case owner == "" && !free:
		u.wait(from, it.host)
		return
	}
	t := u.search(it.host, owner, r)
	if t.network == "" {
		t.network = it.text
	}
	if owner == "" || owner == from {
		t.want(from)
	}
	u.unask(t, from)
	if !slices.Contains(t.failed, from) {
		t.failed = append(t.failed, from)
	}
	if owner != "" && owner != from {
		u.answer(from, item{kind: itemOwner, host: it.host, node: owner}) // it need not do more
	} else {
		u.wait(from, it.host)
	}
	u.goOn(t)
}

func (u *controller) holds(from strategy.Node, it *item) {
	r := u.row(it.host)
	owner, _ := u.owner(r)
	switch {
	case owner == from && r.State == rowPromised:
		r.State = rowReached
		u.level.came(u.now, r)
		if r.Round&roundMoved != 0 { // it counts when that was decided: who has come since may have it next
			u.put(it.host, r)
		} else {
			u.set(it.host, r)
		}
		u.answer(from, item{kind: itemYours, host: it.host})
	case owner != "":
		u.tellOwner(from, it.host, owner, r)
	default: // it comes from one who is none any more
		u.set(it.host, hosttable.Row{Owner: from, State: rowParked})
		u.conclude(it.host, from)
		u.answer(from, item{kind: itemProve, host: it.host})
	}
}
