package mesh

import (
	"slices"

	"kumo/internal/cluster/strategy"
)

// claims turn links that nodes have found into URLs to be fetched, at the first backup of their host.
//
// A batch arrives as Offered. Each new link is recorded here and at the other backups (itemStore), and is then
// dispatched. Answer returns to the finder which links of the batch are refused. It forgets the others.
//
// Invariant: a link is accepted only when all backups of its host have recorded it, however this node got it: by
// another pending claim, in an earlier process, or from another first backup. A batch that is repeated while it is
// being claimed is answered once.
type claims struct {
	core       *core
	place      *place
	mail       poster
	history    store
	absences   *absences
	disclosure *disclosure
	hosts      claimHosts
	differs    func(it item, before []State) // another node transfers other states than this one had

	offers map[offerKey]bool
	byHost map[string][]*claim // pending claims with new links
}

// claimHosts is the claims' view of the hosts with open URLs.
type claimHosts interface {
	// isFirst reports whether a host has open URLs, and whether this node is its first backup.
	isFirst(host string) (open, first bool)
	// awaitShared calls f once the other backups have received all open URLs of a host. It reports false if they have
	// already.
	awaitShared(host string, f func(known bool)) bool
	// sharedWith returns the backups that have received all open URLs of a host.
	sharedWith(host string) []strategy.Node
	dispatch(host string, links []Link)
	// target returns the node that fetches a host, as far as it is known.
	target(host string) strategy.Node
	// setTargetIfUnknown sets that node if none is known. setPrevious replaces the previous one, unless the present one
	// is known.
	setTargetIfUnknown(host string, target strategy.Node)
	setPrevious(host string, target strategy.Node)
}

type offerKey struct {
	from   strategy.Node
	number uint64
}

// maxOffers bounds the batches that are being claimed.
const maxOffers = 1024

// A claim is the part of a batch that is about one host.
type claim struct {
	host       string
	links      []Link // new to this node's history, and to those of all backups that have answered
	asked      []strategy.Node
	pending    int  // awaited backups, and awaited claims of the same links
	dispatched bool // the new links are dispatched, or there are none
	askAgain   bool // a backup has withheld which links are done
	over       func(accepted bool)
	waiters    []func(known bool) // claims of the same links
	// links that were open before may not be at all backups, and this node is no longer the first
	refused bool
}

// offered claims the links of a batch.
func (c *claims) offered(e Offered) {
	key := offerKey{e.From, e.Number}
	if c.offers[key] || len(c.offers) >= maxOffers {
		return // the sender repeats it
	}
	c.offers[key] = true
	var order []string
	var refused []int
	byHost, numbers := map[string][]Link{}, map[string][]int{}
	for i, k := range e.Links {
		if _, met := byHost[k.Host]; !met {
			if !c.place.isFirst(k.Host) {
				refused = append(refused, i)
				continue
			}
			order = append(order, k.Host)
		}
		k.State = Dispatched
		byHost[k.Host], numbers[k.Host] = append(byHost[k.Host], k.Link), append(numbers[k.Host], i)
	}
	left := 1 + len(order) // the hosts, and this function
	over := func() {
		if left--; left == 0 {
			delete(c.offers, key)
			c.core.do(Answer{To: key.from, Number: key.number, Refused: refused})
		}
	}
	for _, host := range order {
		c.claim(e.From, host, byHost[host], func(accepted bool) {
			if !accepted {
				refused = append(refused, numbers[host]...)
			}
			over()
		})
	}
	over()
}

// claim records links of a host, here and at the other backups, and dispatches those that are new to all of them.
func (c *claims) claim(from strategy.Node, host string, links []Link, over func(accepted bool)) {
	c.history.record(host, links, func(r Recorded, fresh []Link) {
		switch open, first := c.hosts.isFirst(host); {
		case !open: // all are done
			over(!c.disclosure.mustKeep(from))
			return
		case !first:
			over(false)
			return
		}
		k := &claim{host: host, links: fresh, over: over, pending: 1}
		k.refused = slices.Contains(r.Before, Done) && c.disclosure.mustKeep(from)
		if open := withState(links, r.Before, Dispatched); len(open) > 0 {
			c.awaitOpen(k, open)
		}
		c.begin(k)
	})
}

// awaitOpen makes a claim wait until all other backups have the links that were open here before.
func (c *claims) awaitOpen(k *claim, open []Link) {
	known := func(known bool) {
		k.refused = k.refused || !known
		c.advance(k)
	}
	for _, other := range c.byHost[k.host] {
		if rest := without(slices.Clone(open), other.links); len(rest) < len(open) {
			k.pending++
			other.waiters = append(other.waiters, known)
			open = rest
		}
	}
	if c.hosts.awaitShared(k.host, known) {
		k.pending++
		return
	}
	peers, _ := c.place.otherBackups(k.host)
	had := c.hosts.sharedWith(k.host)
	if lacks := func(n strategy.Node) bool { return !slices.Contains(had, n) }; len(open) > 0 &&
		slices.ContainsFunc(peers, lacks) {
		k.pending++
		c.begin(&claim{host: k.host, links: open, pending: 1, dispatched: true, over: known})
	}
}

// begin starts a claim of links that are recorded here.
func (c *claims) begin(k *claim) {
	if len(k.links) > 0 {
		c.byHost[k.host] = append(c.byHost[k.host], k)
	}
	c.spread(k)
	c.advance(k)
}

