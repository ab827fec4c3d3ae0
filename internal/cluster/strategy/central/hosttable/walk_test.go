package hosttable

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"kumo/internal/cluster/strategy"
)

// TestWalk: a walk passes hosts that are always present at least once, and exactly once if nothing changes.
func TestWalk(t *testing.T) {
	t.Parallel()
	names := crowd(2000, 3)
	for seed := range uint64(20) {
		for _, calm := range []bool{true, false} {
			t.Run(fmt.Sprint("seed ", seed, " calm ", calm), func(t *testing.T) {
				dice := rand.New(rand.NewPCG(seed, 2))
				tab := New(testKey)
				for _, host := range names[:1500] {
					tab.Set(host, randomRow(dice, 3))
				}
				change := func() { disturb(tab, names, dice) }
				if calm {
					change = func() {}
				}
				node := []strategy.Node{"node1~1", "", "node3~1"}[dice.IntN(3)]
				walk(t, tab, node, 1+dice.IntN(60), calm, change)
			})
		}
	}
}

// walk walks over the hosts of a node, and calls change between steps.
func walk(t *testing.T, tab *Table, node strategy.Node, most int, calm bool, change func()) {
	still := map[string]bool{} // owned by the node since the walk began
	for host, r := range content(t, tab) {
		if r.Owner == node {
			still[host] = true
		}
	}
	told, began := map[string]int{}, len(still)
	for cursor, done, calls := uint64(0), false, 0; !done; calls++ {
		n := 0
		cursor, done = tab.Each(node, cursor, most, func(host string, r Row) {
			if got, ok := tab.Get(host); !ok || got != r || r.Owner != node {
				t.Errorf("%q is told as %v, is %v, %v", host, r, got, ok)
			}
			told[host]++
			n++
		})
		if n > most || !done && n == 0 || calls > 100_000 {
			t.Fatalf("%d hosts in call %d, %d were asked for", n, calls, most)
		}
		change()
		for host := range still {
			if r, ok := tab.Get(host); !ok || r.Owner != node {
				delete(still, host)
			}
		}
	}
	for host := range still {
		if told[host] == 0 || calm && told[host] != 1 {
			t.Errorf("%q is told %d times", host, told[host])
		}
	}
	if calm && (len(told) != began || began == 0) || len(still) == 0 {
		t.Errorf("of %d hosts %d are told, %d stayed", began, len(told), len(still))
	}
}

func disturb(tab *Table, names []string, dice *rand.Rand) {
	for range dice.IntN(12) {
		host := names[dice.IntN(len(names))]
		switch x := dice.IntN(100); {
		case x == 0:
			part := tab.Part(host)
			if err := tab.LoadPart(tab.AppendPart(nil, part)); err != nil {
				panic(err)
			}
		case x < 70:
			tab.Delete(host)
		default:
			tab.Set(host, randomRow(dice, 3))
		}
	}
}

// TestWalkFew: a call returns soon even if the node owns hardly any hosts.
func TestWalkFew(t *testing.T) {
	t.Parallel()
	tab := New(testKey)
	for i := range 3 * maxScan {
		tab.Set(fmt.Sprint(i), Row{Owner: "many~1"})
	}
	tab.Set("one", Row{Owner: "few~1"})
	var got []string
	calls := 0
	for cursor, done := uint64(0), false; !done; calls++ {
		cursor, done = tab.Each("few~1", cursor, 10, func(host string, _ Row) { got = append(got, host) })
	}
	if calls < 3 || len(got) != 1 || got[0] != "one" {
		t.Errorf("%d calls told of %q", calls, got)
	}
	if _, done := tab.Each("none~1", 0, 10, nil); !done {
		t.Error("who owns nothing has to be looked for")
	}
}
