package mesh

import (
	"slices"

	"kumo/internal/strategy"
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
	fresh []Link // new to this node's history, and to that of all who were asked
	asked []strategy.Node
	left  int // backups that have not answered
	over  func()
}

// offered claims links. A batch that comes again while it is being claimed is answered once.
func (m *Machine) offered(e Offered) {
	o := &offer{key: offerKey{e.From, e.Number}}
	if m.offers[o.key] || len(m.offers) >= maxOffers {
		return // who sent it sends it again
	}
	m.offers[o.key] = true
	var order []string
	byHost := map[string][]Link{}
	for i, k := range e.Links {
		if _, met := byHost[k.Host]; !met {
			if !m.closest(m.backup(k.Host)) {
				o.refused = append(o.refused, i)
				continue
			}
			order = append(order, k.Host)
		}
		k.State = Dispatched
		byHost[k.Host] = append(byHost[k.Host], k.Link)
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
		m.claim(host, byHost[host], over)
	}
	over()
}

// claim enters links of a host into the history, here and at the other backups, and has those fetched that are new to
// all of them.
func (m *Machine) claim(host string, links []Link, over func()) {
	m.record(host, links, func(r Recorded) {
		c := &claim{host: host, over: over}
		for i, before := range r.Before {
			if before == Unknown && !slices.ContainsFunc(c.fresh, func(k Link) bool { return k.Hash == links[i].Hash }) {
				c.fresh = append(c.fresh, links[i])
			}
		}
		if len(c.fresh) == 0 {
			over()
			return
		}
		c.left = 1
		m.spread(c)
		m.settle(c)
	})
}

// spread asks the other backups to record what is claimed.
func (m *Machine) spread(c *claim) {
	peers, _ := m.peers(c.host)
	for _, to := range peers {
		if slices.Contains(c.asked, to) {
			continue
		}
		c.asked = append(c.asked, to)
		c.left++
		links := slices.Clone(c.fresh)
		m.post(to, item{kind: itemStore, host: c.host, links: links}, func(_ strategy.Node, r *reply) {
			if r == nil || r.code != replyYes {
				m.spread(c) // others are the backups now, perhaps
			} else {
				m.learn(c, links, r.states)
			}
			m.settle(c)
		})
	}
}

// learn takes in what another backup knew of what is claimed.
func (m *Machine) learn(c *claim, links []Link, states []State) {
	var done []Link
	for i, s := range states {
		if s == Done && i < len(links) {
			done = append(done, Link{Hash: links[i].Hash, State: Done})
			c.fresh = slices.DeleteFunc(c.fresh, func(k Link) bool { return k.Hash == links[i].Hash })
		}
	}
	if len(done) > 0 {
		c.left++
		m.record(c.host, done, func(Recorded) { m.settle(c) })
	}
}

// settle ends a claim when all have answered.
func (m *Machine) settle(c *claim) {
	if c.left--; c.left > 0 {
		return
	}
	if h := m.hosts[c.host]; h != nil && len(c.fresh) > 0 {
		m.dispatch(h, c.fresh)
	}
	c.over()
}

// store records what another backup says of a host, and says what was known before. Who leaves takes nothing any more.
func (m *Machine) store(it item, answer func(reply)) {
	if len(it.links) == 0 || m.leaving {
		answer(reply{code: replyNo})
		return
	}
	m.record(it.host, it.links, func(r Recorded) {
		if h := m.hosts[it.host]; h != nil && h.first { // it may be that nobody sees to what is new here
			var fresh []Link
			for i, before := range r.Before {
				if before == Unknown && it.links[i].State == Dispatched {
					fresh = append(fresh, it.links[i])
				}
			}
			if len(fresh) > 0 {
				m.dispatch(h, fresh)
			}
		}
		answer(reply{code: replyYes, states: r.Before})
	})
}
