package mesh

import (
	"slices"
	"time"

	"kumo/internal/base/xor"
	"kumo/internal/cluster/strategy"
)

// A handover is the state of a host that moves from one target to another: the earlier nodes, and the next ones.
type handover struct {
	host     string
	id       xor.ID // the host's target id
	stopping bool   // the engine must release the host: another node is the target now
	timing   timed  // as the engine has left it, combined with those of the nodes that fetched the host before

	requests      []*stopRequest     // to nodes that may have been the target before this one
	queue         []postponedEnqueue // waits until all of them have stopped
	fetchedBefore bool               // one of them was the target: it has reported what it has fetched since

	next           strategy.Node    // the next target, if known
	waitingReplies []*deferredReply // to the stop requests of other nodes
	turn           int              // index, in replies, of the nodes for which this one waits
}

// A stopRequest is a request to stop fetching a host, to a node that may have been its target before this one.
type stopRequest struct {
	node   strategy.Node
	silent int // times without an answer
	waits  int // times that it had stopped, and waited for another node
	over   bool
}

// A postponedEnqueue waits until no other node fetches the host.
type postponedEnqueue struct {
	answer  *deferredReply
	enqueue func()
}

// handovers ensure that a host is fetched by one node at a time.
//
// The next target requests the nodes that may have fetched the host before to stop (itemYield), and enqueues nothing
// until they have. In the worst case that takes as long as the host's own response, so it repeats the request. A node
// that gets one names another node if it has met a closer one, or has lent the host to one. If it has stopped, it names
// a node for which it waits itself, a different one each time, and the next target sends a request to that one, too. So
// nodes that wait for each other find that each has stopped.
//
// Invariant: a postponed enqueue is answered once, after all these nodes have stopped or count as gone, or with
// replyLater when it has waited for answerTime.
type handovers struct {
	core     *core
	place    *place
	mail     poster
	lookups  *lookups
	absences *absences
	timings  *timings
	lent     lent
	former   *former
	hosts    handoverHosts
	silent   recent // nodes that have not answered
}

// handoverHosts is the handovers' view of the hosts that this node fetches.
type handoverHosts interface {
	// of returns a host's handover; nil if this node does not have the host. The others are for hosts that it has.
	of(host string) *handover
	// isReported reports whether the engine has released a host, and everything it has fetched is reported.
	isReported(host string) bool
	// release has the engine stop.
	release(host string)
	// cede passes a host on to a node that fetches it for this one, if the engine has taken nothing of it yet. It
	// reports false if that is not possible.
	cede(host string, to strategy.Node) bool
	// allStopped continues with a host when all other nodes have stopped.
	allStopped(host string)
}

const (
	maxSilent = 3 // a node that is not known to have died may only be busy; for a while it then gets a single request
	maxWaits  = 8
)

func newHandovers(c *core) *handovers {
	return &handovers{core: c, silent: recent{lasts: time.Minute, most: 64}}
}

// merge combines the host's timing with another node's.
func (h *handover) merge(t Timing, now time.Time) { h.timing = timed{h.timing.now(now).merge(t), now} }

func (h *handover) isWaiting() bool {
	return slices.ContainsFunc(h.requests, func(a *stopRequest) bool { return !a.over })
}

// postpone postpones an enqueue until all other nodes have stopped.
func (s *handovers) postpone(h *handover, answer func(reply), take func(answer func(reply))) {
	d := deferReply(s.core, answer, later)
	h.queue = append(slices.DeleteFunc(h.queue, func(p postponedEnqueue) bool { return p.answer.over }),
		postponedEnqueue{d, func() { take(d.send) }})
}

// begin sends stop requests to the closest node except this one, which may not have noticed yet that this one has
// joined; the node that the first backup names, in case the closest one has just joined, too; the node that has just
// fetched it for this one; and closer nodes that leave, which may not have stopped.
func (s *handovers) begin(h *handover, named strategy.Node) {
	nodes, _ := s.place.near(h.id, 2)
	nodes = slices.DeleteFunc(slices.Clone(nodes), func(n strategy.Node) bool { return n == s.core.self })
	nodes = append(nodes[:min(len(nodes), 1)], named, s.former.of(h.host))
	for _, n := range s.absences.left.list(s.core.now) {
		if s.place.closerThanSelf(n, h.id) {
			nodes = append(nodes, n)
		}
	}
	for _, n := range nodes {
		s.requestStop(h, n)
	}
}

// requestStop requests one more node to stop, unless it was sent a request before.
func (s *handovers) requestStop(h *handover, node strategy.Node) {
	if node == "" || node == s.core.self ||
		slices.ContainsFunc(h.requests, func(a *stopRequest) bool { return a.node == node }) {
		return
	}
	a := &stopRequest{node: node}
	h.requests = append(h.requests, a)
	s.send(h, a)
}

