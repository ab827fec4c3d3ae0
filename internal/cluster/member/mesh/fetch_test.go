package mesh

import (
	"testing"
	"time"

	"kumo/internal/base/xor"
	"kumo/internal/cluster/strategy"
)

// fakeHandovers stand in for the hosts that this node fetches, here one.
type fakeHandovers struct {
	h        *handover
	released int
	stopped  int
	ceded    strategy.Node
}

func (f *fakeHandovers) of(host string) *handover {
	if f.h != nil && f.h.host == host {
		return f.h
	}
	return nil
}
func (f *fakeHandovers) isReported(string) bool               { return true }
func (f *fakeHandovers) release(string)                       { f.released++; f.h.stopping = true }
func (f *fakeHandovers) cede(_ string, to strategy.Node) bool { f.ceded = to; return true }
func (f *fakeHandovers) allStopped(string)                    { f.stopped++ }
func (b *bench) handovers(f *fakeHandovers, l lent) *handovers {
	s := newHandovers(b.core)
	s.place, s.mail, s.lookups, s.absences = b.place, b, newLookups(b.core, b.place, 10), b.absent
	s.timings, s.lent, s.hosts, s.former = newTimings(b.core), l, f, newFormer(b.core)
	return s
}

func TestHandoversWaitForAllThatMayFetch(t *testing.T) {
	b := newBench(t, "a~1")
	f := &fakeHandovers{h: &handover{host: "h.test", id: b.place.targetID("h.test")}}
	s := b.handovers(f, nil)
	s.begin(f.h, "named~1")
	taken := 0
	s.postpone(f.h, func(reply) {}, func(func(reply)) { taken++ })
	b.want("asked", b.answer(itemYield, nil), []strategy.Node{"a~1", "named~1"})
	b.want("asking", f.h.isWaiting(), true)
	b.absent.died.add("a~1", b.core.now)
	b.absent.left.add("named~1", b.core.now)
	found := func() {
		for _, l := range out[Find](b) {
			s.lookups.found(Found{ID: l.ID})
		}
	}
	found()
	b.pass(pause)
	b.want("taken late", taken, 0) // the answer was replaced by replyLater
	s.postpone(f.h, func(reply) {}, func(func(reply)) { taken++ })
	b.want("asked again", len(b.answer(itemYield, nil)), 2)
	b.want("taken", []int{taken, f.stopped}, []int{1, 1})
}

func TestHandoversAskNodesThatAreNamed(t *testing.T) {
	b := newBench(t, "a~1")
	f := &fakeHandovers{h: &handover{host: "h.test", id: b.place.targetID("h.test")}}
	s := b.handovers(f, nil)
	s.begin(f.h, "")
	timing := Timing{Delay: time.Minute}
	stopped := &reply{code: replyYes, node: "next~1", number: timing.pack()}
	b.want("asked", b.answer(itemYield, stopped), []strategy.Node{"a~1"})
	answered := reply{}
	s.postpone(f.h, func(r reply) { answered = r }, func(func(reply)) { t.Error("it takes URLs that may be done by now") })
	b.want("asked then", b.answer(itemYield, &reply{code: replyMoved, node: "guest~1"}), []strategy.Node{"next~1"})
	b.want("ceded to", f.ceded, "guest~1")
	b.want("timing", f.h.timing.Timing, timing)
	s.allStopped(f.h)
	b.want("answered", answered.code, later().code)
}

func TestHandoversYieldToACloserNode(t *testing.T) {
	b := newBench(t, "a~1")
	f := &fakeHandovers{}
	s := b.handovers(f, lent{"lent.test": "guest~1"})
	var got []reply
	yield := func(from strategy.Node, host string) {
		s.yield(from, item{host: host}, func(r reply) { got = append(got, r) })
	}
	yield("a~1", "lent.test")
	b.want("of a host that was lent", got[0].node, "guest~1")
	own := b.host(b.place.isTarget)
	f.h = &handover{host: own, id: b.place.targetID(own)}
	yield("a~1", own)
	b.want("to a node that is not closer", []any{got[1].code, got[1].node, f.released}, []any{replyMoved, benchSelf, 0})
	other := b.host(func(h string) bool { return !b.place.isTarget(h) })
	f.h = &handover{host: other, id: b.place.targetID(other)}
	yield("a~1", other)
	b.want("released", f.released, 1)
	b.want("answered before it has stopped", len(got), 2)
	b.pass(answerTime)
	b.want("in time", got[2].code, later().code)
	yield("a~1", other)
	f.h.replyAll(reply{code: replyYes})
	b.want("when it has stopped", got[3], reply{code: replyYes})
}

