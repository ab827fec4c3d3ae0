package mesh

import (
	"cmp"
	"time"

	"kumo/internal/base/bounded"
	"kumo/internal/cluster/strategy"
)

// lending lends whole hosts to other nodes, as a balancePolicy requests.
//
// The target remembers a host that it has lent (itemGive) until the other node has fetched its queue, and returns it
// (itemReturn, itemGuest).
//
// A node may pass a guest on to a third one: when that has accepted it (itemGive), the target remembers the third node
// instead (itemPass), and then this node stops. Meanwhile the target names this node to the third one, which waits
// until it has stopped: see handovers.
//
// A host's new target does not know who fetches it. So a node that is no longer the target, or leaves, revokes the loan
// (itemRevoke), and names the guest's node if the new target requests it to stop. If the target dies or restarts, its
// loans are forgotten: nodes with guests query regularly whether it still runs (itemLender), and release its hosts.
//
// Invariant: a node accepts a host only if its policy admits it.
type lending struct {
	core    *core
	place   *place
	mail    poster
	lookups finder
	hosts   balancedHosts
	lent    lent
	former  *former
	pending func(host string) bool // Config.HasPending
	admit   func(from strategy.Node, host string, urls int64) bool
	process uint64 // Config.Process

	guests  map[string]*guest
	lenders map[strategy.Node]int64 // processes of the nodes that have lent the guests; 0: not known yet
	runs    int
}

// A guest is a host that this node fetches for another one.
type guest struct {
	lender strategy.Node // the host's target
	since  time.Time
	idle   time.Time     // since when it has had no pending URLs; zero: it has some
	next   strategy.Node // the node that it is about to be passed on to; "": none
}

// balancedHosts is the lending's view of the hosts that this node fetches.
type balancedHosts interface {
	holds(host string) bool
	// lendable returns a function that lends a host to another node; nil if it cannot be lent.
	lendable(host string) (lend func(to strategy.Node))
	// releaseIfMoved releases a host that is another node's.
	releaseIfMoved(host string)
	// announce announces that a guest may be passed on. It reports whether that is possible.
	announce(host string, to strategy.Node) bool
	// pass passes an announced guest on. If ok is false, it stays, and a host that is being released is not passed to
	// the node.
	pass(host string, to strategy.Node, ok bool)
}

const (
	// lendingEvery is the interval of queries whether the lenders of guests still run.
	lendingEvery = 10 * time.Second
	// checkLentEvery is the number of these intervals between queries whether other nodes still have this node's hosts.
	checkLentEvery = 3
	// guestIdle is how long a guest has no pending URLs until it is returned.
	guestIdle = time.Minute
	// minStay is how long a guest stays until it may be passed on.
	minStay = 5 * time.Second

	maxLenders = 64 // of guests
	maxFormer  = 1 << 12
	formerTime = 2 * time.Minute // for which a node may take to stop
)

// A former has the nodes that have just fetched a host for this one, or got it from this one: they may not have
// stopped.
type former struct {
	core  *core
	nodes *bounded.Recent[string, nodeAt]
}

func newFormer(c *core) *former {
	return &former{core: c, nodes: bounded.NewRecent[string, nodeAt](maxFormer)}
}

func (f *former) add(host string, n strategy.Node) { f.nodes.Put(host, nodeAt{n, f.core.now}) }

// of returns the node that has just fetched a host; "" if there is none.
func (f *former) of(host string) strategy.Node {
	n, ok := f.nodes.Get(host)
	if !ok || f.core.now.Sub(n.at) >= formerTime {
		return ""
	}
	return n.node
}

// start starts the regular queries.
func (l *lending) start() { l.core.after(lendingEvery, l.run) }

func (l *lending) run() {
	l.core.after(lendingEvery, l.run)
	l.returnGuests()
	for _, n := range sortedKeys(l.lenders) {
		l.queryLender(n)
	}
	if l.runs++; l.runs%checkLentEvery == 0 {
		l.checkLent()
	}
}

