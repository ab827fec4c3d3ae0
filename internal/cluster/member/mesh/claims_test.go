package mesh

import (
	"slices"
	"testing"
	"time"

	"kumo/internal/base/varint"
	"kumo/internal/cluster/strategy"
)

// TestLinksAreTakenWhenAllBackupsHaveThem has a backup that does not answer while links are claimed: the finder must
// keep them until that backup has them, too.
func TestLinksAreTakenWhenAllBackupsHaveThem(t *testing.T) {
	for what, happens := range map[string]func(w *world){
		"nothing": func(*world) {},
		"they are offered again in other batches": func(w *world) {
			w.offer(w.node(0), 2, 'a')
			w.pass(time.Second)
			w.offer(w.node(0), 3, 'b', 'c')
		},
		"another node that takes itself for the first has told of one, and dies": func(w *world) {
			w.node(3).m.mail.post(w.node(0).name, item{kind: itemStore, host: worldHost, links: []Link{{Hash: Hash{'c'},
				State: Dispatched}}}, func(strategy.Node, *reply) {})
			w.tell(w.node(3), Tick{})
			w.pass(time.Second)
			w.gone(w.node(3).name, false)
			w.offer(w.node(0), 2, 'c')
		},
		"the first backup begins anew, and they are offered again": func(w *world) {
			w.start(w.node(0).name)
			w.pass(time.Second)
			w.offer(w.node(0), 2, 'a')
			w.offer(w.node(0), 3, 'a', 'b', 'c')
		},
	} {
		w := newWorld(t, 5)
		silent := w.node(2)
		w.cut = to(silent)
		w.offer(w.node(0), 1, 'a', 'b')
		w.pass(time.Second)
		happens(w)
		w.pass(30 * time.Second)
		if got := w.node(0).taken(); got != nil {
			t.Errorf("%s: the batches %d are taken though a backup does not know the links", what, got)
		}
		w.cut = nil
		w.pass(30 * time.Second)
		if w.node(0).taken() == nil || !w.node(1).has('a', 'b') || !silent.has('a', 'b') {
			t.Errorf("%s: links are not taken, or not known, when all answer", what)
		}
	}
}

// TestLinksAreTakenByWhoIsLeft removes all but some other nodes while links are claimed.
func TestLinksAreTakenByWhoIsLeft(t *testing.T) {
	for _, c := range []struct {
		nodes, left int
		farewell    bool
		at          time.Duration // when the links are accepted
	}{
		{1, 1, false, 0},
		{2, 2, false, 0},
		{4, 3, false, 0},                // as many as a host has backups
		{3, 2, false, 2 * time.Minute},  // the third may be back
		{3, 1, false, 2 * time.Minute},  //
		{3, 1, true, 0},                 // they have handed over everything
		{10, 2, false, 2 * time.Minute}, //
	} {
		w := newWorld(t, c.nodes)
		w.pass(time.Second)
		for len(w.live) > c.left {
			w.gone(w.live[len(w.live)-1], c.farewell)
		}
		began := w.now
		w.offer(w.node(0), 1, 'a')
		for w.node(0).taken() == nil && w.now.Sub(began) < 5*time.Minute {
			w.pass(time.Second)
		}
		if took := w.now.Sub(began); took < c.at || took > c.at+5*time.Second {
			t.Errorf("%d of %d nodes, farewell %v: taken after %v, want %v", c.left, c.nodes, c.farewell, took, c.at)
		}
	}
}

// TestNewBackupsAreToHaveWhatIsOffered adds nodes to a node that has claimed a link alone: a repeated claim waits until
// the new nodes have the link.
func TestNewBackupsAreToHaveWhatIsOffered(t *testing.T) {
	for _, comes := range []string{"one", "one that was there before"} {
		w := newWorld(t, 1)
		first := w.node(0)
		second := w.farther(first)
		if comes != "one" {
			w.come(second)
			w.pass(time.Second)
		}
		w.offer(first, 1, 'a')
		w.pass(10 * time.Second)
		if comes != "one" { // it is not a backup for a while, and forgets everything
			w.gone(second, true)
			w.nodes[second].history = map[string]map[Hash]Link{}
			w.pass(10 * time.Second)
		}
		w.cut = func(_, to strategy.Node) bool { return to == second }
		w.come(second)
		w.offer(first, 2, 'a')
		w.pass(30 * time.Second)
		if got := first.taken(); !slices.Equal(got, []uint64{1}) {
			t.Errorf("%s: the batches %d are taken, and the new node does not know the link", comes, got)
		}
		w.cut = nil
		w.pass(30 * time.Second)
		if got := first.taken(); !slices.Equal(got, []uint64{1, 2}) || !w.nodes[second].has('a') {
			t.Errorf("%s: in the end %d are taken", comes, got)
		}
		given := len(w.wires)
		w.offer(first, 3, 'a')
		if got := first.taken(); len(got) != 3 || len(w.wires) > given {
			t.Errorf("%s: what all know is told again: %d are taken", comes, got)
		}
	}
}

