package mesh

import (
	"maps"
	"slices"
	"time"

	"kumo/internal/base/varint"
	"kumo/internal/base/xor"
	"kumo/internal/cluster/strategy"
)

const (
	keepers       = 3 // nodes that keep another node's count
	countEvery    = 5 * time.Second
	countResend   = 12      // rounds until all counts are sent again: messages may be lost
	maxCounts     = 1 << 12 // counts that are kept; beyond, the counts of the farthest eighth of nodes are dropped
	maxCountsSent = 1 << 8  // per message
)

// counts keep the numbers of pages that nodes have fetched, so that the sum over all nodes includes departed nodes.
//
// Each node sends its count, which never decreases, to the nodes closest to it. They keep the greatest count that they
// have received (messageCounts). The node closest to the id of a departed node adds that node's count to its own. When
// it becomes the closest, it receives the count from the keepers. A node that comes back is the closest to itself: it
// counts its own pages again, and receives its earlier count.
//
// Invariants: a count never decreases. At most maxCounts are kept.
type counts struct {
	core   *core
	place  *place
	pages  func() int64 // pages of this node; nil: not counted
	byNode map[strategy.Node]*count
	rounds int
}

// A count is one node's number of pages.
type count struct {
	id    xor.ID
	pages int64
	known []strategy.Node // nodes that have it
}

// newCounts returns counts with those of an earlier process.
func newCounts(c *core, p *place, pages func() int64, earlier map[strategy.Node]int64) *counts {
	s := &counts{core: c, place: p, pages: pages, byNode: map[strategy.Node]*count{}}
	if pages != nil {
		for _, node := range slices.Sorted(maps.Keys(earlier)) {
			s.raise(node, earlier[node], c.self)
		}
	}
	return s
}

// start sends counts every countEvery.
func (s *counts) start() {
	if s.pages != nil {
		s.core.after(countEvery, s.run)
	}
}

func (s *counts) run() {
	s.core.after(countEvery, s.run)
	if s.rounds++; s.rounds%countResend == 0 {
		for _, c := range s.byNode {
			c.known = nil
		}
	}
	s.send()
}

// raise processes a count that another node has reported.
func (s *counts) raise(node strategy.Node, pages int64, by strategy.Node) {
	c := s.byNode[node]
	if c == nil {
		c = &count{id: s.place.nodeID(node)}
		s.byNode[node] = c
	}
	if pages > c.pages {
		c.pages, c.known = pages, nil
	}
	if pages == c.pages && by != s.core.self && !slices.Contains(c.known, by) {
		c.known = append(c.known, by)
	}
	if len(s.byNode) > maxCounts {
		s.evict()
	}
}

func (s *counts) evict() {
	all := slices.SortedFunc(maps.Keys(s.byNode), func(a, b strategy.Node) int {
		return xor.Compare(s.byNode[a].id, s.byNode[b].id, s.place.id)
	})
	for _, node := range all[len(all)-len(all)/8:] {
		delete(s.byNode, node)
	}
}

// send sends counts to the keepers that may not have them. It reports whether there were any.
func (s *counts) send() bool {
	if s.pages == nil {
		return false
	}
	s.raise(s.core.self, s.pages(), s.core.self)
	news := map[strategy.Node][]strategy.Node{} // the nodes whose counts are sent, by receiver
	for _, node := range slices.Sorted(maps.Keys(s.byNode)) {
		c := s.byNode[node]
		for _, to := range s.place.keepers(node, c.id) {
			if c.pages > 0 && !slices.Contains(c.known, to) {
				c.known = append(c.known, to)
				news[to] = append(news[to], node)
			}
		}
	}
	for _, to := range slices.Sorted(maps.Keys(news)) {
		for part := range slices.Chunk(news[to], maxCountsSent) {
			w := varint.Writer{messageCounts}
			for _, node := range part {
				w.String(string(node))
				w.Uint(uint64(s.byNode[node].pages))
			}
			s.core.do(Send{To: to, Data: w})
		}
	}
	return len(news) > 0
}

func (s *counts) receive(from strategy.Node, r *varint.Reader) error {
	for n := 0; len(r.Rest) > 0; n++ {
		node, pages := strategy.Node(r.String()), r.Uint()
		if r.Bad || n == maxCountsSent || len(node) > maxName || pages > 1<<50 {
			return errMessage
		}
		if s.pages != nil {
			s.raise(node, int64(pages), from)
		}
	}
	return nil
}

// addGone adds the counts of departed nodes to a tally, if this node is the closest to them.
func (s *counts) addGone(t *Tally) {
	for node, c := range s.byNode {
		switch {
		case node == s.core.self: // fetched before the engine started, or lost with the directory
			t.DepartedPages += max(c.pages-s.pages(), 0)
		case c.pages > 0 && s.place.closest(c.id):
			t.Departed++
			t.DepartedPages += c.pages
		}
	}
}

// all returns the numbers of pages that the known nodes have fetched, including this one.
func (s *counts) all() map[strategy.Node]int64 {
	all := make(map[strategy.Node]int64, len(s.byNode))
	for node, c := range s.byNode {
		all[node] = c.pages
	}
	return all
}
