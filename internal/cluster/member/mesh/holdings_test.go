package mesh

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"kumo/internal/base/xor"
	"kumo/internal/cluster/strategy"
)

// newWorldOfTwoLinks returns a world in which worldHost's target fetches two links.
func newWorldOfTwoLinks(t *testing.T, nodes int) *world {
	t.Helper()
	w := newWorld(t, nodes)
	w.pass(time.Second)
	w.offer(w.node(0), 1, 'a', 'b')
	w.pass(time.Second)
	return w
}

// TestTheOldTargetStopsFirst adds a host's first backup, its target, and the node next to that at the same time, before
// the old target has met any of them: the new target enqueues nothing before the old one has stopped.
func TestTheOldTargetStopsFirst(t *testing.T) {
	w := newWorldOfTwoLinks(t, 4)
	target := xor.Of("target", worldHost)
	closest, _ := everybody{nodes: w.live}.Closest(target, 1)
	old := w.nodes[closest[0]]
	olds := slices.Clone(w.live)

	closer := func(id xor.ID) *worldNode {
		name := w.newcomer(id)
		w.nodes[name] = &worldNode{name: name, history: map[string]map[Hash]Link{}}
		w.live = append(w.live, name)
		return w.nodes[name]
	}
	closer(xor.Of("backup", worldHost))
	closer(target)
	now := closer(target)
	w.live, _ = everybody{nodes: w.live}.Closest(xor.Of("backup", worldHost), len(w.live))
	for _, name := range w.live {
		switch n := w.nodes[name]; {
		case !slices.Contains(olds, name):
			w.start(name)
		case n != old:
			n.knows = slices.Clone(w.live)
			w.tell(n, NeighborsChanged{})
		}
	}
	for i := 0; len(now.takes) == 0; i++ {
		if w.pass(100 * time.Millisecond); i == 40 {
			w.meet()
		}
		if len(now.takes) > 0 && old.gave == 0 {
			t.Fatal("the new target takes links, and the old one has not stopped")
		}
		if i > 300 {
			t.Fatal("the new target takes nothing")
		}
	}
}

// newcomer returns the name of a node closer to some ids than all others.
func (w *world) newcomer(ids ...xor.ID) strategy.Node {
	for i := 0; ; i++ {
		name := strategy.Node(fmt.Sprintf("j%d~1", i))
		if w.nodes[name] != nil {
			continue
		}
		all := everybody{nodes: append(slices.Clone(w.live), name)}
		if !slices.ContainsFunc(ids, func(id xor.ID) bool { nodes, _ := all.Closest(id, 1); return nodes[0] != name }) {
			return name
		}
	}
}

// threeTargets returns a busy target, a second target that waits for it, and a third target that waits for the second.
func threeTargets(t *testing.T) (w *world, first, second, third *worldNode) {
	t.Helper()
	w = newWorldOfTwoLinks(t, 4)
	target := xor.Of("target", worldHost)
	closest, _ := everybody{nodes: w.live}.Closest(target, 1)
	first = w.nodes[closest[0]]
	first.busy = true
	come := func(id xor.ID) *worldNode {
		name := w.newcomer(id)
		w.come(name)
		return w.nodes[name]
	}
	second = come(target)
	w.say(itemDispatch, 0, w.node(0), second, Dispatched, 'a', 'b')
	w.until("the second waits for the first", func() bool {
		g := second.m.holdings.byHost[worldHost]
		return g != nil && g.handover.isWaiting()
	})
	third = come(target)
	w.pass(time.Minute) // longer than the wait for an answer
	if n := len(third.takes); n > 0 {
		t.Errorf("the third takes %d times, and the first has not stopped", n)
	}
	return w, first, second, third
}

func (w *world) until(what string, is func() bool) {
	w.t.Helper()
	for range 100 {
		if is() {
			return
		}
		w.pass(100 * time.Millisecond)
	}
	w.t.Fatalf("never: %s", what)
}

// TestATargetThatStillAsks adds a closer node while a new target waits for the old one to stop: the closer node, too,
// enqueues nothing before the old one has stopped, and gets its timing.
func TestATargetThatStillAsks(t *testing.T) {
	w, first, _, third := threeTargets(t)
	w.tell(first, Released{Host: worldHost, Timing: Timing{Delay: time.Minute, Wait: 30 * time.Second}})
	w.until("the third takes something", func() bool { return len(third.takes) > 0 })
	if owed := third.takes[0].Timing; owed.Delay != time.Minute || owed.Wait < 20*time.Second {
		t.Errorf("the third learns that the host is owed %+v", owed)
	}
}

// TestATargetThatHearsOfAGuest has the old target answer that a guest fetches the host: all waiting nodes learn that.
func TestATargetThatHearsOfAGuest(t *testing.T) {
	w, first, second, third := threeTargets(t)
	if second.m.holdings.byHost[worldHost].handover.waitingReplies == nil {
		w.say(itemDispatch, 0, w.node(0), third, Dispatched, 'a', 'b')
		w.until("the third waits for the second", func() bool {
			return len(second.m.holdings.byHost[worldHost].handover.waitingReplies) > 0
		})
	}
	first.m.holdings.cede(worldHost, "guest")
	w.carry(first, first.m.end())
	w.pass(time.Second)
	if away := third.m.holdings.lent[worldHost]; away != "guest" {
		t.Errorf("the third takes it to be with %q", away)
	}
	if why := second.m.BusyReason(); second.m.mail.executing > 0 || second.m.place.view.stopped[worldHost] {
		t.Errorf("the second has not done with it: %s", why)
	}
}

