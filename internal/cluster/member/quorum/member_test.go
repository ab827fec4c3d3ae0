package quorum

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
)

func node(i int) strategy.Node { return strategy.Node(fmt.Sprintf("n%d~1", i)) }

func hosts(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("www%d.example.com", i))
	}
	return all
}

// TestMembers lets nodes join, die, come back and leave, by a seed, and checks at rest whether each host is held by
// exactly one node.
func TestMembers(t *testing.T) {
	for seed := range seeds() {

		w := newWorld(t, seed)
		w.lossy = seed%3 == 0
		all := hosts(40)
		w.add(node(0), false)
		w.run(10 * time.Second)
		for _, h := range all {
			w.shared[node(0)][h] = true
		}
		next := 1
		for range 12 {
			w.upset(w.nodes[node(w.rng.IntN(next))], &next, w.rng.IntN(10))
			w.run(time.Duration(w.rng.IntN(40)) * time.Second / 2)
		}
		for range 20 {
			w.revive(node(next))
			if w.run(30 * time.Second); w.check(all) == nil {
				break
			}
		}
		if err := w.check(all); err != nil {
			t.Log(strings.Join(w.story, "\n"))
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// upset has a node join, or has one die, come back or leave. It reports whether op is possible.
func (w *world) upset(n *testNode, next *int, op int) bool {
	switch {
	case op < 4 && *next < 7:
		w.add(node(*next), false)
		*next++
	case op < 6 && !n.dead && alive(w) > 1:
		n.kill()
	case op < 8 && n.dead && n.joined && len(n.ends) == 0:
		w.add(n.id, true)
	case op < 9 && !n.dead:
		n.inbox = append(n.inbox, member.Leave{})
	default:
		return false
	}
	return true
}

// seeds returns the number of seeds: KUMO_TEST_SEEDS, or a few.
func seeds() uint64 {
	n, err := strconv.ParseUint(os.Getenv("KUMO_TEST_SEEDS"), 10, 64)
	if err != nil {
		return 300
	}
	return n
}

// revive ensures that a node is alive: one of the table, or else a new one.
func (w *world) revive(fresh strategy.Node) {
	for _, id := range sortedNodes(w.nodes) {
		if n := w.nodes[id]; alive(w) == 0 && n.joined && w.holds(id) {
			w.add(id, true)
		}
	}
	if alive(w) == 0 && w.nodes[fresh] == nil {
		w.add(fresh, false)
	}
}

// holds reports whether the table has a node.
func (w *world) holds(id strategy.Node) bool {
	t, err := ParseTable(w.keys[TableKey].Value)
	return err == nil && t.participates(id)
}

func alive(w *world) (n int) {
	for _, o := range w.nodes {
		if !o.dead {
			n++
		}
	}
	return n
}
