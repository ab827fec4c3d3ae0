package hub

import (
	"container/heap"
	"slices"
	"time"

	"kumo/internal/strategy"
	"kumo/internal/strategy/leader"
)

// node is what a Hub knows as a node among others.
type node struct {
	view    *view
	own     *trie
	foreign [2]*trie
	young   int             // hosts in the younger of the two
	agesAt  time.Time       // when that becomes the elder; zero while there are none
	nodes   []strategy.Node // by number; "" if it is none any more. Views share it: it is changed as a copy
	numbers map[strategy.Node]uint32
	dirty   bool // the view is an old one

	granted int // own hosts, and those of them that are parked
	parked  int
	pending map[string]*pending
	queue   byTime
	probes  []*pending // that wait for their turn
	probing int
	timeout time.Duration

	synced         bool // all that is this node's by the control unit's table is known
	cursor         uint64
	syncAt         time.Time
	survey         bool // asked for
	surveyed       bool
	whole          uint64 // the epoch that is to be acknowledged
	acknowledged   uint64
	unacknowledged int // hosts held of which the control unit does not know

	lasts   time.Duration // its queue, at its pace; 0: that is not known
	toldAt  time.Time     // how much this node has to do
	givesAt time.Time
	gives   []give // that the control unit wants, while it is asked which hosts can be spared
	kept    kept
}

// movePatience is how long is waited for a host to move.
const movePatience = time.Minute

func newNode(h *Hub) node {
	return node{view: &view{self: h.cfg.Self}, numbers: map[strategy.Node]uint32{}, pending: map[string]*pending{},
		timeout: h.cfg.Timeout}
}

// View is whose hosts are, as this node knows it.
func (h *Hub) View() strategy.View { return h.view }

// Facts are what the node tells people.
func (h *Hub) Facts() strategy.Facts {
	return strategy.Facts{Control: h.elector.Leader(), Leads: h.elector.Leads(), Timeout: h.timeout, Owned: h.granted,
		Parked: h.parked, Unsettled: len(h.pending)}
}

// wanted is told of hosts to which links wait.
func (h *Hub) wanted(hosts []string) {
	if !h.alive[h.cfg.Self] {
		return // it is told again
	}
	for _, host := range hosts {
		if _, mine := h.own.get(key(host)); mine || h.pending[host] != nil {
			continue
		}
		h.forgetOwner(host)
		p := h.add(host, asking)
		if h.cfg.FetchFirst && h.epoch == h.settled { // else it may be on its way from here
			p.holds = true
			h.grant(host, ownAsked)
			h.toProbe(p, 0)
		}
	}
}

// held is told of hosts that this node holds and does not own.
func (h *Hub) held(hosts []string) {
	if !h.alive[h.cfg.Self] {
		return // its heirs will say so
	}
	for _, host := range hosts {
		if v, mine := h.own.get(key(host)); mine && v == ownGranted {
			continue
		}
		p := h.pending[host]
		if p == nil {
			p = h.add(host, holding)
		} else { // whatever was under way: what the control unit must know first is that it is held here
			h.turn(p, holding)
		}
		p.holds, p.moved = true, 0
		if !p.needsAck {
			p.needsAck = true
			h.unacknowledged++
		}
	}
}

func (h *Hub) reached(e strategy.Reached) {
	p := h.pending[e.Host]
	if p == nil || p.phase != probing {
		return
	}
	p.ok, p.took, p.net = e.OK, e.Connect, e.Network
	if !e.OK && h.cfg.FetchFirst && !p.owned {
		h.cedeTo(p.host, "")
	}
	h.turn(p, telling)
}

// load adapts the timeout: who has little to do takes hosts that are farther away, who has much leaves them to others.
func (h *Hub) load(e strategy.Load) {
	switch least, most := h.cfg.Least, 2*h.cfg.Timeout; {
	case e.Node != h.cfg.Self:
		return
	case e.Busy < 0.5:
		h.timeout = min(h.timeout+h.timeout/16, most)
	case e.Busy > 0.9:
		h.timeout = max(h.timeout-h.timeout/16, least)
	}
	h.tellLoad(e)
}

