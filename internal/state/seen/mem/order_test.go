package mem

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// upToDate updates the order of a table.
func upToDate(t *Table) *Order {
	for {
		o := t.Order()
		refs, end := t.Refs(o.End(), nil)
		for len(refs) < LongList {
			from := end
			if refs, end = t.Refs(from, refs); end == from {
				break
			}
		}
		if end == o.End() {
			return o
		}
		t.KeepOrder(o.With(t.Keys(), refs, end))
	}
}

// An order that is updated repeatedly is equal to the sorted keys, and earlier orders do not change.
func TestOrderIsThatOfTheKeys(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	table := New()
	for range 2 {
		var want, before []string
		if many := dice.IntN(2) == 0; many { // several long lists
			for i := range 2*LongList + dice.IntN(1000) {
				key := fmt.Sprintf("https://host%d.example/%d", dice.IntN(1000), i)
				table.Add(key)
				want = append(want, key)
			}
			slices.Sort(want)
			before = slices.Clone(want)
			upToDate(table)
		}
		old := table.Order()
		for round := range 12 {
			for range dice.IntN(20) * dice.IntN(300) {
				if key := randomKey(dice); table.Find(key) == 0 {
					table.Keep([]byte(key))
					table.Add(key)
					want = append(want, key)
				}
			}
			slices.Sort(want)
			o := upToDate(table)
			wantWalk(t, o, want, randomKey(dice))
			wantWalk(t, old, before, randomKey(dice))
			old, before = o, slices.Clone(want)
			if n := len(o.lists); n > 40 || o.Len() != len(want) {
				t.Errorf("%d lists after %d rounds, of %d records: want %d", n, round, o.Len(), len(want))
			}
		}
		table.Reset()
		if table.Order().From(nil).Next() {
			t.Error("a table that was emptied has an order")
		}
	}
}

func wantWalk(t *testing.T, o *Order, want []string, from string) {
	t.Helper()
	at, _ := slices.BinarySearch(want, from)
	w := o.From([]byte(from))
	for i := at; i < len(want); i++ {
		if !w.Next() || string(w.Key()) != want[i] {
			t.Fatalf("from %.40q on key %d of %d is not %.40q", from, i, len(want), want[i])
		}
		if to := i + 1 + i%50; i%7 == 3 && to < len(want) { // skip some
			from = want[to]
			w.Skip([]byte(from))
			i = to - 1
		}
	}
	if w.Next() {
		t.Fatalf("from %.40q on there is more than %d keys", from, len(want)-at)
	}
}

// BenchmarkOrder sorts a million URLs, and then ten thousand more.
func BenchmarkOrder(b *testing.B) {
	dice := rand.New(rand.NewPCG(1, 2))
	for b.Loop() {
		b.StopTimer()
		t := New()
		add := func(n int) {
			for range n {
				t.Add("https://www." + string(rune('a'+dice.IntN(26))) + randomHost(dice) +
					".example/articles/2026/a-title-in-words.html")
			}
		}
		add(1_000_000)
		b.StartTimer()
		upToDate(t)
		b.StopTimer()
		first := b.Elapsed()
		add(10_000)
		b.StartTimer()
		upToDate(t)
		b.ReportMetric(float64((b.Elapsed()-first).Microseconds())/1000, "ms/10k-more")
	}
}

func randomHost(dice *rand.Rand) string {
	b := make([]byte, 10)
	for i := range b {
		b[i] = byte('a' + dice.IntN(26))
	}
	return string(b)
}