// nextTarget adds a node that is the closest to a host's target id, and knows one other node only. The present target
// is busy, and has not met it.
func (w *world) nextTarget(knows *worldNode) (old, now *worldNode) {
	w.t.Helper()
	closest, _ := everybody{nodes: w.live}.Closest(xor.Of("target", worldHost), 1)
	old = w.nodes[closest[0]]
	if old == knows {
		w.t.Fatal("it is the target itself that is known")
	}
	old.busy = true
	now = w.stranger(xor.Of("target", worldHost), knows.name)
	knows.knows = append(knows.knows, now.name)
	w.tell(knows, NeighborsChanged{})
	return old, now
}

// stranger adds a node that is the closest to an id, and that no node has met yet.
func (w *world) stranger(id xor.ID, knows ...strategy.Node) *worldNode {
	name := w.newcomer(id)
	n := &worldNode{name: name, history: map[string]map[Hash]Link{}}
	all := w.live
	w.nodes[name], w.live = n, append(knows, name)
	w.start(name)
	w.live = append(slices.Clone(all), name)
	return n
}

// takesLater checks that the next target enqueues nothing before the last one has stopped.
func (w *world) takesLater(old, now *worldNode) {
	w.t.Helper()
	w.pass(time.Minute)
	if n := len(now.takes); n > 0 {
		w.t.Errorf("it takes %d times, and the old target has not stopped", n)
	}
	w.tell(old, Released{Host: worldHost})
	w.until("it takes the links", func() bool { return len(now.takes) > 0 })
}

// TestATargetThatIsBusyIsAskedToStop has a target that gives no answer for a while: the next one, which has not met it,
// learns of it.
func TestATargetThatIsBusyIsAskedToStop(t *testing.T) {
	w := newWorldOfTwoLinks(t, 4)
	old, now := w.nextTarget(w.node(0))
	heard := w.now.Add(20 * time.Second)
	w.cut = func(_, to strategy.Node) bool { return to == old.name && w.now.Before(heard) }
	w.takesLater(old, now)
}

// TestANewFirstBackupHearsOfTheTarget adds a first backup and a target that the others have not met: with its first
// link the backup learns which node fetches the host.
func TestANewFirstBackupHearsOfTheTarget(t *testing.T) {
	w := newWorldOfTwoLinks(t, 4)
	first := w.stranger(xor.Of("backup", worldHost), w.node(0).name)
	w.live = w.live[:4]
	old, now := w.nextTarget(first)
	w.live = append(w.live, first.name)
	w.offer(first, 2, 'c')
	w.takesLater(old, now)
}

// TestWhoKnowsOneOtherAsksTheTarget adds a target that knows one other node only, which is not the present target: that
// node names the target.
func TestWhoKnowsOneOtherAsksTheTarget(t *testing.T) {
	w := newWorldOfTwoLinks(t, 4)
	old, now := w.nextTarget(w.node(0))
	w.say(itemDispatch, 0, w.node(0), now, Dispatched, 'a', 'b')
	w.takesLater(old, now)
}

// TestABusyTargetIsNotReplaced has a target that does not answer until all nodes treat it as gone: its successor
// enqueues nothing while it fetches, and, if it releases all hosts because it was cut off itself, until it has stopped.
func TestABusyTargetIsNotReplaced(t *testing.T) {
	for _, stops := range []bool{false, true} {
		w := newWorldOfTwoLinks(t, 5)
		closest, _ := everybody{nodes: w.live}.Closest(xor.Of("target", worldHost), 2)
		old, next := w.nodes[closest[0]], w.nodes[closest[1]]
		if old == w.node(0) {
			t.Fatal("the first backup is the target")
		}
		old.busy = true
		heard := w.now.Add(10 * time.Second)
		w.cut = func(_, to strategy.Node) bool { return to == old.name && w.now.Before(heard) }
		for _, name := range w.live {
			if n := w.nodes[name]; n != old {
				n.knows = slices.DeleteFunc(slices.Clone(w.live), func(n strategy.Node) bool { return n == old.name })
				w.tell(n, NeighborsChanged{})
			}
		}
		w.offer(w.node(0), 2, 'c')
		if w.pass(9 * time.Second); stops {
			old.m.holdings.releaseAll()
			w.carry(old, old.m.end())
		}
		w.pass(time.Minute)
		if n := len(next.takes); n > 0 {
			t.Errorf("stops: %v: the next one takes %d times", stops, n)
		}
		if old.gave > 0 != stops {
			t.Errorf("stops: %v: the target has given the host up %d times", stops, old.gave)
		}
		if stops {
			w.tell(old, Released{Host: worldHost})
		}
		w.until("the target takes the new link", func() bool {
			return slices.ContainsFunc(old.takes, func(t Enqueue) bool {
				return slices.ContainsFunc(t.Links, func(k Link) bool { return k.Hash == Hash{'c'} })
			})
		})
	}
}
