package seen

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"kumo/internal/base/vfs"
)

// States of many URLs equals StateOf for each: in memory, on disk, undecided and unknown ones.
func TestStatesAreThoseOfLook(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	dice := rand.New(rand.NewPCG(seed, 1))
	db, err := Open(vfs.OS, t.TempDir(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	url := func() string { return fmt.Sprintf("http://h%d.test/%d", dice.IntN(200), dice.IntN(20)) }
	found := map[State]int{}
	for range 12 {
		offer := make([]URL, dice.IntN(400))
		for i := range offer {
			offer[i] = URL{URL: url(), State: []State{Known, Deferred}[dice.IntN(2)], Depth: dice.Int32N(5)}
		}
		db.Offer(offer, nil)
		if dice.IntN(2) == 0 {
			db.Freeze(0)
			if err := db.Merge(t.Context(), func([]Decided) error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
		urls := make([]string, 500)
		for i := range urls {
			urls[i] = url()
		}
		states, err := db.States(urls)
		if err != nil {
			t.Fatal(err)
		}
		for i, u := range urls {
			want, _, err := db.StateOf(u)
			if err != nil || states[i] != want {
				t.Fatalf("%s: %v, looked up alone %v, %v", u, states[i], want, err)
			}
			found[want]++
		}
	}
	if found[Known] == 0 || found[Deferred] == 0 || found[Unknown] == 0 {
		t.Errorf("not all states came: %v", found)
	}
}
