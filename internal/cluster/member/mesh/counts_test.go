package mesh

import (
	"fmt"
	"testing"
	"time"

	"kumo/internal/base/varint"
	"kumo/internal/cluster/strategy"
)

// pages returns how many pages all nodes have fetched, as gathered by one of them, and how many of them have departed.
func (w *world) pages(by *worldNode) (pages int64, gone int) {
	w.t.Helper()
	n := len(by.tallies)
	w.tell(by, Gather{Tag: 1})
	for late := w.now.Add(gatherFor); len(by.tallies) == n; w.pass(wireTime) {
		if w.now.After(late) {
			w.t.Fatal("nothing is gathered")
		}
	}
	t := by.tallies[n]
	return t.Figures[0] + t.DepartedPages, t.Departed
}

func (w *world) wantPages(what string, want int64, gone int) {
	w.t.Helper()
	for _, name := range []strategy.Node{w.live[0], w.live[len(w.live)-1]} {
		if n, left := w.pages(w.nodes[name]); n != want || left != gone {
			w.t.Errorf("%s: by %s there are %d pages, and %d nodes are gone: want %d, %d", what, name, n, left, want, gone)
		}
	}
}

// The sum of all pages stays the same, whichever nodes die, leave, join and come back.
func TestPagesOfWhoIsGoneAreCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 8)
	want := int64(0)
	for i := range 8 {
		w.node(i).pages = int64(1) << i
		want += w.node(i).pages
	}
	w.wantPages("at first", want, 0)
	w.pass(countEvery)

	died, left := w.node(1), w.node(2)
	w.gone(died.name, false)
	w.wantPages("one has died", want, 1)
	left.pages += 1000
	want += 1000
	w.tell(left, Leave{})
	for !left.left {
		w.pass(time.Second)
	}
	w.gone(left.name, true)
	w.wantPages("one has left", want, 2)

	for i := range 10 { // some are closer to the departed nodes than the keepers of their counts
		w.come(strategy.Node(fmt.Sprintf("new%d~1", i)))
		w.pass(3 * wireTime)
		w.wantPages(fmt.Sprint(i+1, " have come"), want, 2)
	}
	for len(w.live) > 4 { // one after the other
		w.gone(w.node(3).name, false)
		w.pass(2 * countEvery)
	}
	if n, _ := w.pages(w.node(0)); n != want {
		t.Errorf("all but 4 of 16 nodes are gone: %d pages, want %d", n, want)
	}

	was := died.pages
	died.pages = 0 // it has no engine yet
	w.come(died.name)
	w.pass(3 * wireTime)
	if n, _ := w.pages(died); n != want {
		t.Errorf("one is back, and does not know yet what it had done: %d pages, want %d", n, want)
	}
	died.pages = was + 500
	if n, _ := w.pages(died); n != want+500 {
		t.Errorf("one is back, and has done more: %d pages, want %d", n, want+500)
	}
}

// A new process can be given the counts that an earlier one has received.
func TestCountsAreKeptFromLifeToLife(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4)
	for i := range 4 {
		w.node(i).pages = 10
	}
	w.pass(countEvery + time.Second)
	for _, n := range w.nodes {
		n.kept = n.m.Counts()
	}
	for len(w.live) > 1 {
		w.gone(w.node(0).name, false)
	}
	w.start(w.live[0])
	w.wantPages("a new life", 40, 3)
}

// However many nodes join and leave, the stored counts are bounded, and those of near nodes are kept.
func TestCountsAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	n := w.node(0)
	for i := range 20 {
		msg := varint.Writer{messageCounts}
		for j := range maxCountsSent {
			msg.String(fmt.Sprintf("gone%d~1", i*maxCountsSent+j))
			msg.Uint(1)
		}
		w.tell(n, Message{w.live[1], msg})
	}
	if kept := len(n.m.Counts()); kept > maxCounts || kept < maxCounts*3/4 {
		t.Errorf("%d counts are kept, at most %d are to be", kept, maxCounts)
	}
	closest, _ := everybody{nodes: []strategy.Node{"gone1~1", "gone2~1", "gone3~1"}}.Closest(n.m.place.id, 1)
	if n.m.Counts()[closest[0]] == 0 {
		t.Errorf("that of %s is forgotten", closest[0])
	}
	for _, bad := range []varint.Writer{{messageCounts, 1}, {messageCounts, 200, 1}} {
		if err := n.m.inbox.handle(w.live[1], bad); err == nil {
			t.Errorf("%v is taken for counts", bad)
		}
	}
}
