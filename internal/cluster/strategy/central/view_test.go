package central

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"kumo/internal/cluster/strategy"
)

// TestTrie compares tries with maps. Keys with common low bits lie deep.
func TestTrie(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var now *trie
		is := map[uint64]uint32{}
		var earlier []*trie
		var were []map[uint64]uint32
		for range 3000 {
			k := rng.Uint64N(500)
			if k%2 == 0 {
				k <<= 56 // equal except for the last levels
			}
			if rng.IntN(3) == 0 {
				var was bool
				now, was = now.without(k)
				if _, has := is[k]; has != was {
					t.Fatalf("seed %d: %x was there: %v, not %v", seed, k, was, has)
				}
				delete(is, k)
			} else {
				v := rng.Uint32()
				_, had := is[k]
				var added bool
				if now, added = now.set(k, v); added == had {
					t.Fatalf("seed %d: %x is new: %v", seed, k, added)
				}
				is[k] = v
			}
			if rng.IntN(300) == 0 {
				earlier, were = append(earlier, now), append(were, maps.Clone(is))
			}
		}
		for i, tr := range append(earlier, now) {
			want := is
			if i < len(were) {
				want = were[i]
			}
			for n := range uint64(500) {
				k := n
				if k%2 == 0 {
					k <<= 56
				}
				got, has := tr.get(k)
				if v, ok := want[k]; ok != has || v != got {
					t.Fatalf("seed %d, trie %d: %x is %d, %v, not %d, %v", seed, i, k, got, has, v, ok)
				}
			}
		}
	}
}

func TestForeignHostsAreForgotten(t *testing.T) {
	s := newNobody("a~1")
	s.Step(s.now, []strategy.Event{strategy.Members{Epoch: 1, Settled: 1, Members: []strategy.Member{{Node: "a~1"},
		{Node: "b~1"}}}}, nil)
	for i := range 3 * maxForeign {
		s.owners.cedeTo(fmt.Sprintf("h%d.test", i), "b~1")
	}
	s.owners.publish()
	known := 0
	for i := range 3 * maxForeign {
		if n, s := s.View().Owner(fmt.Sprintf("h%d.test", i)); s == strategy.Owned && n == "b~1" {
			known++
		}
	}
	if known < maxForeign || known > 2*maxForeign {
		t.Errorf("%d hosts of others are known, with generations of %d", known, maxForeign)
	}
	s.Step(s.now, []strategy.Event{strategy.Members{Epoch: 2, Settled: 1, Members: []strategy.Member{{Node: "a~1"}}}}, nil)
	if n, s := s.View().Owner(fmt.Sprintf("h%d.test", 3*maxForeign-1)); s != strategy.Unknown {
		t.Errorf("a dead node's host is %s's", n)
	}
}

func BenchmarkOwner(b *testing.B) {
	var own *trie
	names := make([]string, 1<<20)
	for i := range names {
		names[i] = fmt.Sprintf("www%d.example.com", i)
		own, _ = own.set(key(names[i]), ownGranted)
	}
	v := &view{self: "a~1", own: own}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		v.Owner(names[i*7919%len(names)])
	}
}