// counts returns how many hosts of this node others fetch, and how many of others this node fetches.
func (l *lending) counts() (delegated, guests int) { return len(l.lent), len(l.guests) }

// lend lends a host with so many pending URLs to another node, if that accepts it. It reports whether that is possible.
func (l *lending) lend(host string, to strategy.Node, urls int64) bool {
	it := item{kind: itemGive, host: host, number: urls}
	if g := l.guests[host]; g != nil {
		return l.pass(it, g, to)
	}
	lend := l.hosts.lendable(host)
	if lend == nil {
		return false
	}
	l.mail.post(to, it, func(to strategy.Node, r *reply) {
		if r != nil && r.code == replyYes {
			lend(to)
		}
	})
	return true
}

// pass passes a guest on, as an itemGive.
func (l *lending) pass(give item, g *guest, to strategy.Node) bool {
	host := give.host
	if l.core.now.Sub(g.since) < minStay || !l.hosts.announce(host, to) {
		return false
	}
	give.node, g.next = g.lender, to
	done := func(ok bool) {
		if l.guests[host] != g { // it was released meanwhile
			return
		}
		if g.next = ""; ok {
			l.forgetGuest(host)
			l.former.add(host, to) // a new target may request this node to stop
		}
		l.hosts.pass(host, to, ok)
	}
	l.mail.post(to, give, func(to strategy.Node, r *reply) {
		if r == nil || r.code != replyYes || l.guests[host] != g {
			done(false)
			return
		}
		l.mail.post(g.lender, item{kind: itemPass, host: host, node: to}, func(_ strategy.Node, r *reply) {
			done(r != nil && r.code == replyYes)
		})
	})
	return true
}

// passed processes an itemPass: another node fetches a host for this one.
func (l *lending) passed(from strategy.Node, it item) reply {
	to := l.lent[it.host]
	if to == it.node && to != "" || to == "" && it.node == l.core.self && l.former.of(it.host) == from {
		return reply{code: replyYes} // repeated
	}
	if to != from || it.node == "" || !l.place.isTarget(it.host) {
		return reply{code: replyNo}
	}
	l.former.add(it.host, from)
	if l.lent[it.host] = it.node; it.node == l.core.self {
		delete(l.lent, it.host)
	}
	return reply{code: replyYes}
}

// acceptGuest processes an itemGive: this node accepts another node's host if its policy admits it.
func (l *lending) acceptGuest(from strategy.Node, it item) reply {
	lender := cmp.Or(it.node, from)
	_, known := l.lenders[lender]
	switch own := l.lent[it.host] == from; {
	case l.place.leaving || !l.place.isFresh():
		return reply{code: replyNo}
	case l.guests[it.host] != nil:
		return reply{code: replyYes}
	case !own && !known && len(l.lenders) >= maxLenders:
		return reply{code: replyNo}
	case !l.admit(from, it.host, it.number):
		return reply{code: replyNo}
	case own: // it comes back
		return reply{code: replyYes}
	}
	l.guests[it.host] = &guest{lender: lender, since: l.core.now}
	l.place.setGuest(it.host, true)
	if !known {
		l.lenders[lender] = 0
		l.queryLender(lender)
	}
	return reply{code: replyYes}
}

// queryLender queries whether a node that has lent hosts is still the same process. If it is not, or does not answer,
// its hosts are released: it has forgotten the loans, or another node is the target.
func (l *lending) queryLender(n strategy.Node) {
	l.mail.post(n, item{kind: itemLender}, func(_ strategy.Node, r *reply) {
		was, known := l.lenders[n]
		if !known {
			return
		}
		if r != nil && r.code == replyYes && (was == 0 || was == r.number) {
			l.lenders[n] = r.number
			return
		}
		l.releaseGuestsOf(n)
	})
}

