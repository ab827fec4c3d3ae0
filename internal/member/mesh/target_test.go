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

	closer := func(id xor.ID) strategy.Node { // a name that is closer to an id than all others
		for i := 0; ; i++ {
			name := strategy.Node(fmt.Sprintf("j%d~1", i))
			if nodes, _ := (everybody{nodes: append(slices.Clone(w.live), name)}).Closest(id, 1); nodes[0] == name {
				w.nodes[name] = &worldNode{name: name, history: map[string]map[Hash]Link{}}
				w.live = append(w.live, name)
				return name
			}
		}
	}
	closer(xor.Of("backup", worldHost))
	closer(target)
	now := w.nodes[closer(target)]
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
