package mesh

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"kumo/internal/base/xor"
	"kumo/internal/cluster/strategy"
)

// An openHost is a host with open URLs, which are dispatched and not done.
type openHost struct {
	host     string
	id       xor.ID // the host's backup id
	open     int    // open URLs in the history
	reviewed int    // open URLs at the last review
	first    bool   // this node is the first backup
	target   strategy.Node
	// the previous target, as the previous first backup knew it: it may not have stopped
	previous  strategy.Node
	backlog   backlog
	agreement agreement

	finding      bool // the target is being looked up
	again        bool // and the last result was outdated
	sending      bool // links are in transit to the target
	paused       bool // until a timer fires
	rested       *bool
	laterReplies int // consecutive replyLater of the target
	idle         int // consecutive checks in which the target had no pending URLs of the host
}

// A backlog is the URLs that must be sent to a host's target: links that have just been claimed, and all open URLs of
// the history from a position on.
type backlog struct {
	queue   []Link
	reread  bool
	from    string
	missed  bool // the queue had no room for some links that come before that position
	reading bool
}

// openHosts have the open URLs of hosts fetched. Every backup of a host counts the open ones. The first backup sends
// them to the host's target (itemDispatch), and again if the target is gone, reports that it no longer has them, or
// names another target (itemMoved).
//
// Invariants: at most one batch of links of a host is in transit to a target. All open URLs of the host are sent to
// that target before they count as dispatched there. A host is forgotten when none of its URLs is open.
type openHosts struct {
	core       *core
	place      *place
	mail       poster
	lookups    finder
	history    store
	timings    *timings
	checks     *checks
	agreements *agreements
	marks      *marks
	died       func(strategy.Node) bool // whether a node has died lately
	closed     func(host string)        // called when a host has no open URLs left
	byHost     map[string]*openHost
}

const (
	maxQueue = 2000 // queued links of a host for its target; others are read again from the history
	// wait before a target that has refused or deferred links is tried again, or is looked up again; it doubles so
	// often
	pause           = time.Second
	maxLaterReplies = 3
	maxIdleChecks   = 2 // checks
)

// opened records how many URLs of a host are open in the history. The caller dispatches the recent ones.
func (s *openHosts) opened(host string, open, recent int) {
	h := s.byHost[host]
	switch {
	case open > 0 && h == nil:
		h = &openHost{host: host, id: s.place.backupID(host), open: open, agreement: agreement{host: host}}
		s.byHost[host] = h
		if open == recent && s.place.closest(h.id) {
			h.first = true
			s.agreements.set(&h.agreement)
			return
		}
		s.update(h)
	case open > 0:
		h.open = open
	case h != nil:
		s.checks.unwatch(h.target, h.host)
		delete(s.byHost, host)
		s.closed(host)
		h.agreement.end(true)
	}
}

func (s *openHosts) names() []string { return sortedKeys(s.byHost) }

// updateAll checks for which hosts this node is the first backup.
func (s *openHosts) updateAll() {
	for _, host := range s.names() {
		s.update(s.byHost[host])
	}
}

// resignAll gives up the role of the first backup: other nodes may have taken it.
func (s *openHosts) resignAll() {
	for _, host := range s.names() {
		s.resign(s.byHost[host])
	}
}

func (s *openHosts) resign(h *openHost) {
	s.checks.unwatch(h.target, h.host)
	h.previous = cmp.Or(h.target, h.previous)
	h.first, h.target = false, ""
	h.backlog = backlog{from: h.backlog.from, reading: h.backlog.reading}
	h.agreement.end(false)
}

// update checks whether this node is the first backup of a host. A new first backup dispatches the open URLs that no
// other backup has as done. The target answers with those that it has fetched, or with the host's new target.
func (s *openHosts) update(h *openHost) {
	first := s.place.closest(h.id)
	switch {
	case first && !h.first:
		h.first = true
		if h.open > maxQueue {
			s.redispatch(h, "")
		}
		s.agreements.establish(&h.agreement)
	case !first && h.first:
		s.resign(h)
	case first:
		s.agreements.retainBackups(&h.agreement)
	}
}

// redispatch sends all open URLs of a host to a target, which is looked up if it is "".
func (s *openHosts) redispatch(h *openHost, target strategy.Node) {
	s.checks.unwatch(h.target, h.host)
	h.again = h.target != "" && target == "" // it is no longer the target
	h.target, h.idle = target, 0
	h.backlog = backlog{reread: true, reading: h.backlog.reading}
	s.push(h)
}

