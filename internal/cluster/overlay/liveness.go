package overlay

import (
	"cmp"
	"slices"
)

// A liveness decides which nodes are in the table: those that have answered, until they fail to answer or leave.
//
// It has no messages of its own. Invariants: only an answer brings a node into the table. Config.Tries consecutive
// failed queries remove it; concurrent queries that fail count as one.
type liveness struct {
	env       *env
	table     *table
	absences  *absences
	removed   func(c Contact, near bool) // called for each contact that died or left
	questions questions
	watch     *watch
}

// maxSilence is the number of exchange intervals within which a contact must have answered once.
const maxSilence = 4

// heard handles a message that is not an answer, which shows that its sender is alive. A sender that is not in the
// table is queried if its bucket needs contacts.
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
		if p.near && p.version == 0 { // a query does not contain its list of neighbors
			next = min(next, p.next)
		}
		v.watch.probeAt(p, next)
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

// answersLately reports whether a contact has answered recently. A contact that sends queries but never answers counts
// as dead.
func (v *liveness) answersLately(p *peer) bool {
	return v.env.now-p.answered < maxSilence*v.env.cfg.every()
}

// updateAddrs sets a contact's addresses from the transport. If a neighbor's addresses have changed, the other
// neighbors are sent the list again: nodes that could not reach it may be able to now, for instance by a relay.
func (v *liveness) updateAddrs(p *peer, c Contact) {
	if len(c.Addrs) == 0 || slices.Equal(p.Addrs, c.Addrs) || digestAddrs(p.Addrs) == digestAddrs(c.Addrs) {
		return
	}
	p.Addrs = c.Addrs
	if p.near {
		v.table.version++
	}
}

// addSpare puts a node into its bucket's replacement cache, and pings the bucket's contact that was silent for longest.
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

// answered handles an answer. It returns the peer if it is in the table.
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
		if q.asked >= p.failed && !lives { // concurrent queries that fail count as one
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
		v.questions.send(q)
	default:
		v.table.dropSpare(q.to.ID)
		v.absences.mark(q.to, false)
	}
}

// admit adds a node that has answered to the table if there is room. It returns the peer if it is in the table.
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
	if p.near && p.version == 0 && !v.watch.positioned { // its list of neighbors is not known yet
		next = 0
	}
	v.watch.probeAt(p, v.env.now+next)
	v.updateAddrs(p, c)
	return p
}

// remove removes a contact that is dead or has left from the table, and queries a node from the replacement cache.
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
