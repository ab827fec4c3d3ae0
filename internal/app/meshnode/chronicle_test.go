package meshnode

import (
	"slices"
	"testing"
	"time"

	"kumo/internal/app/meshnode/control"
	"kumo/internal/cluster/chronicle"
)

// wantMet checks that the reports gathered by any node contain the joined nodes and, later, that n3 is silent.
func (n *Node) wantMet(t *testing.T) {
	t.Helper()
	var said []string
	for range 60 {
		tally, err := n.Gather(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var met [][]chronicle.Event
		sums := control.Sums{Reports: tally.Reports}
		for _, r := range sums.All() {
			met = append(met, r.Events)
		}
		said = nil
		for _, e := range chronicle.Merge(met...) {
			said = append(said, e.What)
		}
		if slices.Contains(said, "n3 is gone: it has left or died, and other nodes have its hosts") {
			break
		}
		time.Sleep(time.Second)
	}
	for _, want := range []string{"the crawl is running", "the crawl is paused", "n0 is a member",
		"n3 is gone: it has left or died, and other nodes have its hosts"} {
		if n := len(slices.DeleteFunc(slices.Clone(said), func(s string) bool { return s != want })); n != 1 {
			t.Errorf("%q is told %d times of %q", want, n, said)
		}
	}
}

// A node that is no longer among the nearest only counts as gone if it is dead.
func TestWhoIsFarIsNotGone(t *testing.T) {
	members := func(names ...string) (all []chronicle.Node) {
		for _, n := range names {
			all = append(all, chronicle.Node{Node: n, Role: chronicle.Member})
		}
		return all
	}
	c := chronicler{}
	c.all.Update(chronicle.Snapshot{Nodes: members("a~1", "b~1", "c~1")}, time.Unix(1e9, 0))
	c.all.Events = nil
	lives := func(node string) bool { return node != "c~1" }
	c.all.Update(chronicle.Snapshot{Nodes: c.addDistant(members("a~1", "d~1"), lives)}, time.Unix(1e9+60, 0))
	var said []string
	for _, e := range c.all.Events {
		said = append(said, e.What)
	}
	want := []string{"d is a member", "c is gone: it has left or died, and other nodes have its hosts"}
	if !slices.Equal(said, want) {
		t.Errorf("%q, want %q", said, want)
	}
}

// The events of a report are limited so that the reports of all nodes fit.
func TestEventsTold(t *testing.T) {
	c := chronicler{}
	for range chronicle.MaxEvents {
		c.all.Events = append(c.all.Events, chronicle.Event{What: "0123456789"})
	}
	for nodes, want := range map[int]int{0: 17, 4: 17, 8: 8, 64: 1, 100_000: 0} {
		if told := c.recent(nodes); len(told) != want {
			t.Errorf("of %d nodes each tells %d events, want %d", nodes, len(told), want)
		}
	}
}
