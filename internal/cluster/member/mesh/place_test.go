package mesh

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kumo/internal/base/xor"
	"kumo/internal/cluster/strategy"
)

// everybody is an overlay that knows all nodes.
type everybody struct {
	self  strategy.Node
	nodes []strategy.Node
}

func (e everybody) id(n strategy.Node) xor.ID { return xor.Of("node", string(n)) }

func (e everybody) Closest(id xor.ID, n int) ([]strategy.Node, bool) {
	all := slices.Clone(e.nodes)
	slices.SortFunc(all, func(a, b strategy.Node) int { return xor.Compare(e.id(a), e.id(b), id) })
	return all[:min(n, len(all))], true
}

func (e everybody) Bucket(i int) (nodes []strategy.Node) {
	for _, n := range e.nodes {
		if e.id(e.self).FirstDiff(e.id(n)) == i {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

func (e everybody) Occupied() (bits xor.ID) {
	for i := range xor.Bits {
		if len(e.Bucket(i)) > 0 {
			bits = bits.Set(i)
		}
	}
	return bits
}

func (e everybody) Neighbors() []strategy.Node {
	return slices.DeleteFunc(slices.Clone(e.nodes), func(n strategy.Node) bool { return n == e.self })
}

// TestEachHostIsOneNodes checks that exactly one of all nodes has each host, the closest one.
func TestEachHostIsOneNodes(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	now := time.Unix(1e9, 0)
	for range 20 {
		var nodes []strategy.Node
		for range 1 + rng.IntN(30) {
			nodes = append(nodes, strategy.Node(fmt.Sprintf("n%d", rng.Uint32())))
		}
		machines := map[strategy.Node]*Machine{}
		for _, n := range nodes {
			m := New(Config{Self: n, Overlay: everybody{n, nodes}, HasPending: func(string) bool { return false }})
			m.Step(now, []Event{NeighborsChanged{}, Fresh{now.Add(time.Second)}}, nil)
			machines[n] = m
		}
		for range 100 {
			host := fmt.Sprintf("h%d", rng.Uint32())
			closest, _ := everybody{nodes: nodes}.Closest(xor.Of("target", host), 1)
			for _, n := range nodes {
				m := machines[n]
				if is := m.View().Ours(host); is != (n == closest[0]) || m.place.isTarget(host) != is {
					t.Fatalf("%s is %s's to fetch, and %s says so: %v", host, closest[0], n, is)
				}
			}
		}
	}
}