func (s *handovers) send(h *handover, a *stopRequest) {
	s.mail.post(a.node, item{kind: itemYield, host: h.host}, func(_ strategy.Node, r *reply) {
		if s.hosts.of(h.host) != h {
			return
		}
		if r != nil {
			h.merge(unpackTiming(r.number), s.core.now)
			h.fetchedBefore = h.fetchedBefore || r.code == replyYes || r.code == replyLater
		}
		if s.mayFetch(h, a, r) {
			s.sendAgain(h, a, r == nil)
			return
		}
		a.over = true
		// another node has fetched the host for its target since before this node joined, or a closer one has it that
		// this node did not know
		if r != nil && r.code == replyMoved && r.node != "" && s.hosts.cede(h.host, r.node) {
			return
		}
		if !h.isWaiting() {
			s.allStopped(h)
		}
	})
}

// sendAgain repeats a request after a pause. If the node has not answered, its address may be unknown, and is looked
// up.
func (s *handovers) sendAgain(h *handover, a *stopRequest, silent bool) {
	again := func() {
		if s.hosts.of(h.host) == h {
			s.send(h, a)
		}
	}
	if silent {
		s.lookups.lookUp(s.place.nodeID(a.node), true, func([]strategy.Node) { s.core.after(pause, again) })
	} else {
		s.core.after(pause, again)
	}
}

// mayFetch reports whether a node may still be fetching a host, by its reply.
func (s *handovers) mayFetch(h *handover, a *stopRequest, r *reply) bool {
	switch {
	case r == nil:
		if a.silent++; a.silent == maxSilent {
			s.silent.add(a.node, s.core.now)
		}
		return a.silent < maxSilent && !s.absences.mayBeGone(a.node) && !s.silent.has(a.node, s.core.now)
	case r.code == replyNo || r.code == replyYes:
		s.requestStop(h, r.node)
		return false
	case r.code != replyLater || r.node == s.core.self:
		return false
	case r.node == "":
		return true
	}
	a.waits++
	s.requestStop(h, r.node)
	return a.waits < maxWaits
}

// allStopped executes the postponed enqueues.
func (s *handovers) allStopped(h *handover) {
	queue, before := h.queue, h.fetchedBefore
	h.queue, h.fetchedBefore, h.requests = nil, false, nil
	for _, p := range queue {
		switch {
		case p.answer.over: // the URLs are dispatched again
		case before: // some of these URLs are done by now
			p.answer.send(later())
		default:
			p.enqueue()
		}
	}
	s.hosts.allStopped(h.host)
}

// yield processes an itemYield: it stops fetching a host for a node that is closer to it.
func (s *handovers) yield(from strategy.Node, it item, answer func(reply)) {
	h := s.hosts.of(it.host)
	if h == nil {
		if to := s.lent[it.host]; to != "" && to != from {
			answer(reply{code: replyMoved, node: to})
		} else {
			other := s.former.of(it.host)
			if other == "" || other == from {
				other = s.closerThanSelf(s.place.targetID(it.host), from)
			}
			answer(reply{code: replyNo, node: other, number: s.timings.get(it.host).pack()})
		}
		return
	}
	closer := s.place.compare(s.core.self, from, h.id) < 0 && !s.place.leaving
	if closer && !h.stopping && h.next != from {
		answer(reply{code: replyMoved, node: s.core.self})
		return
	} else if !closer && (h.next == "" || s.place.compare(from, h.next, h.id) < 0) {
		h.next = from
	}
	h.waitingReplies = append(slices.DeleteFunc(h.waitingReplies, func(p *deferredReply) bool { return p.over }),
		deferReply(s.core, func(r reply) {
			switch {
			case r.code == replyMoved && r.node == from:
				r = reply{code: replyNo}
			case r.code == replyYes && h.next != from:
				r.node = h.next
			}
			answer(r)
		}, func() reply { return s.notStopped(h, from) }))
	if !h.stopping {
		s.hosts.release(it.host)
	}
}

// closerThanSelf returns the node that is closest to an id, if it is closer than this node and not except; "" if there
// is none. A node that has just joined may not know it yet.
func (s *handovers) closerThanSelf(id xor.ID, except strategy.Node) strategy.Node {
	nodes, _ := s.place.near(id, 2)
	for _, n := range nodes {
		if n != except && s.place.closerThanSelf(n, id) {
			return n
		}
	}
	return ""
}

// notStopped replies that this node has not stopped, or names a node for which it waits itself.
func (s *handovers) notStopped(h *handover, from strategy.Node) reply {
	r := later()
	if !s.hosts.isReported(h.host) {
		return r
	}
	var others []strategy.Node
	for _, a := range h.requests {
		if a.node == from && !a.over {
			r.node = from
		} else if !a.over {
			others = append(others, a.node)
		}
	}
	if n := len(others); n > 0 { // a different one each time
		h.turn++
		r.node = others[h.turn%n]
	}
	return r
}

// replyAll answers all stop requests of other nodes.
func (h *handover) replyAll(r reply) {
	for _, p := range h.waitingReplies {
		p.send(r)
	}
}
