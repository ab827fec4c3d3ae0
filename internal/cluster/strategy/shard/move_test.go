package shard_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/shard"
)

// TestMinimal: under any two lists a host has the same owner, unless its new owner has joined or its old owner has
// left; a changed slot counts as both. The other second levels fail this test at once.
func TestMinimal(t *testing.T) {
	t.Parallel()
	rng, hosts := random(t, 1), hostLists(300)["www"]
	for _, second := range allSeconds {
		moved := 0
		for range 300 {
			cfg := shard.Config{Slots: 1 + rng.IntN(40), Second: second, Seed: rng.Uint64()}
			pool := somePool(rng, cfg)
			placer := shard.New(cfg)
			one, two := someOf(rng, pool), someOf(rng, pool)
			moved += needless(placer, one, two, hosts)
		}
		if minimal := shard.New(shard.Config{Second: second}).Minimal(); minimal != (moved == 0) {
			t.Errorf("%v: Minimal() is %v, and %d hosts have moved in vain", second, minimal, moved)
		}
	}
}

// somePool returns nodes with different slots; some have none, and some that of another node, which is not allowed.
func somePool(rng *rand.Rand, cfg shard.Config) (pool []strategy.Member) {
	for i := range 1 + rng.IntN(2*cfg.Slots) {
		m := strategy.Member{Node: node(i), Slot: cfg.FreeSlot(pool, node(i))}
		if rng.IntN(20) == 0 {
			m.Slot = rng.IntN(cfg.Slots)
		}
		pool = append(pool, m)
	}
	return sorted(pool)
}

// someOf returns a part of a list, in its order.
func someOf(rng *rand.Rand, pool []strategy.Member) (part []strategy.Member) {
	share := rng.Float64()
	for _, m := range pool {
		if rng.Float64() < share {
			part = append(part, m)
		}
	}
	return part
}

// needless counts hosts that move between two nodes that are in both lists.
func needless(placer strategy.Placer, one, two []strategy.Member, hosts []string) (moved int) {
	before, after := placer.Place(one), placer.Place(two)
	stays := func(n strategy.Node) bool {
		i := slices.IndexFunc(one, func(m strategy.Member) bool { return m.Node == n })
		return i >= 0 && slices.Contains(two, one[i])
	}
	for _, h := range hosts {
		a, had := before.Owner(h)
		b, has := after.Owner(h)
		if had == strategy.Owned && has == strategy.Owned && a != b && stays(a) && stays(b) {
			moved++
		}
	}
	return moved
}

// TestSequence: in a sequence of joins and departures, hosts only move to joining nodes and from departed ones, in the
// expected number.
func TestSequence(t *testing.T) {
	t.Parallel()
	rng, hosts := random(t, 2), hostLists(5000)["sites"]
	cfg := shard.Config{Slots: 16, Seed: 3}
	placer, members := shard.New(cfg), joined(cfg, 5)
	for i := range 200 {
		before := members
		if join := len(members) < 2 || len(members) < cfg.Slots && rng.IntN(2) == 0; join {
			n := node(100 + i)
			members = sorted(append(slices.Clone(members), strategy.Member{Node: n, Slot: cfg.FreeSlot(members, n)}))
		} else {
			gone := rng.IntN(len(members))
			members = slices.Delete(slices.Clone(members), gone, gone+1)
		}
		if n := needless(placer, before, members, hosts); n > 0 {
			t.Fatalf("change %d, from %v to %v: %d hosts moved in vain", i, before, members, n)
		}
		got, want := share(placer, before, members, hosts), 1/float64(max(len(before), len(members)))
		if math.Abs(got-want) > 6*math.Sqrt(want/float64(len(hosts))) {
			t.Errorf("change %d, from %d to %d nodes: %.1f %% moved, want %.1f", i, len(before), len(members), 100*got, 100*want)
		}
	}
}

// share returns the share of hosts that move.
func share(placer strategy.Placer, one, two []strategy.Member, hosts []string) float64 {
	before, after, moved := placer.Place(one), placer.Place(two), 0
	for _, h := range hosts {
		a, _ := before.Owner(h)
		if b, _ := after.Owner(h); a != b {
			moved++
		}
	}
	return float64(moved) / float64(len(hosts))
}

// TestPaperMoves: the paper's form moves 61 % where 20 % would suffice, as the package comment states.
func TestPaperMoves(t *testing.T) {
	t.Parallel()
	hosts := hostLists(40_000)["www"]
	for second, want := range map[shard.Second]float64{shard.Paper: 0.6125, shard.Rendezvous: 0.2, shard.Jump: 0.2} {
		cfg := shard.Config{Slots: 16, Second: second}
		if got := share(shard.New(cfg), joined(cfg, 4), joined(cfg, 5), hosts); math.Abs(got-want) > 0.01 {
			t.Errorf("%v: %.1f %% of the hosts move, want %.1f", second, 100*got, 100*want)
		}
	}
}
