package overlay_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"kumo/internal/cluster/overlay"
	"kumo/internal/cluster/overlay/overlaytest"
)

// tell lets a node find the closest nodes to an id by reports of others.
func tell(w *overlaytest.World, n *overlaytest.Node, find overlay.Find) (found overlay.Found) {
	done := false
	n.OnFound = func(f overlay.Found) { found, done = f, true }
	n.Handle(find)
	for range 600 {
		if done {
			break
		}
		w.Run(50 * time.Millisecond)
	}
	n.OnFound = nil
	return found
}

// TestLookUpsOfARegionAreShared lets one node look up hundreds of ids. Once it has reports of all parts of the space,
// it needs no messages.
func TestLookUpsOfARegionAreShared(t *testing.T) {
	w := quiet(t, 200)
	n := w.RandomNode()
	asked := func(ids int) float64 {
		before := n.Stats().Asked
		for range ids {
			id := w.IDOf(strconv.FormatUint(w.Rand().Uint64(), 36))
			f := tell(w, n, overlay.Find{ID: id, Want: 3, AcceptReported: true})
			if !f.Exact || !slices.Equal(names(f.Closest), w.Closest(id, 3)) {
				t.Fatalf("found %q (exact %v), right is %q", names(f.Closest), f.Exact, w.Closest(id, 3))
			}
		}
		return float64(n.Stats().Asked-before) / float64(ids)
	}
	first, then := asked(20), asked(40)
	for range 10 {
		then = min(then, asked(40))
	}
	t.Logf("%.2f questions a look-up, then %.2f", first, then)
	if first < 0.5 || then > 0.5 {
		t.Error("look-ups share nothing")
	}
}

// TestARegionIsNotBelievedForLong lets a node die that was reported to another one.
func TestARegionIsNotBelievedForLong(t *testing.T) {
	w := quiet(t, 200)
	n, believed := w.RandomNode(), 0
	for range 10 {
		id := w.IDOf(strconv.FormatUint(w.Rand().Uint64(), 36))
		for n.ID.FirstDiff(id) < 255 { // outside of the part that it knows itself
			id = w.IDOf(strconv.FormatUint(w.Rand().Uint64(), 36))
		}
		closest := tell(w, n, overlay.Find{ID: id, Want: 3, AcceptReported: true}).Closest
		dead := w.ByID(closest[0].ID)
		w.Crash(dead)
		w.Run(12 * time.Second) // its neighbors have noticed
		find := overlay.Find{ID: id, Want: 3, AcceptReported: true}
		if f := tell(w, n, find); slices.Contains(names(f.Closest), dead.Name) {
			believed++
		}
		find.SkipCache = true
		if f := tell(w, n, find); !slices.Equal(names(f.Closest), w.Closest(id, 3)) {
			t.Errorf("anew it has found %q, right is %q", names(f.Closest), w.Closest(id, 3))
		}
		w.Run(31 * time.Second)
		find.SkipCache = false
		if f := tell(w, n, find); !slices.Equal(names(f.Closest), w.Closest(id, 3)) {
			t.Errorf("later it has found %q, right is %q", names(f.Closest), w.Closest(id, 3))
		}
	}
	if believed == 0 {
		t.Error("what was told was forgotten at once")
	}
}
