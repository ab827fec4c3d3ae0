package mesh

import (
	"testing"
	"time"
)

// TestTheEndWaitsForWhoIsAway removes a node with or without notice, while no node has anything to do. Without notice
// the remaining nodes may be only a part of the network: they do not end the crawl before the node counts as lost. A
// node that knows no crawl never ends it.
func TestTheEndWaitsForWhoIsAway(t *testing.T) {
	for _, c := range []struct {
		what        string
		left, crawl bool
		after       time.Duration // the end is detected after this time, and not much later; 0: never
	}{
		{"it says farewell", true, true, time.Second},
		{"it dies", false, true, 2 * time.Minute},
		{"nobody knows of a crawl", true, false, 0},
	} {
		w := newWorld(t, 3)
		if c.crawl {
			w.tell(w.node(0), Change{Data: []byte("has seeds")})
		}
		w.gone(w.node(2).name, c.left)
		ended := func() (n int) {
			for _, name := range w.live {
				n += w.nodes[name].ended
			}
			return n
		}
		if w.pass(max(c.after-time.Second, 0)); ended() > 0 {
			t.Errorf("%s: the end is found too early", c.what)
		}
		if w.pass(20 * time.Second); (ended() > 0) != (c.after > 0) {
			t.Errorf("%s: the end is found %d times", c.what, ended())
		}
	}
}

// TestUpkeepIsNoWork has a node die whose place another one takes. While that node receives the history of done URLs,
// all nodes are idle and receive no work, so the end can be detected.
func TestUpkeepIsNoWork(t *testing.T) {
	for _, state := range []State{Done, Dispatched} {
		w := newWorld(t, 4)
		for i := range 3 {
			w.node(i).history[worldHost] = map[Hash]Link{{1}: {Hash: Hash{1}, State: state}}
		}
		giver, given := w.node(1), w.node(3)
		w.pass(10 * time.Second)
		came := given.m.core.activity
		w.cut = to(given)
		w.gone(w.node(0).name, false)
		w.pass(4 * time.Second)
		if !giver.m.mail.busy() {
			t.Fatal("nothing is on its way to who is to have all")
		}
		if giver.m.Idle() != (state == Done) {
			t.Errorf("state %d: who gives is idle: %v, %s", state, giver.m.Idle(), giver.m.BusyReason())
		}
		w.cut = nil
		w.pass(20 * time.Second)
		if !given.has(1) {
			t.Fatal("it was not given")
		}
		if (given.m.core.activity == came) != (state == Done) {
			t.Errorf("state %d: %d messages have come that bring work", state, given.m.core.activity-came)
		}
	}
}

// TestAGatheringGivesUpTheDead gathers while a node is dead, and others have not noticed it yet: they suspect it, and
// do not wait for it once it is known to be dead.
func TestAGatheringGivesUpTheDead(t *testing.T) {
	w := newWorld(t, 2)
	asks, dead := w.node(0), w.node(1)
	dead.m = nil
	w.tell(asks, Gather{Tag: 1})
	if w.pass(4 * time.Second); len(asks.doubted) == 0 || asks.doubted[0] != dead.name || len(asks.tallies) > 0 {
		t.Fatalf("doubted %v, gathered %+v", asks.doubted, asks.tallies)
	}
	w.gone(dead.name, false)
	if w.pass(2 * time.Second); len(asks.tallies) != 1 || asks.tallies[0].Missing != 1 || asks.tallies[0].Nodes != 1 {
		t.Errorf("gathered %+v", asks.tallies)
	}
}

// TestAGatheringHasTimeFarDown has a queried node query another one: that one has nearly as much time as the first, so
// that the last nodes in a large network have some, too.
func TestAGatheringHasTimeFarDown(t *testing.T) {
	w := newWorld(t, 2)
	w.tell(w.node(0), Gather{Tag: 1})
	w.pass(wireTime + wireTime)
	left := time.Duration(0)
	for key, g := range w.node(1).m.gatherings.all {
		if key.from == w.node(0).name {
			left = g.ends.Sub(w.now)
		}
	}
	if left < gatherFor-2*time.Second || left >= gatherFor {
		t.Errorf("%v are left of %v", left, gatherFor)
	}
}