// spread has the other backups record the links, except for those with a pending or answered request.
func (c *claims) spread(k *claim) {
	if len(k.links) == 0 {
		return
	}
	peers, _ := c.place.otherBackups(k.host)
	for _, to := range peers {
		if slices.Contains(k.asked, to) {
			continue
		}
		k.asked = append(k.asked, to)
		k.pending++
		links := slices.Clone(k.links)
		c.mail.post(to, item{kind: itemStore, host: k.host, links: links}, func(_ strategy.Node, r *reply) {
			c.absences.applyWait(r)
			stored := r != nil && r.code == replyYes
			if stored {
				c.removeDone(k, links, r)
				c.hosts.setTargetIfUnknown(k.host, r.node)
			}
			withheld := stored && len(withState(links, r.states, withheld)) > 0
			k.askAgain = k.askAgain || withheld
			if !stored || withheld { // ask again
				k.asked = slices.DeleteFunc(k.asked, func(n strategy.Node) bool { return n == to })
			}
			c.advance(k)
		})
	}
}

// removeDone removes links from a claim that are done by another backup's reply.
func (c *claims) removeDone(k *claim, links []Link, r *reply) {
	if done := doneOf(links, r); len(done) > 0 {
		k.links = without(k.links, withState(links, r.states, Done))
		k.pending++
		c.history.record(k.host, done, func(_ Recorded, fresh []Link) {
			if len(fresh) > 0 {
				c.hosts.dispatch(k.host, fresh)
			}
			c.advance(k)
		})
	}
}

// without returns the links that are not among others.
func without(links, others []Link) []Link {
	return slices.DeleteFunc(links, func(k Link) bool {
		return slices.ContainsFunc(others, func(d Link) bool { return d.isVisit(&k) })
	})
}

// advance continues a claim when all backups have answered. It ends when all current backups have the links, or this
// node is no longer the first backup: then the finder offers them to another one.
func (c *claims) advance(k *claim) {
	if k.pending--; k.pending > 0 {
		return
	}
	_, first := c.hosts.isFirst(k.host)
	if first && len(k.links) > 0 && !k.dispatched && !k.askAgain {
		c.hosts.dispatch(k.host, k.links)
	}
	k.dispatched, k.askAgain = k.dispatched || !k.askAgain, false
	known := k.dispatched && (len(k.links) == 0 || c.absences.complete(k.host, k.asked))
	if !known && first {
		k.pending = 1
		c.core.after(pause, func() {
			c.spread(k)
			c.advance(k)
		})
		return
	}
	c.byHost[k.host] = slices.DeleteFunc(c.byHost[k.host], func(o *claim) bool { return o == k })
	if len(c.byHost[k.host]) == 0 {
		delete(c.byHost, k.host)
	}
	for _, f := range k.waiters {
		f(known)
	}
	k.over(known && !k.refused)
}

// forget removes the claims of a host that has no open URLs left: later claims need not wait for them.
func (c *claims) forget(host string) { delete(c.byHost, host) }

// store records links that another backup has sent, and replies with their previous states. It refuses while this node
// leaves, and if it is not a backup of the host: no node would look for the links here.
func (c *claims) store(from strategy.Node, it item, answer func(reply)) {
	if _, is := c.place.otherBackups(it.host); !is || len(it.links) == 0 || c.place.leaving {
		answer(reply{code: replyNo})
		return
	}
	c.history.record(it.host, it.links, func(r Recorded, fresh []Link) {
		if it.number == itemGiven {
			c.differs(it, r.Before)
		}
		open, first := c.hosts.isFirst(it.host)
		if open && len(fresh) > 0 { // no other node may have them
			c.disclosure.addOpen(it.host, from)
		}
		c.hosts.setPrevious(it.host, it.node)
		if first && len(fresh) > 0 { // no other node may dispatch them
			c.begin(&claim{host: it.host, links: fresh, over: func(bool) {}, pending: 1})
		}
		yes := reply{code: replyYes, states: c.disclosure.redact(from, r.Before), number: c.absences.remaining()}
		// the sender may be the first backup now
		if target := c.hosts.target(it.host); target != "" && c.place.closerThanSelf(from, c.place.backupID(it.host)) {
			yes.node = target
		}
		c.addLater(&yes, it, func() { answer(yes) })
	})
}

// addLater adds to the reply to an itemStore the later visits to those of its open links that are done. The node that
// has reported them to this one may be lost since, before it could report them to the sender.
func (c *claims) addLater(r *reply, it item, over func()) {
	var open []Link
	for _, k := range withState(it.links, r.states, Done) {
		if k.State == Dispatched {
			open = append(open, k)
		}
	}
	if len(open) == 0 {
		over()
		return
	}
	c.history.readURLs(it.host, open, func(known Known) {
		size := 0
		for _, k := range known.Links {
			at := slices.IndexFunc(it.links, func(o Link) bool { return o.Hash == k.Hash })
			if k.Visit <= it.links[at].Visit {
				continue
			}
			if size += len(k.Hash) + len(k.Item); size > maxPacket {
				r.states = slices.Clone(r.states)
				r.states[at] = withheld // for the next reply
				continue
			}
			r.later = append(r.later, k)
		}
		over()
	})
}
