package central

import (
	"time"

	"kumo/internal/base/varint"
	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/central/hosttable"
)

func (l *Leader) asked(from strategy.Node, items []item) {
	if !l.alive[from] {
		return // it will ask again when this node knows that it has joined, if it has
	}
	if from == l.silent {
		l.silent = ""
	}
	for i := range items {
		switch it := &items[i]; it.kind {
		case itemWant:
			l.wants(from, it)
		case itemSync:
			l.list(from, it.number)
		case itemClaim, itemFail:
			l.probed(from, it)
		case itemHold:
			l.Holds(from, it.host)
		case itemLoad:
			if load, ok := parseLoad(from, it.text); ok {
				l.policy.Load(load)
			}
		case itemOffer:
			l.offered(from, it)
		}
	}
}

// maxList is how many hosts of a node it is told at once.
const maxList = 1000

func (l *Leader) list(to strategy.Node, cursor uint64) {
	var w varint.Writer
	next, done := l.hosts.table.Each(to, cursor, maxList, func(host string, r hosttable.Row) {
		if r.State == Promised {
			return // it will come, or be asked for
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

// Owner is who owns a host; free says that it may be given to somebody. What was a node's that is none any more is free
// once all that it held is in others' hands, and they have said so.
func (l *Leader) Owner(r hosttable.Row) (owner strategy.Node, free bool) {
	switch {
	case r.Owner == "":
		return "", true
	case l.alive[r.Owner]:
		return r.Owner, false
	}
	since, known := l.gone[r.Owner]
	if !known {
		l.gone[r.Owner] = l.epoch // before this node knew of members
		since = l.epoch
	}
	if r.State == Promised && l.onItsWay(r) {
		return "", false // who has it yet will say so
	}
	return "", l.settled >= since
}

// TellOwner tells a node whose a host is, by its row.
func (l *Leader) TellOwner(to strategy.Node, host string, owner strategy.Node, r hosttable.Row) {
	it := item{kind: itemOwner, host: host, node: owner}
	if owner == to {
		switch r.State {
		case Parked:
			it = item{kind: itemProve, host: host, number: uint64(r.Round)}
		case Promised:
			if l.onItsWay(r) {
				it = item{kind: itemWait, host: host, number: uint64(l.cfg.Wait.Milliseconds())}
				l.remind(host, owner, r)
			} else { // nobody had anything of it
				r.State = Reached
				l.Set(host, r)
			}
		}
	}
	l.answer(to, it)
}

// onItsWay reports whether a host may yet come that was promised: as long as members change, nothing moves, and what is
// to move does so soon after.
func (l *Leader) onItsWay(r hosttable.Row) bool {
	since := l.calm
	if l.since.After(since) {
		since = l.since
	}
	// by this clock, or one that is as right
	if set := time.Unix(int64(r.Since), 0); set.After(since) && !set.After(l.now) {
		since = set
	}
	return l.epoch != l.settled || l.now.Sub(since) < 2*MovePatience
}

func (l *Leader) wants(from strategy.Node, it *item) {
	r := l.Row(it.host)
	owner, free := l.Owner(r)
	switch {
	case owner != "":
		l.TellOwner(from, it.host, owner, r)
	case !free:
		l.Wait(from, it.host, l.cfg.Wait)
	case l.Gathering():
		l.Wait(from, it.host, l.cfg.Gather/4)
	default:
		l.policy.Wanted(from, it.host, int(min(it.number, 1<<40)))
	}
}

// probed is told whether a node reaches a host.
func (l *Leader) probed(from strategy.Node, it *item) {
	l.policy.Probed(Probed{From: from, Host: it.host, OK: it.kind == itemClaim,
		Took: time.Duration(min(it.number, 1<<40)) * time.Microsecond, Network: it.text, Holds: it.node == from})
}

// Holds is told that a node holds a host that may be another's.
func (l *Leader) Holds(from strategy.Node, host string) {
	r := l.Row(host)
	owner, _ := l.Owner(r)
	switch {
	case owner == from && r.State == Promised:
		r.State = Reached
		l.policy.Came(host, r)
		if r.Round&Moved != 0 && !l.late(r) { // it counts when that was decided: who has come since may have it next
			l.put(host, r)
		} else {
			l.Set(host, r)
		}
		l.Yours(from, host)
	case owner != "":
		l.TellOwner(from, host, owner, r)
	default: // it comes from one who is none any more
		l.policy.Found(from, host)
	}
}
