package experiments

import (
	"context"

	"kumo/internal/lab/dice"
	"kumo/internal/state/rank"
	"kumo/internal/state/rank/pagerank"
)

// A rankCluster has nodes that crawl a graph together, in turns. Each has the URLs of its own hosts, and fetches the
// URL with the highest rank.
type rankCluster struct {
	g      *Graph
	silent bool
	growth float64
	batch  int

	nodes      []*rankNode
	owner      []uint16  // node of each host
	links      []rank.ID // as in the graph, but each page's links to its own node's URLs come first
	localLinks []int32   // number of these, for each page

	place       []rank.Place // of each URL at its node
	isKnown     []bool       // by its node
	known       []rank.ID    // in the order in which they became known
	fetched     []bool
	pages       []rank.ID // fetched
	remoteLinks int       // links found to other nodes' URLs
	sent        int
	resent      int // contributions sent after a pass, not because of a link
}

// A rankNode is a node.
type rankNode struct {
	c             *rankCluster
	order         *pagerank.Order
	queue         oneQueue
	known         []rank.ID
	pages         []rank.ID // fetched by it
	contributions []contribution

	found, passed int // links and contributions: now, and at the last pass

	reports       *rank.Reports
	reported      []rank.ID       // reported URLs
	outgoing      []contribution  // to be sent, in order
	outgoingIndex map[rank.ID]int // index in outgoing of each URL
}

// A contribution is the rank that a node's links give to another node's URL.
type contribution struct {
	to    rank.ID
	worth float32
}

func newRankCluster(g *Graph, seed uint64, nodes int, silent bool, growth float64, batch int) *rankCluster {
	n := g.Pages()
	c := &rankCluster{g: g, silent: silent, growth: growth, batch: batch, owner: make([]uint16, g.Hosts()),
		links: make([]rank.ID, 0, g.Links()), localLinks: make([]int32, n), place: make([]rank.Place, n),
		isKnown: make([]bool, n), fetched: make([]bool, n)}
	for h := range c.owner {
		d := dice.Dice(seed ^ uint64(h)*0xd1342543de82ef95)
		c.owner[h] = uint16(below(&d, nodes))
	}
	for range nodes {
		o := pagerank.New(0)
		o.Grow(n)
		told := rank.NewReports(o.Unit())
		told.Grow(n)
		c.nodes = append(c.nodes, &rankNode{c: c, order: o, passed: minPassLinks, reports: told,
			outgoingIndex: map[rank.ID]int{}})
	}
	for u := range rank.ID(n) {
		own := c.ownerOf(u)
		begin := len(c.links)
		for _, to := range g.out(u) {
			if c.ownerOf(to) == own {
				c.links = append(c.links, to)
			}
		}
		c.localLinks[u] = int32(len(c.links) - begin)
		for _, to := range g.out(u) {
			if c.ownerOf(to) != own {
				c.links = append(c.links, to)
			}
		}
	}
	return c
}

func (c *rankCluster) ownerOf(u rank.ID) uint16 { return c.owner[c.g.hosts[u]] }

// out returns the links of a page: those to its own node's URLs, and the others.
func (c *rankCluster) out(u rank.ID) (home, abroad []rank.ID) {
	all := c.page(u).Links
	return all[:c.localLinks[u]], all[c.localLinks[u]:]
}

// page returns a page in the form that orders use.
func (c *rankCluster) page(u rank.ID) rank.Page {
	links := c.links[c.g.first[u]:c.g.first[u+1]]
	return rank.Page{ID: u, Links: links, Out: len(links)}
}

func (c *rankCluster) importance(u rank.ID) float64 {
	return c.nodes[c.ownerOf(u)].order.Importance(u, 0)
}

// run crawls from the seeds until no URL is left. It calls fetched after each fetch.
func (c *rankCluster) run(ctx context.Context, seeds []rank.ID, fetched func(context.Context) error) error {
	for _, u := range seeds {
		c.nodes[c.ownerOf(u)].addLink(u)
	}
	for turn := 1; ; turn++ {
		idle := true
		for _, n := range c.nodes {
			did, err := n.fetch(ctx)
			if err != nil {
				return err
			}
			if did {
				idle = false
				if err := fetched(ctx); err != nil {
					return err
				}
			}
		}
		if turn%c.batch == 0 || idle {
			if err := ctx.Err(); err != nil {
				return err
			}
			if !c.exchange() && idle {
				return nil
			}
		}
	}
}

