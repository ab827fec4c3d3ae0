package mesh

import (
	"slices"
	"testing"
	"time"

	"kumo/internal/cluster/strategy"
)

// fakeHosts stand in for the hosts with open URLs. This node is their first backup.
type fakeHosts struct {
	*bench
	first, shared bool
	dispatched    []Link
	targets       []strategy.Node
	waiting       []func(bool)
}

func (h *fakeHosts) isFirst(string) (open, first bool) { return h.opened > 0, h.opened > 0 && h.first }
func (h *fakeHosts) awaitShared(_ string, f func(bool)) bool {
	if !h.shared {
		h.waiting = append(h.waiting, f)
	}
	return !h.shared
}
func (h *fakeHosts) sharedWith(string) []strategy.Node    { return []strategy.Node{"a~1", "b~1"} }
func (h *fakeHosts) dispatch(_ string, l []Link)          { h.dispatched = append(h.dispatched, l...) }
func (h *fakeHosts) dispatchConfirmed(_ string, l []Link) { h.dispatch("", l) }
func (h *fakeHosts) target(string) strategy.Node          { return "" }
func (h *fakeHosts) setTargetIfUnknown(_ string, target strategy.Node) {
	h.targets = append(h.targets, target)
}
func (h *fakeHosts) setPrevious(_ string, target strategy.Node) {}
func (h *fakeHosts) names() []string                            { return []string{"h.test"} }
func (h *fakeHosts) openURLs(string) int                        { return h.opened }
func (h *fakeHosts) unchanged(string) bool                      { return true }
func (h *fakeHosts) review(string) (func() int, bool)           { return func() int { return h.opened }, h.first }

func (b *bench) claims(hosts *fakeHosts) *claims {
	return &claims{core: b.core, place: b.place, mail: b, history: b, absences: b.absent, hosts: hosts,
		disclosure: &disclosure{core: b.core, place: b.place}, differs: func(item, []State) {},
		offers: map[offerKey]bool{}, byHost: map[string][]*claim{}}
}

func (b *bench) offer(c *claims, number uint64, host string, links ...byte) {
	o := Offered{From: "finder~1", Number: number}
	for _, l := range open(links...) {
		o.Links = append(o.Links, HostLink{host, l})
	}
	c.offered(o)
}

func TestClaimsAcceptLinksThatAllBackupsHave(t *testing.T) {
	b := newBench(t, "a~1", "b~1")
	hosts := &fakeHosts{bench: b, first: true, shared: true}
	c := b.claims(hosts)
	host := b.host(b.place.isFirst)
	for range 2 { // the repetition is ignored
		b.offer(c, 1, host, 'x', 'y')
	}
	b.want("asked", len(b.posts), 2)
	b.posts[0].done("", &reply{code: replyYes, states: []State{Done, Unknown}, node: "t~1"})
	b.posts[1].done("", nil) // it does not answer
	b.posts = nil
	b.want("dispatched", hosts.dispatched, open('y'))
	b.want("done by what another backup knows", b.history[Hash{'x'}].State, Done)
	b.want("target by what it knows", hosts.targets, []strategy.Node{"t~1"})
	b.want("answered while one lacks the links", len(out[Answer](b)), 0)
	b.pass(pause)
	b.want("asked again", len(b.answer(itemStore, &reply{code: replyYes, states: []State{Unknown}})), 1)
	b.want("answers", out[Answer](b), []Answer{{To: "finder~1", Number: 1}})
	b.want("dispatched", hosts.dispatched, open('y'))
	b.want("under way", len(c.offers)+len(c.byHost), 0)
}

