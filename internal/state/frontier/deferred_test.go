package frontier

import (
	"fmt"
	"slices"
	"testing"
)

// Deferred items go after all other items of their host, the deepest first, even if the others are pushed later; also
// from disk, and after a restart from a checkpoint.
func TestDeferredGoesLast(t *testing.T) {
	cfg := Config{Dir: t.TempDir(), Memory: 64 << 10}
	f := open(t, cfg)
	const each = 300
	for i := range each {
		f.Push("h", Item{URL: fmt.Sprintf("https://h/deferred/%d", i), Deferred: true, Vain: uint8(i % 3)})
	}
	for i := range each {
		f.Push("h", Item{URL: fmt.Sprintf("https://h/%d", i), Rank: int32(i)})
	}
	v, err := f.Next(t.Context())
	if err != nil || v.Deferred {
		t.Fatalf("%+v goes first, %v", v, err)
	}
	it := v.Item
	it.Deferred, it.Vain = true, 9
	f.Done(v, Result{Requeue: []Item{it}})

	cut, err := f.Cut()
	if err == nil {
		err = cut.Write(nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	f = open(t, cfg)
	var vain []int
	for i := range 2 * each {
		v, err := f.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if late := i >= each-1; v.Deferred != late {
			t.Fatalf("at place %d: %+v", i, v.Item)
		}
		if v.Deferred {
			vain = append(vain, -int(v.Vain))
		}
		f.Done(v, Result{})
	}
	if len(vain) != each+1 || vain[0] != -9 || !slices.IsSorted(vain) {
		t.Errorf("deferred items in this order: %v", vain)
	}
}
