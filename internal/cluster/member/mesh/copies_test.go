package mesh

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"kumo/internal/base/xor"
	"kumo/internal/cluster/strategy"
)

// closer returns names of nodes that would be closer to worldHost than all live ones, the closest last.
func (w *world) closer(n int) (names []strategy.Node) {
	id := xor.Of("backup", worldHost)
	best := xor.Of("node", string(w.live[0]))
	for c := byte('a'); len(names) < n; c++ {
		for d := range 10000 {
			name := strategy.Node(string(c) + string(rune('0'+d)) + "~1")
			if at := xor.Of("node", string(name)); xor.Compare(at, best, id) < 0 {
				names, best = append(names, name), at
				break
			}
		}
	}
	return names
}

// farther returns the name of a node that would be the next after a node.
func (w *world) farther(n *worldNode) strategy.Node {
	for c := 0; ; c++ {
		name := strategy.Node(fmt.Sprintf("f%d~1", c))
		e := everybody{nodes: append([]strategy.Node{name}, w.live...)}
		all, _ := e.Closest(xor.Of("backup", worldHost), len(e.nodes))
		if i := slices.Index(all, n.name); i+1 < len(all) && all[i+1] == name {
			return name
		}
	}
}

// known puts links of worldHost into nodes' histories.
func known(n *worldNode, links ...byte) {
	n.history[worldHost] = map[Hash]Link{}
	for _, l := range links {
		n.history[worldHost][Hash{l}] = Link{Hash: Hash{l}, State: Dispatched, Item: []byte{l}}
	}
}

var someLinks = []byte("abcdefgh") // more than a piece

// TestNewBackupsGetAll adds a node that becomes a backup. Whatever happens then, it gets the whole history.
func TestNewBackupsGetAll(t *testing.T) {
	for what, happens := range map[string]func(w *world, n *worldNode){
		"nothing": func(*world, *worldNode) {},
		"it does not answer to the second piece": func(w *world, n *worldNode) {
			w.pass(sweepAfter + 3*wireTime)
			w.cut = to(n)
			w.pass(10 * time.Second)
			w.cut = nil
		},
		"who was to give it dies": func(w *world, n *worldNode) {
			w.pass(sweepAfter + 3*wireTime)
			w.gone(w.node(1).name, false)
		},
		"one more comes while it is given": func(w *world, n *worldNode) {
			w.pass(sweepAfter + 3*wireTime)
			w.come(w.closer(1)[0])
		},
		"it does not answer while one more comes": func(w *world, n *worldNode) {
			w.cut = to(n)
			w.pass(10 * time.Second)
			w.come(w.farther(n))
			w.pass(15 * time.Second)
			if !w.node(1).has(someLinks...) {
				w.t.Error("who comes later waits for it")
			}
			w.cut = nil
		},
	} {
		for nodes := 1; nodes <= 4; nodes++ {
			if nodes == 1 && what == "who was to give it dies" {
				continue
			}
			w := newWorld(t, nodes)
			for i := range min(nodes, 3) {
				known(w.node(i), someLinks...)
			}
			w.pass(10 * time.Second)
			w.come(w.closer(1)[0])
			happens(w, w.node(0))
			w.pass(20 * time.Second)
			for i := range len(w.live) {
				n := w.node(i)
				if i < 3 && !n.has(someLinks...) {
					t.Errorf("%s to %d: the backup %d has %d of %d links", what, nodes, i, len(n.history[worldHost]), len(someLinks))
				}
				if i >= 3 && n.history[worldHost] != nil {
					t.Errorf("%s to %d: the node %d keeps them, which is no backup", what, nodes, i)
				}
			}
		}
	}
}

