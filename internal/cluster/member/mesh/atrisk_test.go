package mesh

import (
	"slices"
	"testing"
	"time"

	"kumo/internal/base/xor"
	"kumo/internal/cluster/strategy"
)

// byCloseness returns a world's nodes, the closest to a node first: the node itself, and its keepers.
func (w *world) byCloseness(name strategy.Node) (all []*worldNode) {
	names, _ := everybody{nodes: w.live}.Closest(xor.Of("node", string(name)), len(w.live))
	for _, n := range names {
		all = append(all, w.nodes[n])
	}
	return all
}

// A keeper that answers later than the sender waits still has the lists, and is not sent the same all the time.
func TestASlowKeeper(t *testing.T) {
	w := newWorld(t, 4)
	n := w.node(0)
	w.late = map[strategy.Node]time.Duration{w.node(1).name: 3 * time.Second}
	w.atRisk(n, 1, "f", 3*riskPiece/2)
	w.pass(30 * time.Second)
	if !slices.Equal(n.safe, []uint64{1}) {
		t.Errorf("what a slow keeper has is not said to be done: %v", n.safe)
	}
	if has := w.node(1).risks[n.name]["f"]; has != 3*riskPiece/2 {
		t.Errorf("the keeper has %d bytes", has)
	}
	before := w.sent
	w.pass(time.Minute)
	if sent := w.sent - before; sent > 300 {
		t.Errorf("%d messages in a minute", sent)
	}
}

// A list that has lost its end in a crash is written again.
func TestAListThatHasLostItsEnd(t *testing.T) {
	w := newWorld(t, 4)
	n := w.node(0)
	w.atRisk(n, 1, "f", 100)
	w.pass(10 * time.Second)
	n.risks[n.name]["f"] = 60
	w.start(n.name)
	w.pass(10 * time.Second)
	w.atRisk(n, 2, "f", 10)
	w.pass(10 * time.Second)
	if !slices.Equal(n.safe, []uint64{1, 2}) {
		t.Errorf("safe is %v", n.safe)
	}
	for _, k := range w.live[1:] {
		if has := w.nodes[k].risks[n.name]["f"]; has != 70 {
			t.Errorf("%s has %d bytes of 70", k, has)
		}
	}
}

// When a missing node is back and sends its lists itself, other nodes need not keep them: no node sends the same
// without a pause, and a leaving node leaves.
func TestWhoWasMissedIsBack(t *testing.T) {
	w := newWorld(t, 6)
	near := w.byCloseness(w.live[0])
	n, third, fourth := near[0], near[3], near[4]
	w.atRisk(n, 1, "f", 100)
	w.atRisk(n, 2, "g", 100)
	w.pass(10 * time.Second)
	all := slices.Clone(w.live)
	w.gone(n.name, false)
	w.gone(third.name, false)
	w.pass(3 * time.Second)
	if len(fourth.risks[n.name]) != 2 {
		t.Fatalf("%s, now one of the closest, has %v", fourth.name, fourth.risks)
	}
	w.live = all
	w.start(n.name)
	w.start(third.name)
	delete(n.risks[n.name], "f")
	w.tell(n, Uploaded{Names: []string{"f"}})
	w.pass(3 * time.Second)
	before := w.sent
	// fourth has met third only
	fourth.knows = slices.DeleteFunc(slices.Clone(all), func(o strategy.Node) bool { return o == n.name })
	w.tell(fourth, NeighborsChanged{})
	w.tell(fourth, Leave{})
	w.pass(30 * time.Second)
	if sent := w.sent - before; sent > 600 {
		t.Errorf("%d messages in half a minute", sent)
	}
	if !fourth.left {
		t.Error("who keeps lists of a node that is back does not leave")
	}
}

// A node that comes back while its keepers read its storage location has its pages done; they have its lists in the
// end.
func TestWhoIsBackWhileItsPlaceIsRead(t *testing.T) {
	w := newWorld(t, 5)
	near := w.byCloseness(w.live[0])
	n := near[0]
	w.atRisk(n, 1, "f", 100)
	w.pass(10 * time.Second)
	all := slices.Clone(w.live)
	for _, k := range near[1:] {
		k.reads = true
	}
	w.gone(n.name, false)
	w.pass(3 * time.Minute)
	if !slices.Contains(near[1].lost, n.name) {
		t.Fatal("the node does not count as lost")
	}
	w.live = all
	w.start(n.name)
	w.meet()
	w.atRisk(n, 2, "f", 100)
	w.pass(10 * time.Second)
	if !slices.Contains(n.safe, 2) {
		t.Error("what the node has fetched waits for its place")
	}
	for _, k := range near[1:] {
		w.tell(k, Refetched{Node: n.name})
	}
	w.pass(20 * time.Second)
	for _, k := range near[1:4] {
		if k.risks[n.name]["f"] != 200 {
			t.Errorf("%s has %v", k.name, k.risks)
		}
	}
}

// A keeper that waits for the storage location of a lost node can leave: others have the lists, too.
func TestAKeeperLeavesWhileAPlaceIsRead(t *testing.T) {
	w := newWorld(t, 5)
	near := w.byCloseness(w.live[0])
	n, k := near[0], near[1]
	w.atRisk(n, 1, "f", 100)
	w.pass(10 * time.Second)
	for _, k := range near[1:] {
		k.reads = true
	}
	w.gone(n.name, false)
	w.pass(3 * time.Minute)
	w.tell(k, Leave{})
	w.pass(time.Minute)
	if !k.left {
		t.Error("a keeper of a lost node does not leave")
	}
}
