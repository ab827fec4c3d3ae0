package mesh

import (
	"slices"
	"time"

	"kumo/internal/base/xor"
	"kumo/internal/cluster/strategy"
)

// A holding is a host whose URLs the engine has.
type holding struct {
	host     string
	id       xor.ID // the host's target id
	contact  contact
	handover handover
	released bool   // the engine has released the host
	marks    []Link // fetched, and not yet reported
	sending  bool   // a report is on its way
}

// markDelay is how long marks wait for others, to be reported together.
const markDelay = 300 * time.Millisecond

// holdings pass a host's URLs to the engine, at the host's target (itemDispatch, Enqueue), and report fetched ones to
// the first backup (Finished, itemMarks). When another node becomes the target, the engine stops (Release, Released),
// and the first backup learns which node fetches the host from then on (itemMoved).
//
// Invariants: the engine gets URLs of a host only after all nodes that may have fetched it before have stopped: see
// handovers. A holding ends only after all its marks are reported.
type holdings struct {
	core      *core
	place     *place
	lookups   finder
	reports   *reports
	handovers *handovers
	cookies   *cookieSharing
	timings   *timings
	lent      lent
	mayLearn  func(strategy.Node) bool // whether a node may learn that URLs are done
	pending   func(host string) bool   // Config.HasPending
	byHost    map[string]*holding
	scheduled int // marks with the next visit of a URL
	enqueuing map[uint64]func(Enqueued)
}

// lent contains the hosts of this node that other nodes fetch for it, with these nodes.
type lent map[string]strategy.Node

// hold returns a host's holding, and creates it if necessary.
func (s *holdings) hold(host string) *holding {
	g := s.byHost[host]
	if g == nil {
		g = &holding{host: host, id: s.place.targetID(host)}
		g.contact.host, g.handover.host, g.handover.id = host, host, g.id
		s.byHost[host] = g
		if !s.fetches(g) {
			s.stop(g)
		}
	}
	return g
}

// foundAtStart releases a host whose URLs an earlier process has left, even if it is this node's: others may have
// fetched some of them. The open URLs are dispatched again.
func (s *holdings) foundAtStart(host string) {
	if g := s.hold(host); !g.handover.stopping {
		s.stop(g)
	}
}

// fetches reports whether this node fetches a host.
func (s *holdings) fetches(g *holding) bool {
	v := s.place.view
	return s.place.closest(g.id) && !v.stopped[g.host] || v.guests[g.host] && !s.place.leaving
}

func (s *holdings) dispatched(from strategy.Node, it item, answer func(reply)) {
	g := s.byHost[it.host]
	if g != nil && g.handover.stopping {
		answer(later())
		return
	}
	closest := s.place.isTarget(it.host)
	switch to := s.lent[it.host]; {
	case to != "" && closest:
		answer(reply{code: replyMoved, node: to})
		return
	case !closest && !s.place.view.guests[it.host] || s.place.leaving || len(it.links) == 0:
		answer(reply{code: replyNo})
		return
	}
	first := g == nil
	g = s.hold(it.host)
	g.contact.node, g.contact.heard = from, s.core.now
	g.handover.merge(unpackTiming(it.number), s.core.now)
	switch h := &g.handover; {
	case first:
		s.handovers.begin(h, it.node)
	case h.isWaiting():
		s.handovers.requestStop(h, it.node)
	}
	if g.handover.isWaiting() {
		s.handovers.postpone(&g.handover, answer, func(answer func(reply)) { s.enqueue(from, g, it, answer) })
		return
	}
	s.enqueue(from, g, it, answer)
}

// enqueue passes the links of an item to the engine.
func (s *holdings) enqueue(from strategy.Node, g *holding, it item, answer func(reply)) {
	if g.handover.stopping || s.byHost[g.host] != g {
		answer(later())
		return
	}
	id := s.core.number()
	s.enqueuing[id] = func(t Enqueued) {
		if t.Refused {
			answer(later())
			return
		}
		r := reply{code: replyYes, states: make([]State, len(it.links))}
		for i := range r.states {
			if r.states[i] = Dispatched; i < len(t.Done) && t.Done[i] {
				r.states[i] = Done
			}
		}
		if slices.Contains(r.states, Done) && !s.mayLearn(from) {
			r = later()
		}
		answer(r)
	}
	s.core.do(Enqueue{ID: id, Host: it.host, Links: it.links, Timing: g.handover.timing.now(s.core.now)})
}

func (s *holdings) check(from strategy.Node, it item) reply {
	g := s.byHost[it.host]
	if g == nil {
		if to := s.lent[it.host]; to != "" {
			return reply{code: replyMoved, node: to}
		}
		return reply{code: replyNo}
	}
	g.contact.node, g.contact.heard = from, s.core.now
	if g.handover.stopping || s.pending(it.host) || len(g.marks) > 0 || g.sending {
		return reply{code: replyYes}
	}
	return reply{code: replyIdle}
}

// recall processes an itemRecall: it releases a host if it has pending URLs.
func (s *holdings) recall(_ strategy.Node, it item) reply {
	g := s.byHost[it.host]
	if to := s.lent[it.host]; g == nil && to != "" {
		return reply{code: replyMoved, node: to}
	}
	if g != nil && !g.handover.stopping && s.pending(it.host) {
		s.stop(g)
	}
	return reply{code: replyYes}
}

// finished records fetched URLs, and reports them soon.
func (s *holdings) finished(e Finished) {
	g := s.hold(e.Host)
	first := len(g.marks) == 0
	for _, h := range e.Hashes {
		g.marks = append(g.marks, Link{Hash: h, State: Done})
	}
	g.marks = append(g.marks, e.Next...)
	s.scheduled += countScheduled(e.Next)
	if first && !g.sending {
		s.core.after(markDelay, func() { s.report(g) })
	}
}

