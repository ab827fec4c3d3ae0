package overlay

import (
	"slices"
	"time"
)

// absences guards the nodes that did not answer lately: reports of them by others are ignored for a while, as those may
// not have noticed yet.
//
// Invariant: a node that has moved to other addresses is not absent, unless it has said farewell.
type absences struct {
	env    *env
	recent ring[absence]
}

// maxAbsent bounds the absences.
const maxAbsent = 64

// An absence is a node that did not answer.
type absence struct {
	id          uint64
	addrsDigest uint64 // digest of the addresses at which it did not answer
	left        bool   // it has said farewell, and answers at none
	until       time.Duration
}

func (a *absences) mark(c Contact, left bool) {
	a.recent.add(absence{short(c.ID), digestAddrs(c.Addrs), left, a.env.now + 2*a.env.cfg.Notice}, maxAbsent)
}

// has reports whether a node did not answer lately at the addresses that are known now.
func (a *absences) has(c Contact) bool {
	return slices.ContainsFunc(a.recent.all, func(one absence) bool {
		return one.id == short(c.ID) && one.until > a.env.now && (one.left || one.addrsDigest == digestAddrs(c.Addrs))
	})
}

// forget drops the nodes that did not answer while this one had no contact: it was offline itself. Those that have said
// farewell stay.
func (a *absences) forget() {
	a.recent = ring[absence]{all: slices.DeleteFunc(a.recent.all, func(one absence) bool { return !one.left })}
}

// A ring has the last elements that were added.
type ring[E any] struct {
	all []E
	at  int // the oldest, once it is full
}

// add adds an element, in place of the oldest if there are as many as may be.
func (r *ring[E]) add(e E, most int) {
	if len(r.all) < most {
		r.all = append(r.all, e)
		return
	}
	r.all[r.at] = e
	r.at = (r.at + 1) % most
}