func TestClaimsOfOpenLinksWaitForTheAgreement(t *testing.T) {
	b := newBench(t, "a~1", "b~1")
	hosts := &fakeHosts{bench: b, first: true}
	c := b.claims(hosts)
	host := b.host(b.place.isFirst)
	b.record(host, open('x'), func(Recorded, []Link) {})
	b.offer(c, 1, host, 'x')
	b.want("answered", len(out[Answer](b)), 0)
	hosts.waiting[0](false) // this node is no longer the first backup
	b.want("answers", out[Answer](b), []Answer{{To: "finder~1", Number: 1, Refused: []int{0}}})
	other := b.host(func(h string) bool { return !b.place.isFirst(h) })
	b.offer(c, 2, other, 'z')
	b.want("of another node's host", out[Answer](b), []Answer{{To: "finder~1", Number: 2, Refused: []int{0}}})
}

func TestAgreementsShareOpenURLs(t *testing.T) {
	b := newBench(t, "a~1", "b~1")
	hosts := &fakeHosts{bench: b}
	s := &agreements{core: b.core, place: b.place, mail: b, history: b, absences: b.absent, hosts: hosts}
	b.record("", open('x', 'y'), func(Recorded, []Link) {})
	a := &agreement{host: "h.test"}
	var reached []bool
	a.waiting = append(a.waiting, func(holds bool) { reached = append(reached, holds) })
	s.establish(a)
	s.establish(a)
	b.want("asked", len(b.posts), 2)
	b.posts[0].done("", &reply{code: replyYes, states: []State{Done, Unknown}})
	b.posts[1].done("", nil)
	b.posts = nil
	b.want("dispatched", hosts.dispatched, open('y'))
	b.want("reached", len(reached), 0)
	b.pass(passAgain)
	b.answer(itemStore, &reply{code: replyYes, states: []State{Dispatched}})
	b.want("reached", reached, []bool{true})
	b.want("with", len(a.backups), 2)
	b.want("dispatched again", hosts.dispatched, open('y'))
}

func (b *bench) openHosts() *openHosts {
	s := &openHosts{core: b.core, place: b.place, mail: b, lookups: b, history: b, timings: newTimings(b.core),
		died: func(strategy.Node) bool { return false }, closed: func(string) {}, byHost: map[string]*openHost{}}
	s.checks = &checks{core: b.core, mail: b, every: 10 * time.Second, replyHandler: s.checkHandler,
		target: map[strategy.Node]*check{}}
	s.agreements = &agreements{core: b.core, place: b.place, mail: b, history: b, absences: b.absent, hosts: s}
	s.marks = &marks{place: b.place, mail: b, history: b, mayLearn: always, hosts: s}
	return s
}

func TestOpenHostsDispatchUntilTheTargetHasAll(t *testing.T) {
	b := newBench(t, "a~1", "b~1")
	s := b.openHosts()
	host := b.host(func(h string) bool { return b.place.isFirst(h) && !b.place.isTarget(h) })
	b.record(host, open('x', 'y'), func(Recorded, []Link) {})
	s.opened(host, 2, 2)
	s.dispatch(host, open('x', 'y'))
	target, _ := b.place.near(b.place.targetID(host), 1)
	b.want("sent to the target", b.answer(itemDispatch, yes), target)
	b.pass(10 * time.Second)
	b.want("checked", b.answer(itemCheck, &reply{code: replyNo}), target)
	b.want("sent again", b.posts[0].it.links, open('x', 'y'))
	b.answer(itemDispatch, &reply{code: replyMoved, node: "guest~1"})
	b.want("sent to its guest", b.answer(itemDispatch, yes), []strategy.Node{"guest~1"})
	s.gone("guest~1")
	b.want("sent to the target again", b.answer(itemDispatch, nil), target) // the target does not answer
	b.pass(pause)
	b.want("the silent target is named", b.posts[0].it.node, target[0])
	s.opened(host, 0, 0)
	b.want("kept", len(s.byHost), 0)
}

func TestOpenHostsPassOnWhatATargetHasMoved(t *testing.T) {
	b := newBench(t, "a~1", "b~1")
	s := b.openHosts()
	host := b.host(b.place.isFirst)
	s.opened(host, 1, 1)
	b.record(host, open('x'), func(Recorded, []Link) {})
	timing := Timing{Delay: time.Second, Wait: 5 * time.Second}
	it := item{host: host, node: "new~1", number: timing.pack()}
	b.want("reply", s.moved("old~1", it).code, replyYes)
	b.want("sent to", b.posts[0].to, "new~1")
	b.want("timing", unpackTiming(b.posts[0].it.number), timing)
}