// moved is told which hosts change hands. Of most that others hand over it is not: links to them are refused.
func (h *Hub) moved(moves []strategy.Move) {
	for _, m := range moves {
		if m.From != h.cfg.Self {
			h.forgetOwner(m.Host)
		}
	}
	for _, m := range moves {
		if p := h.pending[m.Host]; m.From == h.cfg.Self && p != nil && p.phase == moving && p.moved == 0 && m.To == p.to {
			p.moved = h.epoch
		}
	}
	for _, host := range h.movingHosts() {
		switch p := h.pending[host]; {
		case p.moved > 0 && !h.alive[p.to]: // it went to an heir, or stays: then the control unit must know before the epoch is settled
			h.drop(p)
			h.survey, h.surveyed = false, false
		case p.moved > 0 && h.settled >= p.moved:
			h.drop(p)
		case p.moved == 0 && !h.alive[p.to]:
			h.turn(p, holding)
		}
	}
}

func (h *Hub) movingHosts() (all []string) {
	for host, p := range h.pending {
		if p.phase == moving {
			all = append(all, host)
		}
	}
	slices.Sort(all)
	return all
}

// begin forgets what is this node's, which has become a member, or is none any more: what it owned others own then.
func (h *Hub) begin() {
	for _, p := range h.pending {
		if p.index >= 0 {
			heap.Remove(&h.queue, p.index)
		}
	}
	clear(h.pending)
	h.own, h.granted, h.parked, h.dirty = nil, 0, 0, true
	h.probes, h.probing, h.unacknowledged, h.gives = nil, 0, 0, nil
	h.synced, h.cursor, h.syncAt, h.survey, h.surveyed = false, 0, h.now, false, false
}

// advanceNode does what is due.
func (h *Hub) advanceNode() {
	if !h.alive[h.cfg.Self] {
		return
	}
	h.advanceMember()
	if !h.agesAt.IsZero() && !h.agesAt.After(h.now) {
		h.age()
	}
	for len(h.queue) > 0 && !h.queue[0].at.After(h.now) {
		h.due(h.queue[0])
	}
	h.startProbes()
}

func (h *Hub) advanceMember() {
	if !h.synced && !h.syncAt.After(h.now) {
		h.syncAt = h.now.Add(4 * h.cfg.Retry)
		h.question(item{kind: itemSync, number: h.cursor})
	}
	if h.synced && !h.survey {
		h.survey = true
		h.do(strategy.Survey{})
	}
	if h.whole > h.acknowledged && h.synced && h.surveyed && h.unacknowledged == 0 {
		h.acknowledged = h.whole
		h.do(strategy.Acknowledged{Epoch: h.whole})
	}
}

// soon asks the control unit, another one perhaps, all that has no answer yet.
func (h *Hub) soon() {
	h.syncAt = h.now
	for _, p := range slices.Clone(h.queue) {
		if (p.phase == asking || p.phase == telling || p.phase == holding || p.phase == offering) && p.tries > 0 {
			p.tries = 0
			h.schedule(p, h.now)
		}
	}
}

// due does what a host wants now.
func (h *Hub) due(p *pending) {
	switch p.phase {
	case asking:
		h.ask(p, item{kind: itemWant})
	case telling:
		it := item{kind: itemFail, number: uint64(p.took.Microseconds()), text: p.net}
		if p.ok {
			it.kind = itemClaim
		}
		if p.owned { // and held: if the control unit does not know that, it is told now
			it.node = h.cfg.Self
		}
		h.ask(p, it)
	case holding:
		h.ask(p, item{kind: itemHold})
	case offering:
		h.offer(p)
	case resting, probing:
		h.toProbe(p, p.round)
	case moving:
		if p.moved == 0 {
			h.turn(p, holding)
		} else { // it may be gone already: what became of it is known when the epoch is settled
			h.schedule(p, h.now.Add(movePatience))
		}
	case queued:
		heap.Remove(&h.queue, p.index)
	}
}

func (h *Hub) ask(p *pending, it item) {
	it.host = p.host
	h.question(it)
	h.schedule(p, h.now.Add(h.cfg.Retry<<min(p.tries, 3)))
	p.tries++
}

// question asks the control unit.
func (h *Hub) question(it item) {
	h.elector.Asked(h.now)
	h.post(h.elector.Leader(), leader.Question, it)
}

// dueNode is when something is due.
func (h *Hub) dueNode() (at time.Time) {
	if !h.alive[h.cfg.Self] {
		return at
	}
	if len(h.queue) > 0 {
		at = h.queue[0].at
	}
	if at = earliest(at, h.agesAt); !h.synced {
		at = earliest(at, h.syncAt)
	}
	return at
}