// releaseGuestsOf releases the hosts that a node has lent which is gone, or has forgotten the loans.
func (l *lending) releaseGuestsOf(n strategy.Node) {
	delete(l.lenders, n)
	for _, host := range sortedKeys(l.guests) {
		if l.guests[host].lender == n {
			l.releaseGuest(host)
		}
	}
}

// answerLender replies with this process.
func (l *lending) answerLender(strategy.Node, item) reply {
	return reply{code: replyYes, number: int64(l.process>>1) | 1}
}

// returnGuests returns hosts of other nodes that have had no pending URLs for a while.
func (l *lending) returnGuests() {
	lenders := map[strategy.Node]bool{}
	for _, host := range sortedKeys(l.guests) {
		g := l.guests[host]
		lenders[g.lender] = true
		switch {
		case l.pending(host):
			g.idle = time.Time{}
		case g.idle.IsZero():
			g.idle = l.core.now
		case l.core.now.Sub(g.idle) >= guestIdle:
			l.releaseGuest(host)
			l.mail.post(g.lender, item{kind: itemReturn, host: host}, func(strategy.Node, *reply) {})
		}
	}
	for n := range l.lenders {
		if !lenders[n] {
			delete(l.lenders, n)
		}
	}
}

func (l *lending) forgetGuest(host string) {
	delete(l.guests, host)
	l.place.setGuest(host, false)
}

func (l *lending) releaseGuest(host string) {
	if next := l.guests[host].next; next != "" {
		l.hosts.pass(host, next, false)
	}
	l.forgetGuest(host)
	l.hosts.releaseIfMoved(host)
}

func (l *lending) returned(from strategy.Node, it item) reply {
	if l.lent[it.host] == from {
		l.endLoan(it.host)
	}
	return reply{code: replyYes}
}

// endLoan ends a loan. The node that has fetched the host may not have stopped yet.
func (l *lending) endLoan(host string) {
	l.former.add(host, l.lent[host])
	delete(l.lent, host)
}

// gone ends the loans of a node that has died, and those to it. The hosts that it has fetched are dispatched at once:
// it is not requested to stop.
func (l *lending) gone(n strategy.Node) {
	for _, host := range sortedKeys(l.lent) {
		if l.lent[host] == n {
			delete(l.lent, host)
			l.hosts.pass(host, n, false)
		}
	}
	l.releaseGuestsOf(n)
}

// leave returns the guests.
func (l *lending) leave() {
	for _, host := range sortedKeys(l.guests) {
		l.mail.post(l.guests[host].lender, item{kind: itemReturn, host: host}, func(strategy.Node, *reply) {})
	}
	clear(l.guests)
	l.revokeMoved()
}

// revokeMoved revokes the loans of hosts whose target is another node by now.
func (l *lending) revokeMoved() {
	for _, host := range sortedKeys(l.lent) {
		if to := l.lent[host]; !l.place.isTarget(host) {
			delete(l.lent, host)
			l.former.add(host, to)
			l.mail.post(to, item{kind: itemRevoke, host: host}, func(strategy.Node, *reply) {})
		}
	}
}

// revoked processes an itemRevoke.
func (l *lending) revoked(from strategy.Node, it item) reply {
	if g := l.guests[it.host]; g != nil && g.lender == from {
		l.releaseGuest(it.host)
	}
	return reply{code: replyYes}
}

// checkLent takes hosts back from nodes that do not answer, or no longer have them.
func (l *lending) checkLent() {
	for _, host := range sortedKeys(l.lent) {
		if l.hosts.holds(host) {
			continue // it is still being released
		}
		to := l.lent[host]
		l.mail.post(to, item{kind: itemGuest, host: host}, func(_ strategy.Node, r *reply) {
			if (r == nil || r.code != replyYes) && l.lent[host] == to {
				l.endLoan(host)
			}
		})
	}
}

func (l *lending) answerGuest(_ strategy.Node, it item) reply {
	if l.guests[it.host] != nil {
		return reply{code: replyYes}
	}
	return reply{code: replyNo}
}