func TestChecksOfATargetThatHasAllAreRare(t *testing.T) {
	b := newBench(t, "a~1")
	judged := 0
	s := &checks{core: b.core, mail: b, every: 10 * time.Second, target: map[strategy.Node]*check{},
		replyHandler: func(string, strategy.Node) func(*reply) { return func(*reply) { judged++ } }}
	for i := range maxChecked + 1 {
		s.watch("a~1", string(rune('a'+i)))
	}
	questions := func(d time.Duration, r *reply) int {
		b.pass(d)
		return len(b.answer(itemCheck, r))
	}
	b.want("after 10 s", questions(10*time.Second, yes), maxChecked)
	b.want("after 10 s more", questions(10*time.Second, yes), 0)
	b.want("after 20 s", questions(10*time.Second, nil), maxChecked)
	b.pass(40 * time.Second) // the time of this check was set before
	b.answer(itemCheck, nil)
	b.want("one that has not answered", questions(20*time.Second, nil), maxChecked)
	b.want("judged", judged, 4*maxChecked)
}

func TestReviewsCompareTheNumbersOfOpenURLs(t *testing.T) {
	b := newBench(t, "a~1", "b~1")
	b.record("", open('x', 'y'), func(Recorded, []Link) {})
	v := &reviews{core: b.core, place: b.place, mail: b, history: b, hosts: &fakeHosts{bench: b, first: true},
		engine: func() (bool, uint64) { return true, 0 }}
	v.run()
	b.want("asked", len(b.posts), 2)
	b.answer(itemOpen, &reply{code: replyYes, number: 2})
	b.want("sent, with the same number", len(b.posts), 0)
	b.pass(reviewQuiet)
	b.answer(itemOpen, &reply{code: replyYes, number: 1})
	b.want("sent", b.posts[0].it.links, open('x', 'y'))
	b.answer(itemStore, &reply{code: replyYes, states: []State{Done, Dispatched}})
	b.want("done by what the other knows", b.history[Hash{'x'}].State, Done)
}

func TestTransfersGoOnWithNodesThatStore(t *testing.T) {
	b := newBench(t, "a~1", "b~1", "c~1")
	b.record("", open('x'), func(Recorded, []Link) {})
	s := &transfers{mail: b, history: b, target: func(string) strategy.Node { return "t~1" },
		mayLearn: func(n strategy.Node) bool { return n != "c~1" }}
	var stored []strategy.Node
	s.sendAll("h", []strategy.Node{"a~1", "b~1", "c~1"}, func(to []strategy.Node) { stored = to })
	b.want("posted", len(b.posts), 2)
	b.want("with the target", b.posts[0].it.node, "t~1")
	b.posts[0].done("", yes)
	b.posts[1].done("", nil)
	b.want("stored", stored, []strategy.Node{"a~1"})
}

// A fakeSender stands in for transfers.
type fakeSender struct{ all, opened []func([]strategy.Node) }

func (s *fakeSender) sendAll(_ string, _ []strategy.Node, over func([]strategy.Node)) {
	s.all = append(s.all, over)
}

func (s *fakeSender) sendOpen(_ string, _ []strategy.Node, over func([]strategy.Node)) {
	s.opened = append(s.opened, over)
}

