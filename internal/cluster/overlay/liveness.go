package overlay

import (
	"cmp"
	"slices"
)

// A liveness guards which nodes are in the table: those that have answered, until they fail to answer or leave.
//
// It has no messages of its own. Invariants: only an answer brings a node into the table. Config.Tries questions that
// fail, one after the other, remove it; questions that were under way together fail as one.
type liveness struct {
	env       *env
	table     *table
	absences  *absences
	removed   func(c Contact, near bool) // is called for each contact that died or left
	questions questions
	watch     *watch
}

// maxSilence is the number of intervals between exchanges in which a contact must have answered once.
const maxSilence = 4

// heard applies a message that is no answer: a sign of life. A node that is not in the table is asked for an answer, if
// its bucket wants more contacts.
func (v *liveness) heard(from Contact) {
	if p := v.table.known(from.Node); p != nil {
		p.heard = v.env.now
		v.updateAddrs(p, from)
		if v.answersLately(p) {
			p.fails = 0
		}
		next := min(v.env.now+v.watch.interval(), p.answered+maxSilence*v.env.cfg.every())
		if p.near && depth(v.table.id, p.ID) == v.table.successorDepth() {
			next = min(next, max(p.confirmed+v.env.cfg.every()/2, v.env.now))
		}
		if p.near && p.version == 0 { // a question does not bring its list of neighbours
			next = min(next, p.next)
		}
		v.watch.askAt(p, next)
		return
	}
	switch {
	case v.table.isNear(from.ID):
		v.questions.try(from, nearQuestion, 0)
	case v.table.needsContacts(v.table.bucket(from.ID)):
		v.questions.try(from, pingQuestion, 0)
	default:
		v.addSpare(from)
	}
}

// answersLately reports whether a contact has answered lately. One that asks and never answers counts as dead.
func (v *liveness) answersLately(p *peer) bool {
	return v.env.now-p.answered < maxSilence*v.env.cfg.every()
}

// updateAddrs applies a contact's addresses from the transport. If they have changed, neighbours are sent the list again:
// nodes that could not reach the contact may do so now, for instance by a relay.
func (v *liveness) updateAddrs(p *peer, c Contact) {
	if len(c.Addrs) == 0 || slices.Equal(p.Addrs, c.Addrs) || digestAddrs(p.Addrs) == digestAddrs(c.Addrs) {
		return
	}
	p.Addrs = c.Addrs
	if p.near {
		v.table.version++
	}
}

// addSpare puts a node into its bucket's replacement cache, and pings the contact there that was not heard of for longest.
func (v *liveness) addSpare(c Contact) {
	if p := v.table.knownSpare(c.ID); p != nil {
		p.heard = v.env.now
		v.updateAddrs(p, c)
	} else {
		v.table.addSpare(c, v.env.now)
	}
	if p := stalest(v.table.bucket(c.ID).live); p != nil && v.env.now-p.heard > v.env.cfg.Check/4 {
		v.questions.ping(p)
	}
}

// answered applies an answer. It returns the node if it is in the table.
func (v *liveness) answered(q question, from Contact) *peer {
	p := v.admit(from, q.peer)
	if p != nil {
		p.confirmed, v.table.changed = max(p.confirmed, q.asked), true
		if q.lookUp == nil && !q.late {
			p.pinged = false
		}
	}
	return p
}

func (v *liveness) failed(q question) {
	p := v.table.known(q.to.Node)
	switch {
	case p != nil:
		if q.lookUp == nil {
			p.pinged = false
		}
		lives := p.heard > q.asked && v.answersLately(p)
		if q.asked >= p.failed && !lives { // questions that were under way together fail as one
			p.fails++
			p.failed = v.env.now
		}
		switch {
		case int(p.fails) >= v.env.cfg.Tries:
			v.remove(p, false)
		case !lives, p.near && p.version == 0:
			v.questions.ping(p)
		}
	case q.lookUp != nil || q.healing || q.departed:
	case int(q.tries)+1 < v.env.cfg.Tries:
		q.tries++
		v.questions.ask(q)
	default:
		v.table.dropSpare(q.to.ID)
		v.absences.mark(q.to, false)
	}
}

// admit applies that a node has answered. It returns the node if it is in the table.
func (v *liveness) admit(c Contact, p *peer) *peer {
	if p == nil || !p.live {
		p = v.table.known(c.Node)
	}
	if p == nil {
		if !v.table.isNear(c.ID) && !v.table.hasRoom(v.table.bucket(c.ID)) {
			v.addSpare(c)
			return nil
		}
		v.table.dropSpare(c.ID)
		p = &peer{Contact: c}
		v.env.do(Joined{Contact: c})
		if v.table.live == 0 {
			v.absences.forget()
		}
		if gone := v.table.insert(p); gone != nil {
			v.env.do(Removed{Node: gone.Node, ID: gone.ID})
			v.table.addSpare(gone.Contact, gone.heard)
		}
	}
	p.heard, p.answered, p.fails = v.env.now, v.env.now, 0
	next := v.watch.interval()
	if p.near && depth(v.table.id, p.ID) == v.table.successorDepth() {
		next /= 2
	}
	if p.near && p.version == 0 && !v.watch.positioned { // its list of neighbours is not here
		next = 0
	}
	v.watch.askAt(p, v.env.now+next)
	v.updateAddrs(p, c)
	return p
}

// remove removes a contact from the table that is dead, or has left. A node that waits for its place is asked.
func (v *liveness) remove(p *peer, left bool) {
	near := p.near
	if v.table.remove(p); near && v.table.watchedPrefix() < v.table.prefix {
		v.watch.requestLists()
	}
	v.absences.mark(p.Contact, left)
	v.removed(p.Contact, near)
	v.env.do(Removed{Node: p.Node, ID: p.ID, Dead: true, Left: left, Near: near})
	if spares := v.table.bucket(p.ID).spare; len(spares) > 0 {
		freshest := slices.MaxFunc(spares, func(p, q *peer) int { return cmp.Compare(p.heard, q.heard) })
		v.questions.try(freshest.Contact, pingQuestion, 0)
	}
}
