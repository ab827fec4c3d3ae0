package shard_test

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"testing"

	"kumo/internal/base/stats"
	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/shard"
)

// patterns returns several ways to distribute n nodes over the slots.
func patterns(cfg shard.Config, n int) map[string][]strategy.Member {
	front, apart := make([]int, n), make([]int, n)
	for i := range n {
		front[i], apart[i] = i, i*cfg.Slots/n
	}
	return map[string][]strategy.Member{"joined": joined(cfg, n), "front": inSlots(front...), "apart": inSlots(apart...)}
}

// TestEven: for every number of nodes and every pattern of slots, shares are as even as random assignment. One in a
// thousand p-values of an even distribution is below 0.001.
func TestEven(t *testing.T) {
	t.Parallel()
	lists := hostLists(2000)
	for _, second := range []shard.Second{shard.Rendezvous, shard.Jump, shard.Paper} {
		tests, low, least, seed := 0, 0, 1.0, uint64(0)
		for _, slots := range []int{8, 16, 64} {
			for n := 1; n <= slots; n++ {
				for pattern, members := range patterns(shard.Config{Slots: slots}, n) {
					for list, hosts := range lists {
						cfg := shard.Config{Slots: slots, Second: second, Seed: seed}
						v := shard.New(cfg).Place(members)
						p := stats.UniformP(shares(t, v, members, hosts))
						if p < 1e-5 {
							t.Errorf("%v, %d of %d slots (%s), hosts %s: p = %.2g", second, n, slots, pattern, list, p)
						}
						seed++ // distributions with the same seed are correlated
						if tests++; p < 0.01 {
							low++
						}
						least = min(least, p)
					}
				}
			}
		}
		t.Logf("%v: of %d spreads %d have p < 0.01, the least is %.2g", second, tests, low, least)
		if low > tests/50 {
			t.Errorf("%v: of %d spreads %d have p < 0.01, want one in a hundred", second, tests, low)
		}
	}
}

// TestOneHash: with one number mod M and mod N, nodes in every other slot have shares of 1/8 and 3/8; with two hashes
// they have a quarter each.
func TestOneHash(t *testing.T) {
	t.Parallel()
	members, hosts := inSlots(0, 2, 4, 6), hostLists(40_000)["www"]
	one := make([]int, 4)
	for _, h := range hosts {
		x := fnvOf(h) >> 20
		if slot := x % 8; slot%2 == 0 {
			one[slot/2]++
		} else {
			one[x%4]++
		}
	}
	for i, want := range []float64{0.125, 0.375, 0.125, 0.375} {
		if got := float64(one[i]) / float64(len(hosts)); math.Abs(got-want) > 0.02 {
			t.Errorf("one hash: node %d has a share of %.3f, want %.3f", i, got, want)
		}
	}
	for _, second := range allSeconds[:3] {
		counts := shares(t, shard.New(shard.Config{Slots: 8, Second: second}).Place(members), members, hosts)
		if p := stats.UniformP(counts); p < 0.001 {
			t.Errorf("two hashes, %v: %v, p = %.2g", second, counts, p)
		}
	}
}

// TestIndependent: the choice of the second level does not depend on that of the first. Without slots there is no first
// level; with all slots taken there is no second.
func TestIndependent(t *testing.T) {
	t.Parallel()
	const slots, nodes = 16, 12
	all, none := make([]int, slots), make([]int, nodes)
	for i := range all {
		all[i] = i
	}
	for i := range none {
		none[i] = -1
	}
	for _, second := range allSeconds {
		placer := shard.New(shard.Config{Slots: slots, Second: second})
		first, then := placer.Place(inSlots(all...)), placer.Place(inSlots(none...))
		for list, hosts := range hostLists(30_000) {
			if p := independence(contingency(first.Owner, then.Owner, hosts)); p < 1e-4 {
				t.Errorf("%v, hosts %s: p = %.2g", second, list, p)
			}
		}
	}
	one := func(n uint64) owner {
		return func(h string) (strategy.Node, strategy.State) { return node(int(fnvOf(h) % n)), strategy.Owned }
	}
	if p := independence(contingency(one(slots), one(nodes), hostLists(30_000)["www"])); p > 1e-9 {
		t.Errorf("the test takes one hash for two: p = %.2g", p)
	}
}

