package overlay

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"kumo/internal/base/xor"
)

// withFirst returns an id with a first byte.
func withFirst(b byte) (id xor.ID) {
	id[0] = b
	return id
}

// someTable returns a table with as many of n random contacts as it has room for.
func someTable(rng *rand.Rand, width, k, near, n int) (t *table, cfg *Config) {
	c := Config{Self: Contact{Node: fmt.Sprint("self", rng.Uint64())}, Width: width, K: k, Neighbors: near}.withDefaults()
	cfg = &c
	made := newTable(cfg, &peer{Contact: cfg.Self})
	t = &made
	for range n {
		name := fmt.Sprint(rng.Uint64())
		id := IDOf(name).Truncate(width)
		if id == t.self.ID || find(t.bucket(id).live, id) != nil {
			continue
		}
		if t.isNear(id) || t.hasRoom(t.bucket(id)) {
			t.insert(&peer{Contact: Contact{Node: name, ID: id}})
		}
	}
	return t, cfg
}

func TestClosestIsThatOfAllContacts(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		width := []int{3, 8, 16, 256}[rng.IntN(4)]
		table, _ := someTable(rng, width, 1+rng.IntN(8), 1+rng.IntN(8), rng.IntN(200))
		all := []*peer{table.self}
		for i := range table.buckets {
			all = append(all, table.buckets[i].live...)
		}
		id := IDOf(fmt.Sprint(rng.Uint64())).Truncate(width)
		if rng.IntN(4) == 0 {
			id = all[rng.IntN(len(all))].ID
		}
		slices.SortFunc(all, func(a, b *peer) int { return xor.Compare(a.ID, b.ID, id) })
		n := rng.IntN(12)
		got := table.closest(id, n, make([]*peer, 3))[3:]
		if want := all[:min(n, len(all))]; !slices.Equal(got, want) {
			t.Fatalf("width %d: of %d the %d closest are not right: %d", width, len(all), n, len(got))
		}
	}
}

func TestTableKeepsItsBounds(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		k, near := 1+rng.IntN(6), 1+rng.IntN(6)
		table, cfg := someTable(rng, 16, k, near, 400)
		for range 200 { // remove contacts, add others
			var all []*peer
			for i := range table.buckets {
				all = append(all, table.buckets[i].live...)
			}
			if len(all) != table.live {
				t.Fatalf("%d contacts, %d counted", len(all), table.live)
			}
			slices.SortFunc(all, func(a, b *peer) int { return xor.Compare(a.ID, b.ID, table.self.ID) })
			if n := min(near, len(all)); !slices.Equal(table.near, all[:n]) {
				t.Fatalf("neighbours are not the %d nearest of %d", n, len(all))
			}
			for d := range table.buckets {
				b := &table.buckets[d]
				if table.countFar(b) > k {
					t.Fatalf("bucket %d: %d contacts", d, table.countFar(b))
				}
				for _, p := range b.live {
					if depth(table.self.ID, p.ID) != d || p.near != slices.Contains(table.near, p) {
						t.Fatalf("a contact is in the wrong place")
					}
				}
			}
			if len(all) > 0 && rng.IntN(2) == 0 {
				table.remove(all[rng.IntN(len(all))])
				continue
			}
			c := Contact{Node: fmt.Sprint(rng.Uint64())}
			c.ID = IDOf(c.Node).Truncate(cfg.Width)
			if c.ID != table.self.ID && find(table.bucket(c.ID).live, c.ID) == nil &&
				(table.isNear(c.ID) || table.hasRoom(table.bucket(c.ID))) {
				table.insert(&peer{Contact: c})
			}
		}
	}
}

// TestWhatIsExactIs uses tables that contain only the nearest nodes of a network as neighbors: results that they report
// as exact are exact for the network.
func TestWhatIsExactIs(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	said := 0
	for range 200 {
		network, _ := someTable(rng, 8, 256, 1, 1+rng.IntN(200))
		var all []*peer
		for i := range network.buckets {
			all = append(all, network.buckets[i].live...)
		}
		cfg := *network.cfg
		cfg.Neighbors = 1 + rng.IntN(16)
		sub := newTable(&cfg, network.self)
		slices.SortFunc(all, func(a, b *peer) int { return xor.Compare(a.ID, b.ID, sub.self.ID) })
		for _, p := range all[:min(cfg.Neighbors, len(all))] {
			sub.insert(&peer{Contact: p.Contact})
		}
		sub.prefix = sub.watchedPrefix()
		for i := range 256 {
			id, n := withFirst(byte(i)), 1+rng.IntN(6)
			got := sub.closest(id, n, nil)
			exact := sub.exact(id, got)
			want := network.closest(id, exact, nil)
			for j := range min(exact, len(got)) {
				said++
				if got[j].ID != want[j].ID {
					t.Fatalf("%d of the %d closest to %d are said to be exact, but %d is not", exact, n, i, j)
				}
			}
			if exact > len(got) && len(want) != len(got) {
				t.Fatalf("%d contacts are said to be all, of %d", len(got), len(want))
			}
		}
	}
	if said < 1000 {
		t.Errorf("only %d said to be exact", said)
	}
}
