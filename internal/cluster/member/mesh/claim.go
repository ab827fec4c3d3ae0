package mesh

import (
	"cmp"
	"slices"

	"kumo/internal/cluster/strategy"
)

// The first backup's part: links that nodes have found become URLs that somebody is to fetch.

type offerKey struct {
	from   strategy.Node
	number uint64
}

// maxOffers is how many batches are claimed at once.
const maxOffers = 1024

// An offer is a batch of links that a node has found.
type offer struct {
	key     offerKey
	refused []int
	left    int // hosts whose links are being claimed
}

// A claim is what an offer has of one host.
type claim struct {
	host  string
	links []Link // new to this node's history, and to that of all who were asked
	asked []strategy.Node
	left  int  // backups that have not answered, and claims of the same links
	sent  bool // what is new is dispatched, or nothing is
	later bool // a backup is yet to say which links are done
	over  func(taken bool)
	then  []func(known bool) // what waits for it
	// what this node knew to be open may not be known to all backups, of which this node is not the first any more
	refused bool
}

// offered claims links. A batch that comes again while it is being claimed is answered once.
func (m *Machine) offered(e Offered) {
	o := &offer{key: offerKey{e.From, e.Number}}
	if m.offers[o.key] || len(m.offers) >= maxOffers {
		return // who sent it sends it again
	}
	m.offers[o.key] = true
	var order []string
	byHost, numbers := map[string][]Link{}, map[string][]int{}
	for i, k := range e.Links {
		if _, met := byHost[k.Host]; !met {
			if !m.closest(m.backup(k.Host)) {
				o.refused = append(o.refused, i)
				continue
			}
			order = append(order, k.Host)
		}
		k.State = Dispatched
		byHost[k.Host], numbers[k.Host] = append(byHost[k.Host], k.Link), append(numbers[k.Host], i)
	}
	o.left = 1 // the loop below
	over := func() {
		if o.left--; o.left == 0 {
			delete(m.offers, o.key)
			m.do(Answer{To: o.key.from, Number: o.key.number, Refused: o.refused})
		}
	}
	for _, host := range order {
		o.left++
		m.claim(e.From, host, byHost[host], func(taken bool) {
			if !taken {
				o.refused = append(o.refused, numbers[host]...)
			}
			over()
		})
	}
	over()
}

// claim enters links of a host into the history, here and at the other backups, and has those fetched that are new to
// all of them. The finder forgets a link that is taken. So it is not before all backups have it, however it came to be
// known here: by another claim that is under way, by one of a process before this one, or of another first backup.
func (m *Machine) claim(from strategy.Node, host string, links []Link, over func(taken bool)) {
	m.recordNew(host, links, func(r Recorded, fresh []Link) {
		h := m.hosts[host]
		switch {
		case h == nil: // all are done
			over(!m.holdsBack(from))
			return
		case !h.first:
			over(false)
			return
		}
		c := &claim{host: host, links: fresh, over: over, left: 1}
		c.refused = slices.Contains(r.Before, Done) && m.holdsBack(from)
		if open := openOf(links, r.Before); len(open) > 0 {
			m.awaitOpen(h, open, c)
		}
		m.begin(h, c)
	})
}

// openOf are links that were dispatched before.
func openOf(links []Link, before []State) (open []Link) {
	for i, s := range before {
		if s == Dispatched {
			open = append(open, links[i])
		}
	}
	return open
}

// awaitOpen lets a claim wait until all other backups have links that this node knew to be open.
func (m *Machine) awaitOpen(h *outstanding, open []Link, c *claim) {
	known := func(known bool) {
		c.refused = c.refused || !known
		m.settle(c)
	}
	for _, other := range h.claims {
		if rest := without(slices.Clone(open), other.links); len(rest) < len(open) {
			c.left++
			other.then = append(other.then, known)
			open = rest
		}
	}
	peers, _ := m.peers(h.host)
	lacks := func(n strategy.Node) bool { return !slices.Contains(h.had, n) }
	switch {
	case !h.sure:
		c.left++
		h.unsure = append(h.unsure, known)
		m.ensure(h)
	case len(open) > 0 && slices.ContainsFunc(peers, lacks):
		c.left++
		m.begin(h, &claim{host: h.host, links: open, left: 1, sent: true, over: known})
	}
}

// begin begins a claim of what was recorded here.
func (m *Machine) begin(h *outstanding, c *claim) {
	if len(c.links) > 0 {
		h.claims = append(h.claims, c)
	}
	m.spread(c)
	m.settle(c)
}

