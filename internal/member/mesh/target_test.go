package mesh

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"kumo/internal/strategy"
	"kumo/internal/xor"
)

// TestTheOldTargetStopsFirst lets a host's first backup, its target, and the node next to that come at the same time,
// before the old target knows of any: the new one takes nothing before that one has stopped.
func TestTheOldTargetStopsFirst(t *testing.T) {
	w := newWorld(t, 4)
	w.pass(time.Second)
	w.offer(w.node(0), 1, 'a', 'b')
	w.pass(time.Second)
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
			w.tell(n, Neighbours{})
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

// newcomer is the name of a node closer to an id than all others.
func (w *world) newcomer(id xor.ID) strategy.Node {
	for i := 0; ; i++ {
		name := strategy.Node(fmt.Sprintf("j%d~1", i))
		if w.nodes[name] != nil {
			continue
		}
		if nodes, _ := (everybody{nodes: append(slices.Clone(w.live), name)}).Closest(id, 1); nodes[0] == name {
			return name
		}
	}
}

// TestATargetThatStillAsks lets a closer node come while a new target waits for the old one to stop: that takes
// nothing before the old one has stopped, either, and learns what that says the host is owed.
func TestATargetThatStillAsks(t *testing.T) {
	w := newWorld(t, 4)
	w.pass(time.Second)
	w.offer(w.node(0), 1, 'a', 'b')
	w.pass(time.Second)
	target := xor.Of("target", worldHost)
	closest, _ := everybody{nodes: w.live}.Closest(target, 1)
	old := w.nodes[closest[0]]
	old.busy = true
	come := func(id xor.ID) *worldNode {
		name := w.newcomer(id)
		w.come(name)
		return w.nodes[name]
	}
	until := func(what string, is func() bool) {
		t.Helper()
		for range 100 {
			if is() {
				return
			}
			w.pass(100 * time.Millisecond)
		}
		t.Fatalf("never: %s", what)
	}
	second := come(target)
	w.say(itemDispatch, 0, w.node(0), second, Dispatched, 'a', 'b')
	until("the second waits for the first", func() bool {
		g := second.m.held[worldHost]
		return g != nil && g.asking > 0
	})
	third := come(target)
	w.pass(3 * time.Second)
	if n := len(third.takes); n > 0 {
		t.Errorf("the third takes %d times, and the first has not stopped", n)
	}
	w.tell(old, Released{Host: worldHost, Timing: Timing{Asked: time.Minute, Wait: 30 * time.Second}})
	until("the third takes something", func() bool { return len(third.takes) > 0 })
	if owed := third.takes[0].Timing; owed.Asked != time.Minute || owed.Wait < 20*time.Second {
		t.Errorf("the third learns that the host is owed %+v", owed)
	}
}
