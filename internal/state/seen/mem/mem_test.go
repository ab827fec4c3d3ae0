package mem

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestAgainstMap fills a table and a map in the same way, twice, and compares them.
func TestAgainstMap(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	table := New()
	for range 2 {
		want := map[string]uint32{}
		for range 20_000 {
			key := randomKey(dice)
			ref := table.Find(key)
			if _, ok := want[key]; ok != (ref != 0) {
				t.Fatalf("Find(%.40q) = %d, in the map: %v", key, ref, ok)
			}
			if ref == 0 {
				ref = table.Add(key)
			}
			want[key] = dice.Uint32()
			table.SetWord(ref, 3, want[key])
			table.SetWord(ref, 0, uint32(table.Keep([]byte(key))))
			table.SetFlags(ref, uint8(want[key]))
		}
		agree(t, table, want)
		table.Reset()
		if table.Len() != 0 || table.Find("") != 0 {
			t.Error("the table is not empty after Reset")
		}
	}
}

func agree(t *testing.T, table *Table, want map[string]uint32) {
	t.Helper()
	if table.Len() != len(want) {
		t.Errorf("Len = %d, want %d", table.Len(), len(want))
	}
	var got []string
	for _, it := range table.Sorted(nil) {
		key := string(table.Key(it.Ref))
		got = append(got, key)
		w := want[key]
		if table.Word(it.Ref, 3) != w || table.Flags(it.Ref) != uint8(w) || table.Word(it.Ref, 1) != 0 ||
			string(table.Kept(Ref(table.Word(it.Ref, 0)))) != key {
			t.Fatalf("the record of %.40q is not what was put there", key)
		}
	}
	if !slices.IsSorted(got) || len(got) != len(want) {
		t.Errorf("%d keys, sorted: %v; want %d", len(got), slices.IsSorted(got), len(want))
	}
	var all []Search
	for key := range want {
		all = append(all, Search{Key: key}, Search{Key: key + "?"})
	}
	table.FindAll(all)
	for _, one := range all {
		if one.Ref != table.Find(one.Key) {
			t.Fatalf("FindAll found %.40q at %d, Find at %d", one.Key, one.Ref, table.Find(one.Key))
		}
	}
}

// randomKey returns keys that share long prefixes, contain zeros, are empty or very long.
func randomKey(dice *rand.Rand) string {
	switch dice.IntN(10) {
	case 0:
		return strings.Repeat("\x00", dice.IntN(30))
	case 1:
		return string(bytes.Repeat([]byte{'a'}, dice.IntN(40))) + strings.Repeat("\x00", dice.IntN(10))
	case 2: // of any length up to some pages, with a common prefix
		return strings.Repeat("p", 200+dice.IntN(60)) + strings.Repeat(string(rune('a'+dice.IntN(3))), dice.IntN(900))
	case 3:
		if dice.IntN(500) == 0 {
			return strings.Repeat("long", 300_000+dice.IntN(4))
		}
	}
	return fmt.Sprintf("https://host%d.example/%d/%d", dice.IntN(20), dice.IntN(30), dice.IntN(100))
}

func BenchmarkSorted(b *testing.B) {
	t := New()
	for i := range 200_000 {
		t.Add(fmt.Sprintf("https://www.host%d.example/folder/%d/page-%d.html", i%997, i%13, i))
	}
	var items []Item
	for b.Loop() {
		items = t.Sorted(items[:0])
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*t.Len()), "ns/key")
}
