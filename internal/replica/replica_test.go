package replica

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"kumo/internal/xor"
)

// A space is one of few bits: ids are its numbers in the first bits of an xor.ID.
type space int

func (s space) id(n int) (id xor.ID) {
	n <<= 32 - s
	return xor.ID{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}
}

func (s space) ids(numbers []int) (all []xor.ID) {
	for _, n := range numbers {
		all = append(all, s.id(n))
	}
	return all
}

// holders are the r numbers closest to a key, by another way than that of Holders.
func holders(key int, nodes []int, r int) []int {
	var best []int
	for _, n := range nodes {
		i := len(best)
		for i > 0 && n^key < best[i-1]^key {
			i--
		}
		if i < r {
			best = slices.Insert(best[:min(len(best), r-1)], i, n)
		}
	}
	return best
}

// counts are what moves took.
type counts struct {
	moved   int // records sent
	whole   int // of these, in lists that no key had to be looked at for
	touched int // records held against a mask: all of a divided list
}

func (c *counts) add(d counts) {
	c.moved += d.moved
	c.whole += d.whole
	c.touched += d.touched
}

func (c counts) String() string {
	return fmt.Sprintf("%d records sent, %d of them (%.1f %%) in whole lists; %d looked at", c.moved, c.whole,
		100*float64(c.whole)/max(float64(c.moved), 1), c.touched)
}

// A change of a network in a space, where every record of keys is at its holders before.
type change struct {
	space
	r                   int
	before, after, gone []int
	keys                []int
}

func (c change) String() string {
	return fmt.Sprintf("%d bits, r = %d: %v to %v, gone %v", c.space, c.r, c.before, c.after, c.gone)
}

// run has all nodes do what Moves says, and fails where a record is not at its holders then.
func (c change) run(t testing.TB) (n counts) {
	t.Helper()
	in := Change{Before: c.ids(c.before), After: c.ids(c.after), Gone: c.ids(c.gone)}
	plans := map[int][]Move{}
	for _, node := range c.before {
		if !slices.Contains(c.gone, node) {
			plans[node] = Moves(c.id(node), c.r, in)
		}
	}
	for _, key := range c.keys {
		was, now := holders(key, c.before, c.r), holders(key, c.after, c.r)
		if !slices.ContainsFunc(was, func(n int) bool { return !slices.Contains(c.gone, n) }) {
			continue // all who had it are dead
		}
		var has []int
		for _, node := range was {
			if slices.Contains(c.gone, node) {
				continue
			}
			to, dropped := c.send(t, node, key, plans[node], &n)
			has = append(has, to...)
			if dropped == slices.Contains(now, node) {
				t.Fatalf("%v: %d drops %d: %v, but its holders are %v", c, node, key, dropped, now)
			}
			if !dropped {
				has = append(has, node)
			}
		}
		slices.Sort(has)
		slices.Sort(now)
		if !slices.Equal(has, now) {
			t.Fatalf("%v: the record %d is at %v, not at %v", c, key, has, now)
		}
	}
	return n
}

// send is to whom a node sends a record that it holds, and whether it drops it.
func (c change) send(t testing.TB, node, key int, plan []Move, n *counts) (to []int, dropped bool) {
	t.Helper()
	id, list := c.id(key), c.id(node).FirstDiff(c.id(key))
	found, divided := false, false
	for i := range plan {
		m := &plan[i]
		divided = divided || !m.List && c.id(node).FirstDiff(m.Keys.Value) == list
		if !m.Keys.Contains(id) {
			continue
		}
		if found {
			t.Fatalf("%v: %d has two moves for %d", c, node, key)
		}
		found, dropped = true, m.Drop
		if m.LookUp > 0 {
			t.Fatalf("%v: %d is to look %d up", c, node, key)
		}
		for _, id := range m.To {
			to = append(to, int(uint32(id[0])<<24|uint32(id[1])<<16|uint32(id[2])<<8|uint32(id[3]))>>(32-c.space))
		}
		n.moved += len(m.To)
		if m.List {
			n.whole += len(m.To)
		}
	}
	if divided {
		n.touched++
	}
	return to, dropped
}

// some are different numbers of a space.
func (s space) some(dice *rand.Rand, n int) (numbers []int) {
	for len(numbers) < n {
		if k := dice.IntN(1 << s); !slices.Contains(numbers, k) {
			numbers = append(numbers, k)
		}
	}
	return numbers
}

func all(bits space) (keys []int) {
	for k := range 1 << bits {
		keys = append(keys, k)
	}
	return keys
}

func without(nodes []int, gone ...int) (left []int) {
	for _, n := range nodes {
		if !slices.Contains(gone, n) {
			left = append(left, n)
		}
	}
	return left
}