// report sends the marks to the first backup. When none are left, it ends a holding that must stop.
func (s *holdings) report(g *holding) {
	if g.sending || s.byHost[g.host] != g {
		return
	}
	if len(g.marks) == 0 {
		s.end(g)
		return
	}
	g.sending = true
	n := min(len(g.marks), maxItem)
	links := slices.Clone(g.marks[:n])
	s.reports.send(&g.contact, item{kind: itemMarks, host: g.host, links: links}, func() {
		g.sending = false
		s.scheduled -= countScheduled(links)
		g.marks = slices.Delete(g.marks, 0, n)
		s.report(g)
	})
}

// releaseMoved releases the hosts that are another node's now.
func (s *holdings) releaseMoved() {
	for _, host := range sortedKeys(s.byHost) {
		s.releaseIfMoved(host)
	}
}

func (s *holdings) releaseIfMoved(host string) {
	if g := s.byHost[host]; g != nil && !g.handover.stopping && !s.fetches(g) {
		s.stop(g)
	}
}

// releaseAll releases all hosts: others may have fetched them. Their first backups dispatch the open URLs again.
func (s *holdings) releaseAll() {
	for _, host := range sortedKeys(s.byHost) {
		if g := s.byHost[host]; !g.handover.stopping {
			s.stop(g)
		}
	}
}

func (s *holdings) stop(g *holding) {
	g.handover.stopping = true
	s.place.setStopped(g.host, true)
	s.core.do(Release{Host: g.host})
}

// released reports the fetched URLs of a host that the engine has released, and then the next target.
func (s *holdings) released(e Released) {
	if g := s.byHost[e.Host]; g != nil && g.handover.stopping {
		g.released = true
		g.handover.merge(e.Timing, s.core.now)
		s.report(g)
	}
}

// end ends a holding that was released, once all nodes have stopped that may have fetched the host before: the next
// target may ask this node only.
func (s *holdings) end(g *holding) {
	if !g.released || g.handover.isWaiting() {
		return
	}
	g.sending = true
	s.lookups.find(g.id, true, func(nodes []strategy.Node) { s.passOn(g, nodes) })
}

// passOn sends a released host's cookies to its next target, which is the closest node if no other one has requested
// the host, and then names that node to the first backup.
func (s *holdings) passOn(g *holding, closest []strategy.Node) {
	next := g.handover.next
	if next == "" && len(closest) > 0 {
		next = closest[0]
	}
	s.cookies.send(g.host, next, func() {
		if by := g.handover.next; by != "" && by != next { // it has requested the host meanwhile
			s.passOn(g, closest)
			return
		}
		timing := g.handover.timing.now(s.core.now).pack()
		it := item{kind: itemMoved, host: g.host, node: next, number: timing}
		s.reports.send(&g.contact, it, func() {
			s.forget(g)
			if g.handover.timing.Wait > 0 { // nodes that will ask again still need it
				s.timings.put(g.host, g.handover.timing)
			}
			g.handover.replyAll(reply{code: replyYes, number: timing})
		})
	})
}

// forget removes a holding. If no other node is closer, the host is this node's again.
func (s *holdings) forget(g *holding) {
	delete(s.byHost, g.host)
	s.place.setStopped(g.host, false)
}

// contact returns a host's contact; nil if the host is not held.
func (s *holdings) contact(host string) *contact {
	if g := s.byHost[host]; g != nil {
		return &g.contact
	}
	return nil
}

// holds reports whether the engine has URLs of a host.
func (s *holdings) holds(host string) bool { return s.byHost[host] != nil }

// lendable returns a function that lends a host to another node; nil if it cannot be lent. The function does nothing if
// the host was released since.
func (s *holdings) lendable(host string) (lend func(to strategy.Node)) {
	g := s.byHost[host]
	if g == nil || g.handover.stopping || s.place.view.guests[host] || s.lent[host] != "" || !s.place.closest(g.id) {
		return nil
	}
	return func(to strategy.Node) {
		if s.byHost[host] == g && !g.handover.stopping {
			g.handover.next = to
			s.lent[host] = to
			s.stop(g)
		}
	}
}

// announce prepares to pass a guest on to another node, which may request this one to stop from then on.
func (s *holdings) announce(host string, to strategy.Node) bool {
	g := s.byHost[host]
	if g == nil || g.handover.stopping || g.handover.isWaiting() || g.handover.next != "" || !s.place.view.guests[host] {
		return false
	}
	g.handover.next = to
	return true
}

// pass stops fetching an announced guest; or does not, if ok is false.
func (s *holdings) pass(host string, to strategy.Node, ok bool) {
	g := s.byHost[host]
	switch {
	case g == nil || g.handover.next != to:
	case !ok:
		g.handover.next = ""
	case !g.handover.stopping:
		s.stop(g)
	}
}

// The methods below are what handovers need: see handoverHosts.

func (s *holdings) of(host string) *handover {
	if g := s.byHost[host]; g != nil {
		return &g.handover
	}
	return nil
}

func (s *holdings) release(host string) { s.stop(s.byHost[host]) }

func (s *holdings) isReported(host string) bool {
	g := s.byHost[host]
	return g.released && !g.sending && len(g.marks) == 0
}

func (s *holdings) cede(host string, to strategy.Node) bool {
	g := s.byHost[host]
	if s.place.view.guests[host] || len(g.marks) > 0 {
		return false
	}
	s.lent[host] = to
	s.forget(g)
	g.handover.replyAll(reply{code: replyMoved, node: to})
	return true
}

func (s *holdings) allStopped(host string) {
	if g := s.byHost[host]; g != nil && g.handover.stopping {
		s.report(g)
	}
}