// replaceTarget looks up another target if the present one does not answer. The old one may only be busy, and not have
// stopped.
func (s *openHosts) replaceTarget(h *openHost) {
	if h.previous == "" && !s.died(h.target) {
		h.previous = h.target
	}
	s.redispatch(h, "")
}

// dispatch dispatches links of a host to its target.
func (s *openHosts) dispatch(host string, links []Link) {
	h := s.byHost[host]
	if h == nil || !h.first {
		return // the first backup dispatches them
	}
	switch b := &h.backlog; {
	case b.reread && b.from == "" && !b.reading:
		return // they will be read
	case len(b.queue)+len(links) <= maxQueue:
		b.queue = append(b.queue, links...)
	case b.reread:
		b.missed = true
	default:
		b.queue, b.reread, b.from = nil, true, ""
	}
	s.push(h)
}

// dispatchConfirmed dispatches links that no backup has as done, unless all open URLs are being read.
func (s *openHosts) dispatchConfirmed(host string, links []Link) {
	if !s.byHost[host].backlog.reread {
		s.dispatch(host, links)
	}
}

// push sends the next links of the backlog to the target.
func (s *openHosts) push(h *openHost) {
	if !h.first || h.finding || h.sending || h.paused || s.byHost[h.host] != h {
		return
	}
	switch b := &h.backlog; {
	case h.target == "" && (b.reread || len(b.queue) > 0):
		s.findTarget(h)
	case h.target == "":
	case len(b.queue) > 0:
		n := min(len(b.queue), maxItem)
		links := slices.Clone(b.queue[:n])
		b.queue = b.queue[n:]
		s.send(h, links)
	case b.reread && !b.reading:
		s.read(h)
	}
}

func (s *openHosts) findTarget(h *openHost) {
	h.finding = true
	s.lookups.find(s.place.targetID(h.host), h.again, func(nodes []strategy.Node) {
		h.finding, h.again = false, false
		if len(nodes) == 0 {
			s.pushLater(h)
			return
		}
		h.target = nodes[0]
		s.push(h)
	})
}

// pushLater calls push after a pause.
func (s *openHosts) pushLater(h *openHost) {
	if h.paused {
		return
	}
	h.paused = true
	rested := false
	h.rested = &rested
	s.core.at(s.core.now.Add(pause<<min(max(h.laterReplies-1, 0), maxLaterReplies)), h.rested, func() {
		h.paused = false
		s.push(h)
	})
}

// read reads the next open URLs from the history into the queue.
func (s *openHosts) read(h *openHost) {
	b := &h.backlog
	b.reading = true
	from := b.from
	s.history.read(h.host, from, false, func(k Known) {
		b.reading = false
		if b.reread && b.from == from { // otherwise reading has restarted, or ended
			b.from, b.reread = k.Next, k.Next != "" || b.missed
			b.missed = b.missed && k.Next != ""
			b.queue = append(b.queue, k.Links...)
		}
		s.push(h)
	})
}

func (s *openHosts) send(h *openHost, links []Link) {
	h.sending = true
	to := h.target
	s.checks.watch(h.target, h.host)
	it := item{kind: itemDispatch, host: h.host, links: links, node: h.previous, number: s.timings.get(h.host).pack()}
	s.mail.post(to, it, func(_ strategy.Node, r *reply) {
		h.sending = false
		if !h.first || h.target != to {
			s.push(h)
			return
		}
		if r == nil || r.code != replyLater {
			h.laterReplies = 0
		}
		switch {
		case r == nil:
			s.pushLater(h)
			s.replaceTarget(h)
		case r.code == replyYes:
			h.previous = ""
			if done := doneOf(links, r); len(done) > 0 { // the target had fetched them before
				s.marks.mark(h.host, done, func([]State) {})
			}
			s.push(h)
		case r.code == replyMoved && r.node != "":
			s.redispatch(h, r.node)
		case r.code == replyLater: // the target waits for others to stop, or is about to name the next target
			h.laterReplies++
			s.pushLater(h)
			s.redispatch(h, to)
		default:
			s.pushLater(h)
			s.redispatch(h, "")
		}
	})
}

// moved processes an itemMoved: another node fetches a host from now on.
func (s *openHosts) moved(_ strategy.Node, it item) reply {
	if !s.place.isFirst(it.host) {
		return reply{code: replyNo}
	}
	if t := unpackTiming(it.number); t.Wait > 0 {
		s.timings.put(it.host, timed{t, s.core.now})
	}
	if h := s.byHost[it.host]; h != nil {
		h.previous, h.laterReplies = "", 0
		if h.paused {
			*h.rested, h.paused = true, false
		}
		s.redispatch(h, it.node)
	}
	return reply{code: replyYes}
}