// TestAllSmallNetworks goes through all networks of 3 bits, and through those of 8 bits with 2 or 3 nodes: there one is
// 0, since all distances stay the same when the same bits of all ids are turned.
func TestAllSmallNetworks(t *testing.T) {
	var n counts
	for r := 1; r <= 4; r++ {
		for set := range 1 << 8 {
			var nodes []int
			for i := range 8 {
				if set>>i&1 != 0 {
					nodes = append(nodes, i)
				}
			}
			for other := 1; other < 1<<8 && len(nodes) > 0; other <<= 1 {
				one := []int{}
				for i := range 8 {
					if other>>i&1 != 0 {
						one = append(one, i)
					}
				}
				if slices.Contains(nodes, one[0]) && len(nodes) == 1 {
					continue // who is left alone has nobody to send to
				} else if slices.Contains(nodes, one[0]) {
					n.add(change{3, r, nodes, without(nodes, one[0]), nil, all(3)}.run(t))
					n.add(change{3, r, nodes, without(nodes, one[0]), one, all(3)}.run(t))
				} else {
					n.add(change{3, r, nodes, append(nodes[:len(nodes):len(nodes)], one[0]), nil, all(3)}.run(t))
				}
			}
		}
	}
	t.Log("3 bits:", n)
	n = counts{}
	keys := all(8)
	for a := 1; a < 256; a++ {
		n.add(change{8, 1, []int{a}, []int{a, 0}, nil, keys}.run(t))
		n.add(change{8, 1, []int{a, 0}, []int{a}, nil, keys}.run(t))
		for b := a + 1; b < 256; b++ {
			if testing.Short() && b%8 != 0 {
				continue
			}
			n.add(change{8, 1, []int{a, b}, []int{a, b, 0}, nil, keys}.run(t))
			n.add(change{8, 1, []int{a, b, 0}, []int{a, b}, nil, keys}.run(t))
			if a%16 == 1 {
				n.add(change{8, 2, []int{a, b}, []int{a, b, 0}, nil, keys}.run(t))
				n.add(change{8, 2, []int{a, b, 0}, []int{a, b}, nil, keys}.run(t))
			}
		}
	}
	t.Log("8 bits, up to 3 nodes:", n)
}

// TestRandomNetworks has nodes come, leave and die, one or several at once.
func TestRandomNetworks(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	for _, bits := range []space{8, 12, 16} {
		n := map[string]*counts{"join": {}, "leave": {}, "crash": {}, "several": {}}
		for range 250 {
			nodes := bits.some(dice, 3+dice.IntN(31))
			keys := all(bits)
			if bits > 8 {
				keys = bits.some(dice, 200)
			}
			r, one := 1+dice.IntN(4), nodes[0]
			n["join"].add(change{bits, r, nodes[1:], nodes, nil, keys}.run(t))
			n["leave"].add(change{bits, r, nodes, nodes[1:], nil, keys}.run(t))
			n["crash"].add(change{bits, r, nodes, nodes[1:], []int{one}, keys}.run(t))
			cut := 1 + dice.IntN(len(nodes)-2)
			some := 1 + dice.IntN(cut)
			dead := nodes[:dice.IntN(some+1)]
			n["several"].add(change{bits, r, nodes[:cut+1], nodes[some:], dead, keys}.run(t))
		}
		for what, n := range n {
			t.Logf("%d bits, %s: %v", bits, what, n)
		}
	}
}

// TestFullWidth has networks of 256 bits, with nodes that are near each other among them, and keys near nodes.
func TestFullWidth(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	near := func(ids []xor.ID) (id xor.ID) {
		for i := range id {
			id[i] = byte(dice.Uint32())
		}
		if len(ids) > 0 && dice.IntN(2) == 0 {
			copy(id[:dice.IntN(xor.Size)], ids[dice.IntN(len(ids))][:])
		}
		return id
	}
	var whole, divided int
	for range 100 {
		var nodes []xor.ID
		for range 4 + dice.IntN(40) {
			if id := near(nodes); !slices.Contains(nodes, id) {
				nodes = append(nodes, id)
			}
		}
		r, some := 1+dice.IntN(4), 1+dice.IntN(len(nodes)/2)
		c := Change{Before: nodes, After: nodes[some:]}
		if dice.IntN(2) == 0 {
			c.Before, c.After = c.After, c.Before
		}
		plans := make([][]Move, len(c.Before))
		for i, id := range c.Before {
			plans[i] = Moves(id, r, c)
			for _, m := range plans[i] {
				if m.List {
					whole++
				} else {
					divided++
				}
			}
		}
		for range 100 {
			key := near(nodes)
			was, now := Holders(key, c.Before, r), Holders(key, c.After, r)
			var has []xor.ID
			for i, id := range c.Before {
				if !slices.Contains(was, id) {
					continue
				}
				dropped := false
				for _, m := range plans[i] {
					if m.Keys.Contains(key) {
						has, dropped = append(has, m.To...), m.Drop
					}
				}
				if !dropped {
					has = append(has, id)
				}
			}
			slices.SortFunc(has, func(a, b xor.ID) int { return xor.Compare(a, b, key) })
			if !slices.Equal(has, now) {
				t.Fatalf("r = %d, %d nodes to %d: the record %v is at %v, not at %v", r, len(c.Before), len(c.After), key,
					has, now)
			}
		}
	}
	t.Logf("parts of nodes' records: %d lists that move whole, %d parts of divided lists", whole, divided)
}

func TestOutside(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	const bits = space(8)
	for range 300 {
		nodes, r := bits.some(dice, 1+dice.IntN(32)), 1+dice.IntN(4)
		parts := Outside(bits.id(nodes[0]), bits.ids(nodes), r)
		for key := range 1 << bits {
			n := 0
			for _, p := range parts {
				if p.Contains(bits.id(key)) {
					n++
				}
			}
			if held := slices.Contains(holders(key, nodes, r), nodes[0]); n > 1 || held != (n == 0) {
				t.Fatalf("r = %d, %v: %d is in %d parts outside, held: %v", r, nodes, key, n, held)
			}
		}
	}
}

func BenchmarkMoves(b *testing.B) {
	dice := rand.New(rand.NewPCG(1, 2))
	var nodes []xor.ID
	for range 200 {
		var id xor.ID
		for i := range id {
			id[i] = byte(dice.Uint32())
		}
		nodes = append(nodes, id)
	}
	slices.SortFunc(nodes, func(x, y xor.ID) int { return xor.Compare(x, y, nodes[0]) })
	b.ReportAllocs()
	for b.Loop() {
		Moves(nodes[1], 3, Change{Before: nodes[1:], After: nodes})
	}
}