// spread asks the other backups to record what is claimed, but for those that have been asked.
func (m *Machine) spread(c *claim) {
	if len(c.links) == 0 {
		return
	}
	peers, _ := m.peers(c.host)
	for _, to := range peers {
		if slices.Contains(c.asked, to) {
			continue
		}
		c.asked = append(c.asked, to)
		c.left++
		links := slices.Clone(c.links)
		m.post(to, item{kind: itemStore, host: c.host, links: links}, func(_ strategy.Node, r *reply) {
			if m.hear(r); r == nil || r.code != replyYes {
				c.asked = slices.DeleteFunc(c.asked, func(n strategy.Node) bool { return n == to })
			} else {
				m.learn(c, links, r.states)
				m.hearTarget(c.host, r.node)
				if later := withState(links, r.states, withheld); len(later) > 0 { // it is asked again
					c.later = true
					c.asked = slices.DeleteFunc(c.asked, func(n strategy.Node) bool { return n == to })
				}
			}
			m.settle(c)
		})
	}
}

// hearTarget notes who fetches a host by what another backup knows: this node may have become the first one before it
// knows all nodes.
func (m *Machine) hearTarget(host string, target strategy.Node) {
	if h := m.hosts[host]; h != nil && h.target == "" && h.before == "" {
		h.before = target
	}
}

// learn takes in what another backup knew of what is claimed.
func (m *Machine) learn(c *claim, links []Link, states []State) {
	if done := doneOf(links, states); len(done) > 0 {
		c.links = without(c.links, done)
		c.left++
		m.record(c.host, done, func(Recorded) { m.settle(c) })
	}
}

// without are those of some links that are not among others.
func without(links, others []Link) []Link {
	return slices.DeleteFunc(links, func(k Link) bool {
		return slices.ContainsFunc(others, func(d Link) bool { return d.Hash == k.Hash })
	})
}

// settle goes on with a claim when all have answered. It ends when all have the links that are the backups by then, or
// this node is not the first of them any more: then another claims them.
func (m *Machine) settle(c *claim) {
	if c.left--; c.left > 0 {
		return
	}
	h := m.hosts[c.host]
	first := h != nil && h.first
	if first && len(c.links) > 0 && !c.sent && !c.later {
		m.dispatch(h, c.links)
	}
	c.sent, c.later = c.sent || !c.later, false
	known := c.sent && (len(c.links) == 0 || m.areAll(c.host, c.asked))
	if !known && first {
		c.left = 1
		m.after(pause, func() {
			m.spread(c)
			m.settle(c)
		})
		return
	}
	if h != nil {
		h.claims = slices.DeleteFunc(h.claims, func(o *claim) bool { return o == c })
	}
	for _, f := range c.then {
		f(known)
	}
	c.over(known && !c.refused)
}

// areAll reports whether some nodes are all backups of a host but for this one, and no other is to be waited for.
func (m *Machine) areAll(host string, nodes []strategy.Node) bool {
	peers, one := m.peers(host)
	n := len(peers)
	if one {
		n++
	}
	if m.fewer(n) {
		return false
	}
	return !slices.ContainsFunc(peers, func(p strategy.Node) bool { return !slices.Contains(nodes, p) })
}

// fewer reports whether n are fewer than the backups that a host has, and others may be back.
func (m *Machine) fewer(n int) bool { return n < m.cfg.Backups && m.absent.waits(m.now) }

// store records what another backup says of a host, and says what was known before. Who leaves takes nothing any more,
// nor who is no backup: what is recorded there nobody would look for.
func (m *Machine) store(from strategy.Node, it item, answer func(reply)) {
	if _, one := m.peers(it.host); !one || len(it.links) == 0 || m.leaving {
		answer(reply{code: replyNo})
		return
	}
	m.recordNew(it.host, it.links, func(r Recorded, fresh []Link) {
		if it.number == itemGiven {
			m.differed(it, r.Before)
		}
		h := m.hosts[it.host]
		if m.apart.owed != nil && h != nil && len(fresh) > 0 && m.mayHear(from) { // nobody else may know it
			m.apart.owed[it.host] = &owed{}
		}
		if h != nil && h.target == "" && it.node != "" {
			h.before = it.node
		}
		// it may be that nobody else sees to what is new here
		if h != nil && h.first && len(fresh) > 0 {
			m.begin(h, &claim{host: it.host, links: fresh, over: func(bool) {}, left: 1})
		}
		yes := reply{code: replyYes, states: m.withhold(from, r.Before), number: m.absent.left(m.now)}
		if h != nil && m.compare(from, m.cfg.Self, h.id) < 0 { // it is the first backup now, perhaps
			yes.node = cmp.Or(h.target, h.before)
		}
		answer(yes)
	})
}