// TestANewBackupIsTold adds a node that becomes the first backup to a single node: it gets the links being claimed
// before they are accepted, and waits for the others, too.
func TestANewBackupIsTold(t *testing.T) {
	w := newWorld(t, 3)
	w.pass(time.Second)
	w.gone(w.live[2], false)
	w.gone(w.live[1], false)
	w.offer(w.node(0), 1, 'a')
	w.pass(10 * time.Second)
	w.come(w.closer(1)[0])
	w.pass(10 * time.Second)
	first, second := w.node(0), w.node(1)
	if !first.has('a') {
		t.Error("the new node does not know it")
	}
	w.offer(first, 2, 'b')
	w.pass(30 * time.Second)
	if got := append(first.taken(), second.taken()...); got != nil {
		t.Errorf("%d are taken, which two nodes know", got)
	}
	w.pass(2 * time.Minute)
	if !slices.Equal(first.taken(), []uint64{2}) || len(second.answers) != 1 {
		t.Errorf("in the end the answers are %v, and %v of who was the first before", first.answers, second.answers)
	}
}

// TestAnswersToAnEarlierProcess sends answers to requests of an earlier process to the node's next process.
func TestAnswersToAnEarlierProcess(t *testing.T) {
	w := newWorld(t, 3)
	first := w.node(0)
	w.cut = func(_, to strategy.Node) bool { return to != first.name }
	w.offer(first, 1, 'a')
	old := slices.Clone(w.wires)
	w.wires = nil
	delete(first.history, worldHost) // its disk did not have it yet
	w.start(first.name)
	w.offer(first, 2, 'b')
	for _, x := range old { // each answer has the states as done
		if r := (varint.Reader{Rest: x.data}); r.Byte() == messageItems {
			w.tell(first, Message{x.to, encodeReplies(r.Uint(), []reply{{code: replyYes, states: []State{Done}}})})
		}
	}
	if k := first.history[worldHost][Hash{'b'}]; k.State != Dispatched {
		t.Errorf("what was asked of another link is taken for word of this one: %v", k.State)
	}
}

// TestWhoIsNotSureOfItsPlaceOffersItselfNothing looks up the first backups of hosts that this node would refuse.
func TestWhoIsNotSureOfItsPlaceOffersItselfNothing(t *testing.T) {
	w := newWorld(t, 1)
	n := w.node(0)
	n.m = New(Config{Self: n.name, Overlay: n, HasPending: func(string) bool { return false }})
	for range 3 {
		if to, ok := n.m.FirstBackup(worldHost); ok {
			t.Errorf("links go to %s", to)
		}
		w.tell(n, Unrouted{Hosts: []string{worldHost}})
	}
	if n.routed > 0 {
		t.Errorf("links are woken %d times", n.routed)
	}
	w.tell(n, NeighborsChanged{}, Fresh{w.now.Add(time.Hour)})
	if to, ok := n.m.FirstBackup(worldHost); !ok || to != n.name {
		t.Errorf("links go to %q when it has found its place", to)
	}
}

// TestStrangersAreNotTold has a node that is not a backup of a host refuse its links: no node would look for them
// there.
func TestStrangersAreNotTold(t *testing.T) {
	w := newWorld(t, 5)
	w.node(0).m.mail.post(w.node(4).name, item{kind: itemStore, host: worldHost, links: []Link{{Hash: Hash{'a'},
		State: Dispatched}}}, func(_ strategy.Node, r *reply) {
		if r == nil || r.code != replyNo {
			t.Errorf("it answers %+v", r)
		}
	})
	w.tell(w.node(0), Tick{})
	w.pass(time.Second)
	if w.node(4).has('a') {
		t.Error("it keeps it")
	}
}