type owner func(host string) (strategy.Node, strategy.State)

// contingency counts how often each pair of owners occurs.
func contingency(first, second owner, hosts []string) [][]int {
	rows, columns := map[strategy.Node]int{}, map[strategy.Node]int{}
	pairs := map[[2]int]int{}
	index := func(m map[strategy.Node]int, n strategy.Node) int {
		if _, known := m[n]; !known {
			m[n] = len(m)
		}
		return m[n]
	}
	for _, h := range hosts {
		a, _ := first(h)
		b, _ := second(h)
		pairs[[2]int{index(rows, a), index(columns, b)}]++
	}
	table := make([][]int, len(rows))
	for i := range table {
		table[i] = make([]int, len(columns))
	}
	for at, n := range pairs {
		table[at[0]][at[1]] = n
	}
	return table
}

// TestBadHash: rendezvous hashing by FNV over host and node is far from even for names that differ in a few digits.
// That is why the package mixes its hashes.
func TestBadHash(t *testing.T) {
	t.Parallel()
	const nodes = 16
	members := make([]int, nodes)
	for i := range members {
		members[i] = -1
	}
	list := inSlots(members...)
	for name, hosts := range hostLists(10_000) {
		bad := make([]int, nodes)
		for _, h := range hosts {
			best, most := 0, uint64(0)
			for i, m := range list {
				if w := fnvOf(h + string(m.Node)); w >= most {
					best, most = i, w
				}
			}
			bad[best]++
		}
		good := shares(t, shard.New(shard.Config{}).Place(list), list, hosts)
		t.Logf("%s: FNV %v, p = %.2g; mixed %v, p = %.2g", name, bad, stats.UniformP(bad), good, stats.UniformP(good))
		if p := stats.UniformP(bad); p > 1e-6 {
			t.Errorf("%s: FNV is good enough after all, or the test is blind: p = %.2g", name, p)
		}
		if p := stats.UniformP(good); p < 1e-4 {
			t.Errorf("%s: p = %.2g", name, p)
		}
	}
}

func fnvOf(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	return h.Sum64()
}

// independence returns the p-value of Pearson's chi-square test of a contingency table: the probability that two
// independent choices yield a table at least as dependent. All rows must have the same length and must not be empty.
func independence(table [][]int) float64 {
	rows, columns, sum := make([]float64, len(table)), make([]float64, len(table[0])), 0.0
	for i, row := range table {
		for j, n := range row {
			rows[i] += float64(n)
			columns[j] += float64(n)
			sum += float64(n)
		}
	}
	chi2 := 0.0
	for i, row := range table {
		for j, n := range row {
			if expected := rows[i] * columns[j] / sum; expected > 0 {
				chi2 += (float64(n) - expected) * (float64(n) - expected) / expected
			}
		}
	}
	return stats.ChiSquareP(chi2, (len(rows)-1)*(len(columns)-1))
}

// TestIndependence: one in ten tables of independent choices has a p-value below 0.1; none of equal choices has.
func TestIndependence(t *testing.T) {
	t.Parallel()
	rng, low := rand.New(rand.NewPCG(1, 2)), 0
	for range 1000 {
		table := [][]int{make([]int, 6), make([]int, 6)}
		for range 1000 {
			table[rng.IntN(2)][rng.IntN(6)]++
		}
		if independence(table) < 0.1 {
			low++
		}
	}
	if low < 70 || low > 130 {
		t.Errorf("%d of 1,000 tables have a p below 0.1, want about 100", low)
	}
	if p := independence([][]int{{100, 0}, {0, 100}}); p > 1e-6 {
		t.Errorf("what is the same is taken for independent: p = %v", p)
	}
}