// checkHandler returns the handler of a target's reply to a check of a host: see checks.
func (s *openHosts) checkHandler(host string, target strategy.Node) func(r *reply) {
	h := s.byHost[host]
	return func(r *reply) { s.checked(h, target, r) }
}

func (s *openHosts) checked(h *openHost, target strategy.Node, r *reply) {
	if h == nil || s.byHost[h.host] != h || h.target != target || !h.first {
		return
	}
	switch {
	case r == nil:
		s.replaceTarget(h)
	case r.code == replyMoved && r.node != "":
		s.redispatch(h, r.node)
	case r.code == replyNo:
		s.redispatch(h, "")
	case r.code == replyIdle && !h.sending && !h.backlog.reread && len(h.backlog.queue) == 0:
		// The target has nothing to fetch or to report, so it has lost the open URLs.
		if h.idle++; h.idle >= maxIdleChecks {
			s.redispatch(h, target)
		}
	default:
		h.idle = 0
	}
}

// gone looks up other targets for the hosts of a node that has died.
func (s *openHosts) gone(node strategy.Node) {
	for _, host := range s.checks.hosts(node) {
		if h := s.byHost[host]; h != nil && h.target == node {
			s.redispatch(h, "")
		}
	}
}

// The methods below are what claims, agreements, reviews and other parts need: see their interfaces.

func (s *openHosts) openURLs(host string) int {
	if h := s.byHost[host]; h != nil {
		return h.open
	}
	return 0
}

func (s *openHosts) unchanged(host string) bool {
	h := s.byHost[host]
	same := h.reviewed == h.open
	h.reviewed = h.open
	return same
}

func (s *openHosts) review(host string) (openURLs func() int, first bool) {
	h := s.byHost[host]
	active := h.agreement.pass != nil || h.finding || h.backlog.reading || h.sending || h.paused ||
		s.checks.watches(h.target, host)
	if h.first && !active {
		s.replaceTarget(h)
	}
	return func() int { return h.open }, h.first
}

func (s *openHosts) isFirst(host string) (open, first bool) {
	h := s.byHost[host]
	return h != nil, h != nil && h.first
}

func (s *openHosts) awaitShared(host string, f func(known bool)) bool {
	a := &s.byHost[host].agreement
	if a.holds {
		return false
	}
	a.waiting = append(a.waiting, f)
	s.agreements.establish(a)
	return true
}

func (s *openHosts) sharedWith(host string) []strategy.Node { return s.byHost[host].agreement.backups }

// share records that nodes have all open URLs of a host: it adds them to the host's agreement.
func (s *openHosts) share(host string, nodes []strategy.Node) {
	if h := s.byHost[host]; h != nil {
		h.agreement.backups = append(h.agreement.backups, nodes...)
	}
}

func (s *openHosts) target(host string) strategy.Node {
	if h := s.byHost[host]; h != nil {
		return cmp.Or(h.target, h.previous)
	}
	return ""
}

func (s *openHosts) setTargetIfUnknown(host string, target strategy.Node) {
	if s.target(host) == "" {
		s.setPrevious(host, target)
	}
}

func (s *openHosts) setPrevious(host string, target strategy.Node) {
	if h := s.byHost[host]; h != nil && h.target == "" && target != "" {
		h.previous = target
	}
}

// fetchedBy records that a node has fetched URLs of a host. It reports whether that is not the target.
func (s *openHosts) fetchedBy(host string, node strategy.Node) (other bool) {
	h := s.byHost[host]
	return h != nil && h.target != "" && h.target != node
}

// String describes the state of a host, for debugging.
func (h *openHost) String() string {
	return fmt.Sprintf("%s: open %d, first %v, target %q, queue %d, reread %v, agreed %v, agreeing %v, finding %v, "+
		"reading %v, sending %v, resting %v, idle %d", h.host, h.open, h.first, h.target, len(h.backlog.queue),
		h.backlog.reread, h.agreement.holds, h.agreement.pass != nil, h.finding, h.backlog.reading, h.sending,
		h.paused, h.idle)
}

// describeFirst describes the first host; "" if there is none.
func (s *openHosts) describeFirst() string {
	if len(s.byHost) == 0 {
		return ""
	}
	return fmt.Sprintf("%d hosts have URLs that are not done: %v", len(s.byHost), s.byHost[s.names()[0]])
}

// sortedKeys returns the keys of a map in order, so that runs are reproducible.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
