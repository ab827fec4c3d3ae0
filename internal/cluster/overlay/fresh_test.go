package overlay_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"kumo/internal/base/xor"
	"kumo/internal/cluster/overlay"
	"kumo/internal/cluster/overlay/overlaytest"
)

// TestWhatIsFreshIsTrue checks nodes continuously while others join and leave: a node that is fresh and considers
// itself the closest to an id is right, except for nodes that have just joined.
func TestWhatIsFreshIsTrue(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	w := overlaytest.New(seed)
	w.Loss = 0.05
	joinAll(w, 60, 500*time.Millisecond)
	w.Run(30 * time.Second)
	asked, fresh, wrong := 0, 0, 0
	for range 300 {
		if w.Rand().IntN(20) == 0 {
			w.Crash(w.RandomNode())
			w.Start(w.Names(1)[0], w.RandomNode().Name)
		}
		w.Run(time.Second)
		id := w.IDOf(w.RandomNode().Name + "?")
		for _, n := range w.Live() {
			if n.Len() == 0 {
				continue
			}
			asked++
			if n.Fresh <= w.Now() {
				continue
			}
			fresh++
			if n.ID.Distance(id).And(n.Occupied()) == (xor.ID{}) && w.Closest(id, 1)[0] != n.Name {
				wrong++
			}
		}
	}
	t.Logf("%d asked, %.2f %% fresh, %d wrong", asked, percent(fresh, asked), wrong)
	if percent(fresh, asked) < 95 || wrong > 15 {
		t.Error("that is too much that is not fresh, or wrong")
	}
}

// TestWhoSleptIsNotFresh isolates a node: it stays fresh only while its neighbors consider it alive, or until it has no
// contacts.
func TestWhoSleptIsNotFresh(t *testing.T) {
	w := overlaytest.New(7)
	joinAll(w, 20, time.Second)
	w.Run(time.Minute)
	for _, n := range w.Live() {
		if n.Fresh <= w.Now() || n.Fresh > w.Now()+10*time.Second {
			t.Errorf("%s is fresh until %v, at %v", n.Name, n.Fresh, w.Now())
		}
	}
	cut := w.RandomNode()
	w.Partition(func(a, b string) bool { return a == cut.Name || b == cut.Name })
	var gone time.Duration
	for range 15 {
		w.Run(time.Second)
		knows := false
		for _, n := range w.Live() {
			knows = knows || n.Table[cut.Name]
		}
		if gone == 0 && cut.Fresh < w.Now() {
			gone = w.Now()
		}
		if !knows && gone == 0 && len(cut.Neighbors(nil)) > 0 {
			t.Fatalf("it is fresh at %v, and nobody knows it any more", w.Now())
		}
	}
}

// TestWhoIsAloneIsFresh starts a network of one node, which is always fresh, and a node that waits for another one,
// which never is.
func TestWhoIsAloneIsFresh(t *testing.T) {
	w := overlaytest.New(8)
	first, waits := w.Start("first"), w.Start("waits", "nobody")
	for range 60 {
		w.Run(time.Second)
		if first.Fresh <= w.Now() {
			t.Errorf("it is fresh until %v at %v", first.Fresh, w.Now())
		}
		if waits.Fresh != 0 {
			t.Error("who has found nobody is fresh")
		}
	}
	var all []overlay.Contact
	for i := range xor.Bits {
		all = first.Bucket(i, all)
	}
	if len(all) != 0 {
		t.Error("who is alone has somebody in a bucket")
	}
}
