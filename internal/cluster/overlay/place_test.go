package overlay_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kumo/internal/cluster/overlay"
	"kumo/internal/cluster/overlay/overlaytest"
)

// TestNewcomersFindTheirPlaceSoon lets nodes join where messages are lost and neighbors rarely exchange messages: a new
// node requests missing lists again, even if its neighbors query it in between.
func TestNewcomersFindTheirPlaceSoon(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	w := overlaytest.New(seed)
	w.Loss = 0.05
	w.Config = overlay.Config{Notice: 30 * time.Second, Check: 10 * time.Minute}
	joinAll(w, 60, 500*time.Millisecond)
	w.Run(5 * time.Minute)
	late, longest := 0, time.Duration(0)
	for range 200 {
		n := w.Start(w.Names(1)[0], w.RandomNode().Name, w.RandomNode().Name, w.RandomNode().Name)
		began := w.Now()
		for n.Fresh == 0 && w.Now() < began+5*time.Minute {
			w.Run(time.Second)
		}
		took := w.Now() - began
		longest = max(longest, took)
		if took > 10*time.Second {
			late++
		}
	}
	t.Logf("%d of 200 took more than 10 seconds, the longest %v", late, longest)
	if late > 2 || longest > time.Minute {
		t.Error("that is too long")
	}
}

// TestDoubtFindsTheDead lets contacts that are not neighbors die, and reports them and a live one as suspects to a
// node: it notices the deaths at once, and keeps the live contact.
func TestDoubtFindsTheDead(t *testing.T) {
	w := overlaytest.New(3)
	w.Config = overlay.Config{Neighbors: 4, Check: time.Hour}
	joinAll(w, 40, 500*time.Millisecond)
	w.Run(time.Minute)
	n := w.Live()[0]
	var dead, lives []string
	for i, o := range slices.Clone(w.Live()[1:]) {
		switch near := slices.ContainsFunc(n.Neighbors(nil), func(c overlay.Contact) bool { return c.Node == o.Name }); {
		case near || !n.Table[o.Name]:
		case i%2 == 0:
			dead = append(dead, o.Name)
			w.Crash(o)
		default:
			lives = append(lives, o.Name)
		}
	}
	w.Run(30 * time.Second)
	known := func(names []string) (all int) {
		for _, name := range names {
			if n.Table[name] {
				all++
			}
		}
		return all
	}
	if known(dead) == 0 || known(lives) == 0 {
		t.Fatalf("%d of %d who are dead are known, %d of %d who live", known(dead), len(dead), known(lives), len(lives))
	}
	for _, name := range slices.Concat(dead, lives) {
		n.Handle(overlay.Suspect{Node: name})
	}
	before := known(lives)
	if w.Run(5 * time.Second); known(dead) > 0 || known(lives) < before {
		t.Errorf("%d who are dead are known, and %d of %d who live", known(dead), known(lives), before)
	}
}
