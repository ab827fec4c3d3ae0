package mesh

import (
	"maps"
	"slices"
	"time"

	"kumo/internal/base/varint"
	"kumo/internal/base/xor"
	"kumo/internal/cluster/strategy"
)

// What a node has done stays in the sums when it goes. Each node tells those closest to it how many pages it has
// fetched, a number that never falls, and they keep the greatest that they have heard. Who is the closest to the id of
// a node that has gone counts that node's pages with its own; when another one is the closest, it is told of them. A
// node that comes back is the closest to itself: it counts its own pages again, and is told what they were.

const (
	keepers    = 3 // nodes that keep the count of another one
	countEvery = 5 * time.Second
	countAnew  = 12      // after so many times keepers are told again: messages may be lost
	maxCounts  = 1 << 12 // that are kept; beyond, those of the farthest eighth are forgotten
	mostCounts = 1 << 8  // of a message
)

// counts are how many pages nodes have fetched, as far as they were heard here.
type counts struct {
	of     map[strategy.Node]*count
	rounds int
}

// A count is that of one node.
type count struct {
	id    xor.ID
	pages int64
	told  []strategy.Node // who is known to know it
}

// keepCounts tells keepers of counts every countEvery.
func (m *Machine) keepCounts() {
	m.after(countEvery, m.keepCounts)
	if m.counts.rounds++; m.counts.rounds%countAnew == 0 {
		for _, c := range m.counts.of {
			c.told = nil
		}
	}
	m.tellCounts()
}

// raise takes in what a node has fetched, as a node has said.
func (m *Machine) raise(node strategy.Node, pages int64, by strategy.Node) {
	c := m.counts.of[node]
	if c == nil {
		c = &count{id: m.idOf("node", string(node))}
		m.counts.of[node] = c
	}
	if pages > c.pages {
		c.pages, c.told = pages, nil
	}
	if pages == c.pages && by != m.cfg.Self && !slices.Contains(c.told, by) {
		c.told = append(c.told, by)
	}
	if len(m.counts.of) > maxCounts {
		m.forgetCounts()
	}
}

// forgetCounts forgets those of the farthest eighth of nodes.
func (m *Machine) forgetCounts() {
	all := slices.SortedFunc(maps.Keys(m.counts.of), func(a, b strategy.Node) int {
		return xor.Compare(m.counts.of[a].id, m.counts.of[b].id, m.id)
	})
	for _, node := range all[len(all)-len(all)/8:] {
		delete(m.counts.of, node)
	}
}

// tellCounts tells those who are to keep counts of all that they may not know, and reports whether that is anything.
func (m *Machine) tellCounts() bool {
	if m.cfg.Pages == nil {
		return false
	}
	m.raise(m.cfg.Self, m.cfg.Pages(), m.cfg.Self)
	news := map[strategy.Node][]strategy.Node{} // whose counts, by who is told
	for _, node := range slices.Sorted(maps.Keys(m.counts.of)) {
		c := m.counts.of[node]
		for _, to := range m.keepersOf(node, c.id) {
			if c.pages > 0 && !slices.Contains(c.told, to) {
				c.told = append(c.told, to)
				news[to] = append(news[to], node)
			}
		}
	}
	for _, to := range slices.Sorted(maps.Keys(news)) {
		for part := range slices.Chunk(news[to], mostCounts) {
			w := varint.Writer{messageCounts}
			for _, node := range part {
				w.String(string(node))
				w.Uint(uint64(m.counts.of[node].pages))
			}
			m.do(Send{To: to, Data: w})
		}
	}
	return len(news) > 0
}

// keepersOf are the other nodes that are to know a node's count. One that is there says itself who they are.
func (m *Machine) keepersOf(node strategy.Node, id xor.ID) []strategy.Node {
	near, _ := m.near(id, keepers+1)
	switch {
	case node == m.cfg.Self:
		return slices.DeleteFunc(slices.Clone(near), func(n strategy.Node) bool { return n == node })
	case len(near) > 0 && near[0] == node:
		return near[:1]
	}
	near = near[:min(len(near), keepers)]
	return slices.DeleteFunc(slices.Clone(near), func(n strategy.Node) bool { return n == m.cfg.Self })
}

func (m *Machine) heardCounts(from strategy.Node, r *varint.Reader) error {
	for n := 0; len(r.Rest) > 0; n++ {
		node, pages := strategy.Node(r.String()), r.Uint()
		if r.Bad || n == mostCounts || len(node) > maxName || pages > 1<<50 {
			return errMessage
		}
		if m.cfg.Pages != nil {
			m.raise(node, int64(pages), from)
		}
	}
	return nil
}

// countGone adds to what this node says of itself what nodes have done whose place is its own now.
func (m *Machine) countGone(t *Tally) {
	for node, c := range m.counts.of {
		switch {
		case node == m.cfg.Self:
			t.GonePages += max(c.pages-m.cfg.Pages(), 0) // before it had its engine, or lost its folder
		case c.pages > 0 && m.closest(c.id):
			t.Gone++
			t.GonePages += c.pages
		}
	}
}

// Counts are how many pages nodes have fetched, this one among them, of which it is known here.
func (m *Machine) Counts() map[strategy.Node]int64 {
	all := make(map[strategy.Node]int64, len(m.counts.of))
	for node, c := range m.counts.of {
		all[node] = c.pages
	}
	return all
}

func (m *Machine) initCounts() {
	m.counts.of = map[strategy.Node]*count{}
	if m.cfg.Pages == nil {
		return
	}
	for _, node := range slices.Sorted(maps.Keys(m.cfg.Counts)) {
		m.raise(node, m.cfg.Counts[node], m.cfg.Self)
	}
}