func TestCopiesDropAHostThatAllBackupsHave(t *testing.T) {
	b := newBench(t, "a~1")
	sender := &fakeSender{}
	postponed := true
	c := &copies{core: b.core, place: b.place, absences: b.absent, lookups: b, transfers: sender, hosts: b.openHosts(),
		postponed: func() bool { return postponed }, pending: map[string]*hostCopy{}}
	c.sweepSoon()
	b.pass(sweepAfter)
	b.want("sweeps before open URLs are sent", len(out[Sweep](b)), 0)
	postponed = false
	b.know("a~1", "b~1", "c~1", "d~1", "e~1")
	c.sweepSoon()
	b.pass(sweepAfter)
	b.want("sweeps", len(out[Sweep](b)), 1)
	host := b.host(func(h string) bool { _, is := b.place.otherBackups(h); return !is })
	backups, _ := b.place.otherBackups(host)
	c.swept(Swept{Hosts: []string{host}})
	b.want("sent", len(sender.all), 1)
	sender.all[0](backups[:2])
	b.want("dropped though one lacks it", len(out[Drop](b)), 0)
	b.pass(copyAgain)
	c.changing(host)
	sender.all[1](backups[2:])
	b.want("dropped though it has changed", len(out[Drop](b)), 0)
	b.pass(copyAgain)
	sender.all[2](backups)
	b.want("dropped", out[Drop](b), []Drop{{Host: host}})
	b.want("resting", c.isResting(), true)
}

func TestDisclosureWaitsUntilOpenURLsAreSent(t *testing.T) {
	b := newBench(t, "a~1")
	sender := &fakeSender{}
	hosts := b.openHosts()
	disclosed := 0
	d := &disclosure{core: b.core, place: b.place, lookups: b, transfers: sender, hosts: hosts, tooFew: true,
		disclosed: func() { disclosed++ }}
	d.informed = []strategy.Node{"a~1"}
	hosts.opened("h.test", 1, 1)
	b.know("a~1", "b~1", "c~1")
	d.update()
	b.want("pending", d.pending(), true)
	b.want("may learn", []bool{d.mayLearn("a~1"), d.mayLearn("b~1")}, []bool{true, false})
	b.want("redacted", d.redact("b~1", []State{Done, Unknown}), []State{withheld, Unknown})
	b.want("keeps links", []bool{d.mustKeep("a~1"), d.mustKeep("b~1")}, []bool{false, true})
	sender.opened[0](nil) // none has stored them
	b.pass(pause)
	peers, _ := b.place.nearBackups("h.test")
	sender.opened[1](slices.DeleteFunc(slices.Clone(peers), d.mayLearn))
	b.want("disclosed", disclosed, 1)
	b.want("may learn", d.mayLearn("b~1"), true)
}

func TestRecallsOfAHostGoTogether(t *testing.T) {
	b := newBench(t, "a~1", "b~1")
	c := &recalls{core: b.core, place: b.place, mail: b, lookups: b, pending: map[string]bool{}}
	host := b.host(b.place.isFirst)
	c.differs(item{host: host, links: open('x')}, []State{Unknown})
	b.pass(recallAfter)
	b.want("recalls of new links", len(b.posts), 0)
	for range 2 {
		c.differs(item{host: host, links: open('x')}, []State{Done})
	}
	b.pass(recallAfter)
	b.want("recalls", len(b.posts), 1)
	b.answer(itemRecall, &reply{code: replyMoved, node: "guest~1"})
	b.want("recalls at the guest", b.answer(itemRecall, yes), []strategy.Node{"guest~1"})
}

// TestBackupsLearnTheTargetWithMarks: a first backup that restarts learns from the others which node fetches a host.
func TestBackupsLearnTheTargetWithMarks(t *testing.T) {
	b := newBench(t, "a~1", "b~1")
	s := b.openHosts()
	host := b.host(b.place.isFirst)
	b.record(host, open('x', 'y'), func(Recorded, []Link) {})
	s.opened(host, 2, 2)
	s.moved("old~1", item{host: host, node: "new~1"})
	b.answer(itemDispatch, yes)
	s.marks.receive("new~1", item{host: host, links: []Link{{Hash: Hash{'x'}, State: Done}}}, func(reply) {})
	for _, p := range b.posts {
		b.want("the target", p.it.node, "new~1")
	}
	b.want("marked at", len(b.answer(itemStore, yes)), 2)
}