// exchange delivers all outgoing contributions, and reports whether there were any.
func (c *rankCluster) exchange() (any bool) {
	for _, from := range c.nodes {
		for _, gift := range from.outgoing {
			c.nodes[c.ownerOf(gift.to)].receive(gift)
		}
		any = any || len(from.outgoing) > 0
		c.sent += len(from.outgoing)
		from.outgoing = from.outgoing[:0]
		clear(from.outgoingIndex)
	}
	return any
}

// fetch fetches the pending page that ranks highest; false if there is none.
func (n *rankNode) fetch(ctx context.Context) (bool, error) {
	c := n.c
	u, ok := n.queue.pop(func(u rank.ID, at rank.Place) bool { return !c.fetched[u] && c.place[u] == at })
	if !ok {
		return false, nil
	}
	home, abroad := c.out(u)
	page := c.page(u)
	c.fetched[u] = true
	c.pages, n.pages = append(c.pages, u), append(n.pages, u)
	n.order.Fetched(&page)
	for _, to := range home {
		n.addLink(to)
	}
	c.remoteLinks += len(abroad)
	n.reports.AddBudget(len(abroad))
	for _, to := range abroad {
		n.report(to)
	}
	n.found += page.Out
	return true, n.pass(ctx)
}

// addLink adds a URL of the node to its queue, or updates its position.
func (n *rankNode) addLink(u rank.ID) {
	c := n.c
	if !c.isKnown[u] {
		c.isKnown[u], c.place[u] = true, -1
		c.known, n.known = append(c.known, u), append(n.known, u)
	}
	n.move(u)
}

func (n *rankNode) move(u rank.ID) {
	c := n.c
	if place := rank.PlaceOf(n.order.Importance(u, 0)); !c.fetched[u] && place != c.place[u] {
		c.place[u] = place
		n.queue.push(u, place)
	}
}

// report queues a contribution to another node's URL, if it has changed enough.
func (n *rankNode) report(to rank.ID) {
	if n.reports.Worth(to) == 0 {
		n.reported = append(n.reported, to)
	}
	more := n.reports.Delta(to, n.order.Worth(to))
	if more == 0 {
		return
	}
	n.reports.Add(to, more)
	if n.c.silent {
		if more == n.reports.Worth(to) {
			n.put(contribution{to: to})
		}
		return
	}
	n.put(contribution{to, more})
}

// reportChanges reports the contributions that a pass has changed.
func (n *rankNode) reportChanges() {
	if n.c.silent {
		return
	}
	var census rank.Histogram
	for _, u := range n.reported {
		n.reports.Count(&census, u, n.order.Worth(u))
	}
	places := n.reports.Threshold(&census)
	for _, u := range n.reported {
		if n.reports.Changed(u, n.order.Worth(u), places) {
			n.report(u)
			n.c.resent++
		}
	}
}

func (n *rankNode) put(gift contribution) {
	if at, waits := n.outgoingIndex[gift.to]; waits {
		n.outgoing[at].worth += gift.worth
		return
	}
	n.outgoingIndex[gift.to] = len(n.outgoing)
	n.outgoing = append(n.outgoing, gift)
}

// receive applies a contribution from another node.
func (n *rankNode) receive(gift contribution) {
	if gift.worth != 0 {
		n.order.AddExternal(gift.to, gift.worth)
		n.contributions = append(n.contributions, gift)
		n.found++
	}
	n.addLink(gift.to)
}

// pass recomputes ranks when links and contributions have grown enough.
func (n *rankNode) pass(ctx context.Context) error {
	if float64(n.found) < (1+n.c.growth)*float64(n.passed) {
		return nil
	}
	n.passed = n.found
	if err := passOver(ctx, n.order, n.pages, n.c.page, n.contributions); err != nil {
		return err
	}
	for _, u := range n.known {
		n.move(u)
	}
	n.reportChanges()
	return nil
}
