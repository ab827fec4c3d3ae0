package mesh

import (
	"testing"
	"time"
)

// TestTheEndWaitsForWhoIsAway lets a node go without a word, or with one, where nobody has anything to do. In the first
// case those who are left may be but a part of the network, and do not take the crawl for ended before they take the
// node for lost; nor does anybody ever who has not heard of a crawl.
func TestTheEndWaitsForWhoIsAway(t *testing.T) {
	for _, c := range []struct {
		what        string
		left, crawl bool
		after       time.Duration // the end is found so late, and not much later; 0: never
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

// TestUpkeepIsNoWork lets a node die whose place another takes: while that one is given what is known of URLs that are
// done, all are idle, and nothing has come to anybody, so that the end can be found.
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

// TestAGatheringGivesUpTheDead gathers where a node is dead, and others do not know it yet: they doubt that it lives,
// and do not wait for it once it is known to be dead.
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

// TestAGatheringHasTimeFarDown asks a node that asks another: that one has nearly as much time as who asks it, so that
// those who are asked last in a large network have some, too.
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
