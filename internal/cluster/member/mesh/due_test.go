package mesh

import (
	"testing"
	"time"

	"kumo/internal/base/xor"
)

// TestADueVisitIsDispatched has a target report the next visit to a page. All backups must have it before the page is
// done. When it is due, the node that is the first backup then dispatches it, once.
func TestADueVisitIsDispatched(t *testing.T) {
	w := newWorld(t, 6)
	w.pass(time.Second)
	closest, _ := everybody{nodes: w.live}.Closest(xor.Of("target", worldHost), 1)
	target := w.nodes[closest[0]]
	w.offer(w.node(0), 1, 'a')
	w.pass(5 * time.Second)
	next := Link{Hash: Hash{'a'}, Visit: 7, State: Scheduled, Item: []byte("again")}
	silent := w.node(2)
	if silent == target {
		silent = w.node(1)
	}
	w.cut = to(silent)
	w.tell(target, Finished{Host: worldHost, Next: []Link{next}})
	w.pass(5 * time.Second)
	if why := target.m.BusyReason(); why == "" {
		t.Error("the target is idle though a backup does not have the next visit")
	}
	w.cut = nil
	w.pass(40 * time.Second)
	for i := range 3 {
		if k := w.node(i).history[worldHost][Hash{'a'}]; k.State != Scheduled || k.Visit != 7 {
			t.Errorf("backup %d has %+v", i, k)
		}
	}
	if why := target.m.BusyReason(); why != "" {
		t.Errorf("the target is not idle: %s", why)
	}

	takes := len(target.takes)
	w.tell(w.node(1), Due{worldHost, []Link{next}})
	w.pass(5 * time.Second)
	if len(target.takes) > takes {
		t.Error("a node that is not the first backup dispatches a visit")
	}
	if first := w.node(0); first != target {
		w.gone(first.name, false)
		w.pass(30 * time.Second)
	}
	takes = len(target.takes)
	for range 3 {
		w.tell(w.node(0), Due{worldHost, []Link{next}})
		w.pass(5 * time.Second)
	}
	got := target.takes[takes:]
	if len(got) != 1 || len(got[0].Links) != 1 || got[0].Links[0].Visit != 7 || string(got[0].Links[0].Item) != "again" {
		t.Errorf("the target gets %+v", got)
	}
	for i := range 3 {
		if k := w.node(i).history[worldHost][Hash{'a'}]; k.State != Dispatched || k.Visit != 7 {
			t.Errorf("when it is dispatched, backup %d has %+v", i, k)
		}
	}

	// a late message about an earlier visit changes nothing; the end of the last one does
	w.say(itemStore, 0, w.node(1), w.node(0), Dispatched, 'a')
	w.tell(target, Finished{Host: worldHost, Next: []Link{{Hash: Hash{'a'}, Visit: 9, State: Done}}})
	w.pass(10 * time.Second)
	for i := range 3 {
		if k := w.node(i).history[worldHost][Hash{'a'}]; k.State != Done || k.Visit != 9 {
			t.Errorf("at last, backup %d has %+v", i, k)
		}
	}
}

// TestALaterVisitThatOneBackupKnows has one backup know later visits to pages that are open at the first. The node that
// has reported them is lost. The first backup must learn them: otherwise no node would dispatch them.
func TestALaterVisitThatOneBackupKnows(t *testing.T) {
	w := newWorld(t, 6)
	w.pass(time.Second)
	scheduled := Link{Hash: Hash{'a'}, Visit: 7, State: Scheduled, Item: []byte("again")}
	open := Link{Hash: Hash{'b'}, Visit: 7, State: Dispatched, Item: []byte("now")}
	w.node(1).record(Record{Host: worldHost, Links: []Link{scheduled, open}})
	w.offer(w.node(0), 1, 'a', 'b')
	w.pass(3 * time.Second)
	for i := range 3 {
		if k := w.node(i).history[worldHost][Hash{'a'}]; k.State != Scheduled || k.Visit != 7 || string(k.Item) != "again" {
			t.Errorf("backup %d has %+v", i, k)
		}
	}
	visited := 0
	for _, n := range w.live {
		for _, take := range w.nodes[n].takes {
			for _, k := range take.Links {
				if k.Hash == (Hash{'b'}) && k.Visit == 7 && string(k.Item) == "now" {
					visited++
				} else {
					t.Errorf("%s is to fetch %+v", n, k)
				}
			}
		}
	}
	if visited != 1 {
		t.Errorf("the open visit is dispatched %d times", visited)
	}
}

// TestLaterVisitsInAReply checks which later visits the reply to an itemStore has.
func TestLaterVisitsInAReply(t *testing.T) {
	b := newBench(t, "a~1", "b~1")
	c := b.claims(&fakeHosts{bench: b})
	host := b.host(func(host string) bool { return !b.place.isFirst(host) })
	large := make([]byte, maxPacket-20)
	for i := range 2 {
		b.history[Hash{byte(i)}] = Link{Hash: Hash{byte(i)}, State: Scheduled, Visit: 3, Item: large}
	}
	b.history[Hash{2}] = Link{Hash: Hash{2}, State: Done, Visit: 2}
	store := func(visit uint64) (got reply) {
		it := item{kind: itemStore, host: host}
		for i := range 3 {
			it.links = append(it.links, Link{Hash: Hash{byte(i)}, State: Dispatched, Visit: visit})
		}
		var r reply
		r.states = []State{Done, Done, Done}
		c.addLater(&r, it, func() { got = r })
		return got
	}
	got := store(2)
	b.want("states", got.states, []State{Done, withheld, Done})
	b.want("later visits", len(got.later), 1)
	b.want("bytes", len(got.later[0].Item), len(large))
	b.want("later visits of the last ones", store(3).later, []Link(nil))
}