// TestNothingIsDroppedThatABackupDoesNotHave has a node drop a host while others become its backups than those to which
// it has started to send it.
func TestNothingIsDroppedThatABackupDoesNotHave(t *testing.T) {
	w := newWorld(t, 4)
	last := w.node(2)
	known(last, someLinks...) // the only node that has them
	w.pass(10 * time.Second)
	more := w.closer(2)
	w.come(more[0])
	w.pass(sweepAfter + 3*wireTime)
	w.cut = func(_, to strategy.Node) bool { return to == more[1] }
	w.come(more[1])
	w.pass(30 * time.Second)
	if last.history[worldHost] == nil {
		t.Error("it is dropped though a backup does not have it")
	}
	w.cut = nil
	w.pass(30 * time.Second)
	for i := range 3 {
		if !w.node(i).has(someLinks...) {
			t.Errorf("the backup %d has %d of %d links", i, len(w.node(i).history[worldHost]), len(someLinks))
		}
	}
	if last.history[worldHost] != nil {
		t.Error("it is kept by who is no backup")
	}
}

// TestBackupsCompare has a backup that lacks an open URL for some reason: it gets the URL.
func TestBackupsCompare(t *testing.T) {
	for missing := range 3 {
		w := newWorld(t, 4)
		for i := range 3 {
			known(w.node(i), someLinks...)
			w.tell(w.node(i), Opened{Host: worldHost, Open: len(someLinks)})
		}
		w.pass(10 * time.Second)
		delete(w.node(missing).history, worldHost)
		w.start(w.node(missing).name)
		w.pass(3 * reviewEvery)
		if !w.node(missing).has(someLinks...) {
			t.Errorf("the backup %d has %d of %d links", missing, len(w.node(missing).history[worldHost]), len(someLinks))
		}
	}
}

// TestWhoHasDroppedAllIsGivenItAgain adds a node that takes a backup's place, and dies before it counts as having
// received everything. The old backup has dropped the host, and is a backup again.
func TestWhoHasDroppedAllIsGivenItAgain(t *testing.T) {
	w := newWorld(t, 4)
	for i := range 3 {
		known(w.node(i), someLinks...)
		for h, l := range w.node(i).history[worldHost] { // backups compare open URLs only
			l.State = Done
			w.node(i).history[worldHost][h] = l
		}
	}
	w.pass(2 * youngAge)
	last, comes := w.node(2), w.closer(1)[0]
	w.come(comes)
	w.pass(youngAge / 2)
	if last.history[worldHost] != nil {
		t.Fatal("it is kept by who is no backup")
	}
	w.gone(comes, false)
	w.pass(youngAge / 2)
	if !last.has(someLinks...) {
		t.Errorf("the last backup has %d of %d links", len(last.history[worldHost]), len(someLinks))
	}
}

// TestWhoLeavesGivesAllToWhomItMeets has a node leave that knows no other node at that time. When it meets others it
// hands over its history, though it cannot end yet, as it has fetched a host.
func TestWhoLeavesGivesAllToWhomItMeets(t *testing.T) {
	w := newWorld(t, 6)
	leaver, others := w.node(1), []*worldNode{w.node(0), w.node(2), w.node(3)}
	known(leaver, someLinks...)
	last := w.node(5)
	fetched := ""
	for i := 0; fetched == ""; i++ { // its first backup does not answer
		host := fmt.Sprintf("h%d.test", i)
		if all, _ := last.Closest(xor.Of("backup", host), 1); all[0] == last.name {
			fetched = host
		}
	}
	w.cut = to(last)
	leaver.knows = nil
	w.tell(leaver, Holding{Host: fetched}, NeighborsChanged{}, Leave{})
	w.pass(20 * time.Second)
	met := slices.DeleteFunc(slices.Clone(w.live), func(n strategy.Node) bool { return n == leaver.name })
	for _, name := range w.live {
		w.nodes[name].knows = met
		w.tell(w.nodes[name], NeighborsChanged{})
	}
	w.pass(20 * time.Second)
	for i, n := range others {
		if !n.has(someLinks...) {
			t.Errorf("the backup %d has %d of %d links", i, len(n.history[worldHost]), len(someLinks))
		}
	}
	if leaver.left {
		t.Error("it has gone with a host that is not parted with")
	}
	w.cut = nil
	w.pass(30 * time.Second)
	if !leaver.left {
		t.Error("it does not come to leave")
	}
}
