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
	recent []absence // a ring
	at     int
}

// mostAbsent bounds the absences.
const mostAbsent = 64

// An absence is a node that did not answer.
type absence struct {
	id     uint64
	places uint64 // digest of the addresses at which it did not answer
	left   bool   // it has said farewell, and answers at none
	until  time.Duration
}

func (a *absences) mark(c Contact, left bool) {
	one := absence{short(c.ID), places(c.Addrs), left, a.env.now + 2*a.env.cfg.Notice}
	if len(a.recent) < mostAbsent {
		a.recent = append(a.recent, one)
		return
	}
	a.recent[a.at] = one
	a.at = (a.at + 1) % mostAbsent
}

// has reports whether a node did not answer lately at the addresses that are known now.
func (a *absences) has(c Contact) bool {
	return slices.ContainsFunc(a.recent, func(one absence) bool {
		return one.id == short(c.ID) && one.until > a.env.now && (one.left || one.places == places(c.Addrs))
	})
}

// forget drops the nodes that did not answer while this one had no contact: it was offline itself. Those that have said
// farewell stay.
func (a *absences) forget() {
	a.recent = slices.DeleteFunc(a.recent, func(one absence) bool { return !one.left })
	a.at = 0
}