func TestReportsReachABackup(t *testing.T) {
	b := newBench(t, "a~1", "b~1")
	s := &reports{core: b.core, place: b.place, mail: b, lookups: b, mayLearn: always}
	backups, _ := b.place.nearBackups("h.test")
	c := &contact{host: "h.test", node: "gone~1"}
	accepted := 0
	s.send(c, item{kind: itemMarks}, func() { accepted++ })
	b.want("to the contact", b.answer(itemMarks, nil), []strategy.Node{"gone~1"})
	b.want("to the next backup", b.answer(itemMarks, nil), backups[1:2])
	b.want("to the last one", b.answer(itemMarks, &reply{code: replyNo}), backups[2:])
	b.pass(pause)
	b.want("from the first one on", b.answer(itemMarks, yes), backups[:1])
	b.want("accepted", accepted, 1)
	c.node = ""
	s.send(c, item{kind: itemMoved}, func() { accepted++ })
	b.answer(itemMoved, nil)
	b.want("to another one than the first", len(b.posts), 0)
	b.pass(pause)
	b.want("to the first one", b.answer(itemMoved, yes), backups[:1])
}

func TestHoldingsEndWhenAllIsReported(t *testing.T) {
	b := newBench(t, "a~1")
	s := &holdings{core: b.core, place: b.place, lookups: b, timings: newTimings(b.core), mayLearn: always,
		cookies: newCookieSharing(b.core, b.place, b, false),
		reports: &reports{core: b.core, place: b.place, mail: b, lookups: b, mayLearn: always},
		pending: func(string) bool { return true }, byHost: map[string]*holding{}, enqueuing: map[uint64]func(Enqueued){}}
	s.handovers = b.handovers(&fakeHandovers{}, nil)
	s.handovers.hosts = s
	host := b.host(b.place.isTarget)
	var got reply
	s.dispatched("first~1", item{host: host, links: open('x', 'y')}, func(r reply) { got = r })
	b.want("takes before the closest node has stopped", len(out[Enqueue](b)), 0)
	b.answer(itemYield, &reply{code: replyNo})
	take := out[Enqueue](b)
	b.want("takes", take[0].Links, open('x', 'y'))
	call(s.enqueuing, take[0].ID, Enqueued{ID: take[0].ID, Done: []bool{true, false}})
	b.want("reply", got.states, []State{Done, Dispatched})
	s.finished(Finished{Host: host, Hashes: []Hash{{'y'}}})
	s.recall("first~1", item{host: host})
	b.want("releases", out[Release](b), []Release{{Host: host}})
	b.want("is this node's", b.place.view.Ours(host), false)
	s.released(Released{Host: host, Timing: Timing{Wait: time.Minute}})
	b.want("reports to", b.answer(itemMarks, yes), []strategy.Node{"first~1"})
	b.want("names the next target", b.posts[0].it.node, benchSelf)
	b.answer(itemMoved, yes)
	b.want("holds it", s.holds(host), false)
	b.want("is this node's", b.place.view.Ours(host), true)
	b.want("timing", s.timings.get(host).Wait, time.Minute)
}

// TestAnActiveTargetThatHasLostAURL checks that a URL is dispatched again if its target has lost it, even while the
// target fetches a new URL of the host every few seconds.
func TestAnActiveTargetThatHasLostAURL(t *testing.T) {
	w := newWorld(t, 6)
	w.pass(time.Second)
	closest, _ := everybody{nodes: w.live}.Closest(xor.Of("target", worldHost), 1)
	target := w.nodes[closest[0]]
	w.offer(w.node(0), 1, 'a')
	w.pass(time.Second)
	target.rests = true
	for i := range 50 {
		url := byte('b' + i)
		w.offer(w.node(0), uint64(2+i), url)
		w.pass(time.Second)
		w.tell(target, Finished{Host: worldHost, Hashes: []Hash{{url}}})
		w.pass(3700 * time.Millisecond)
	}
	got := 0
	for _, take := range target.takes {
		for _, k := range take.Links {
			if k.Hash == (Hash{'a'}) {
				got++
			}
		}
	}
	if got < 2 {
		t.Errorf("in four minutes, the lost URL is dispatched %d times", got)
	}
	if got > 20 {
		t.Errorf("the lost URL is dispatched %d times", got)
	}
}
