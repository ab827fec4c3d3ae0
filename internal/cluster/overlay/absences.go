package overlay

import (
	"slices"
	"time"
)

// absences tracks the nodes that did not answer lately. Reports about them by other nodes are ignored for a while,
// since those may not have noticed yet.
//
// Invariant: a node that has moved to other addresses is not absent, unless it has sent a farewell.
type absences struct {
	env    *env
	recent ring[absence]
}

// maxAbsent is the maximum number of absences.
const maxAbsent = 64

// An absence is a node that did not answer.
type absence struct {
	id          uint64
	addrsDigest uint64 // of the addresses at which it did not answer
	left        bool   // it has sent a farewell, so it is absent at any address
	until       time.Duration
}

func (a *absences) mark(c Contact, left bool) {
	a.recent.add(absence{short(c.ID), digestAddrs(c.Addrs), left, a.env.now + 2*a.env.cfg.Notice}, maxAbsent)
}

// has reports whether a node recently did not answer at its currently known addresses.
func (a *absences) has(c Contact) bool {
	return slices.ContainsFunc(a.recent.all, func(one absence) bool {
		return one.id == short(c.ID) && one.until > a.env.now && (one.left || one.addrsDigest == digestAddrs(c.Addrs))
	})
}

// forget drops absences from a time without any contact, when this node itself was offline. Nodes that sent a farewell
// stay absent.
func (a *absences) forget() {
	a.recent = ring[absence]{all: slices.DeleteFunc(a.recent.all, func(one absence) bool { return !one.left })}
}

// A ring stores the elements added last.
type ring[E any] struct {
	all []E
	at  int // index of the oldest, once the ring is full
}

// add adds an element, which replaces the oldest if the ring has most elements.
func (r *ring[E]) add(e E, most int) {
	if len(r.all) < most {
		r.all = append(r.all, e)
		return
	}
	r.all[r.at] = e
	r.at = (r.at + 1) % most
}
