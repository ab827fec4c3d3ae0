package ids

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"kumo/internal/base/siphash"
	"kumo/internal/state/rank"
)

// TestNumbers: added URLs have their numbers, in order, and others have none.
func TestNumbers(t *testing.T) {
	const seed, n = 1, 300_000
	t.Log("seed", seed)
	dice, table, want := rand.New(rand.NewPCG(seed, 1)), New(), map[Key]rank.ID{}
	for len(want) < n {
		k := Key(dice.Uint64() >> (64 - KeyBits))
		before, known := want[k]
		if id, ok := table.Find(k); ok != known || ok && id != before {
			t.Fatalf("%x is found as %d, %v; want %d, %v", k, id, ok, before, known)
		}
		id, isNew, err := table.Add(k)
		if err != nil || isNew == known || known && id != before || isNew && int(id) != len(want) {
			t.Fatalf("%x: %d, %v, %v; want %d, %v", k, id, isNew, err, before, known)
		}
		want[k] = id
		if again, isNew, err := table.Add(k); again != id || isNew || err != nil {
			t.Fatalf("%x again: %d, %v, %v", k, again, isNew, err)
		}
	}
	all := 0
	for i := range Parts {
		table.Part(i, func(k Key, id rank.ID) {
			if all++; want[k] != id {
				t.Fatalf("part %d has %x as %d, want %d", i, k, id, want[k])
			}
		})
	}
	if all != n || table.Len() != n {
		t.Errorf("%d in parts, %d in all, want %d", all, table.Len(), n)
	}
}

// TestNearKeys: keys that differ in any one bit are distinguished.
func TestNearKeys(t *testing.T) {
	table := New()
	for _, k := range []Key{0, 1<<KeyBits - 1, 0x1555555555} {
		numbers := map[rank.ID]bool{}
		for bit := range KeyBits + 1 {
			near := (k ^ 1<<bit) & (1<<KeyBits - 1) // in the last round, k itself
			id, _, err := table.Add(near)
			if err != nil || numbers[id] {
				t.Fatalf("%x: %d, %v", near, id, err)
			}
			numbers[id] = true
		}
	}
}

// TestCollisions: the number of URLs that share a number is as expected.
func TestCollisions(t *testing.T) {
	if testing.Short() {
		t.Skip("-short")
	}
	const n = 3_000_000
	table, key := New(), siphash.Key{1}
	for i := range n {
		if _, _, err := table.Add(KeyOf(&key, fmt.Sprintf("https://example.com/%d", i))); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d of %d URLs share a number; expected %.1f", n-table.Len(), n, float64(n)*n/(2<<KeyBits))
	if shared := n - table.Len(); shared > 60 { // a probability of less than one in 10,000
		t.Errorf("%d URLs share a number", shared)
	}
}

// TestMemory: a URL takes less than 8 bytes, whatever the number of URLs.
func TestMemory(t *testing.T) {
	dice, table := rand.New(rand.NewPCG(1, 1)), New()
	worst := 0.0
	for n := 1; n <= 3_000_000; n++ {
		if _, _, err := table.Add(Key(dice.Uint64() >> (64 - KeyBits))); err != nil {
			t.Fatal(err)
		}
		if n >= 1_000_000 && n%50_000 == 0 {
			worst = max(worst, float64(table.Bytes())/float64(table.Len()))
		}
	}
	t.Logf("%.2f bytes a URL at the most", worst)
	if worst > 8.1 {
		t.Errorf("%.2f bytes a URL", worst)
	}
}

func BenchmarkAdd(b *testing.B) {
	for _, n := range []int{1e6, 1e7} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				dice, table := rand.New(rand.NewPCG(1, 1)), New()
				for range n {
					if _, _, err := table.Add(Key(dice.Uint64() >> (64 - KeyBits))); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(table.Bytes())/float64(n), "B/URL")
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/URL")
		})
	}
}

func BenchmarkFind(b *testing.B) {
	const n = 1e7
	dice, table := rand.New(rand.NewPCG(1, 1)), New()
	for range int(n) {
		if _, _, err := table.Add(Key(dice.Uint64() >> (64 - KeyBits))); err != nil {
			b.Fatal(err)
		}
	}
	for _, known := range []bool{true, false} {
		b.Run(fmt.Sprintf("known=%v", known), func(b *testing.B) {
			dice := rand.New(rand.NewPCG(1, map[bool]uint64{true: 1, false: 2}[known]))
			found, i := 0, 0
			for b.Loop() {
				if i++; known && i%int(n) == 0 {
					dice = rand.New(rand.NewPCG(1, 1))
				}
				if _, ok := table.Find(Key(dice.Uint64() >> (64 - KeyBits))); ok {
					found++
				}
			}
			if known != (found > b.N/2) {
				b.Errorf("%d of %d found", found, b.N)
			}
		})
	}
}
