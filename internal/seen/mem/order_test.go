package mem

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// upToDate brings the order of a table up to date.
func upToDate(t *Table, most int) *Order {
	o, end := t.Order(), t.Next()
	var refs []Ref
	for i := range Groups {
		refs = t.Between(i, o.End(), end, refs)
	}
	o = o.With(t.Keys(), refs, end, most)
	t.KeepOrder(o)
	return o
}

// An order that is brought up to date again and again has what sorting gives, and those of before do not change.
func TestOrderIsThatOfTheKeys(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	table := New()
	for range 2 {
		var want, before []string
		if many := dice.IntN(2) == 0; many { // at once, so that not all is sorted in the beginning
			for i := range 2*longList + dice.IntN(1000) {
				key := fmt.Sprintf("https://host%d.example/%d", dice.IntN(1000), i)
				table.Add(key)
				want = append(want, key)
			}
			slices.Sort(want)
			before = slices.Clone(want)
			upToDate(table, dice.IntN(3))
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
			o := upToDate(table, dice.IntN(3))
			wantWalk(t, o, want, randomKey(dice))
			wantWalk(t, old, before, randomKey(dice))
			old, before = o, slices.Clone(want)
			if n := len(o.lists) + len(o.raw); n > 40 {
				t.Errorf("%d lists after %d rounds", n, round)
			}
		}
		table.Reset()
		if table.Order().From(nil, 1).Next() {
			t.Error("a table that was emptied has an order")
		}
	}
}

func wantWalk(t *testing.T, o *Order, want []string, from string) {
	t.Helper()
	at, _ := slices.BinarySearch(want, from)
	const step = 5000
	w := o.From([]byte(from), step)
	for i := at; i < len(want); i++ {
		more := w.Next()
		if !more && w.End() != nil { // not all is sorted
			from = max(from, string(w.End())+"\x00")
			w = o.From([]byte(from), step)
			more = w.Next()
		}
		if !more || string(w.Key()) != want[i] {
			t.Fatalf("from %.40q on key %d of %d is not %.40q", from, i, len(want), want[i])
		}
		if to := i + 1 + i%50; i%7 == 3 && to < len(want) { // over some
			from = want[to]
			w.Skip([]byte(from))
			i = to - 1
		}
	}
	if w.Next() && w.End() == nil {
		t.Fatalf("from %.40q on there is more than %d keys", from, len(want)-at)
	}
}

// BenchmarkOrder has a million URLs in order, and then ten thousand more.
func BenchmarkOrder(b *testing.B) {
	dice := rand.New(rand.NewPCG(1, 2))
	for b.Loop() {
		b.StopTimer()
		t := New()
		add := func(n int) {
			for range n {
				t.Add("https://www." + string(rune('a'+dice.IntN(26))) + randomHost(dice) + ".example/articles/2026/a-title-in-words.html")
			}
		}
		add(1_000_000)
		b.StartTimer()
		upToDate(t, 1000)
		b.StopTimer()
		first := b.Elapsed()
		add(10_000)
		b.StartTimer()
		upToDate(t, 1000)
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
