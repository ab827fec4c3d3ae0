package hub

import (
	"container/heap"
	"maps"
	"slices"
	"time"

	"kumo/internal/strategy"
	"kumo/internal/varint"
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

	synced   bool // all that is this node's by the control unit's table is known
	cursor   uint64
	syncAt   time.Time
	survey   bool // asked for
	surveyed bool
	whole    uint64 // the epoch that is to be booked
	booked   uint64
	unbooked int // hosts held of which the control unit does not know

	askedAt time.Time // what has no answer yet was asked for then; zero: there is no such
	tries   int       // of others since then
}

// A phase is how far a host is that is not settled.
type phase uint8

const (
	asking  phase = iota // whose it is
	queued               // to be probed
	probing              // it is
	telling              // the control unit, what came of that
	holding              // telling that it is held here
	resting              // nobody reaches it; it will be probed again
	moving               // it goes to its owner
)

// A pending is a host that is not settled.
type pending struct {
	host  string
	phase phase
	holds bool  // what is known of it is here
	owned bool  // by this node, which is not known to reach it
	books bool  // the control unit does not know that it is held
	round uint8 // of probes, by all nodes
	ok    bool  // it was reached
	took  time.Duration
	net   string
	to    strategy.Node // its owner
	moved uint64        // the epoch under which it goes there
	tries uint8
	at    time.Time
	index int // in the queue; -1: not in it
}

// maxForeign is how many hosts of others a generation has, of which there are two.
const maxForeign = 1 << 16

// foreignAge is how long a generation takes at most.
const foreignAge = 5 * time.Minute

// movePatience is how long is waited for a host to move.
const movePatience = time.Minute

func newNode(h *Hub) node {
	return node{view: &view{self: h.cfg.Self}, numbers: map[strategy.Node]uint32{}, pending: map[string]*pending{}, timeout: h.cfg.Timeout}
}

// View is whose hosts are, as this node knows it.
func (h *Hub) View() strategy.View { return h.view }

// Facts are what the node tells people.
func (h *Hub) Facts() strategy.Facts {
	return strategy.Facts{Control: h.control, Leads: h.unit != nil && h.unit.leading, Timeout: h.timeout, Owned: h.granted, Parked: h.parked,
		Unsettled: len(h.pending)}
}

func (h *Hub) publish() {
	if h.dirty {
		h.dirty = false
		h.view = &view{self: h.cfg.Self, own: h.own, foreign: h.foreign, nodes: h.nodes}
		h.do(strategy.Changed{})
	}
}

// grant makes a host this node's.
func (h *Hub) grant(host string, value uint32) {
	k := key(host)
	if was, known := h.own.get(k); known && was == value {
		return
	}
	if was, known := h.own.get(k); known && was == ownParked {
		h.parked--
	}
	if value == ownParked {
		h.parked++
	}
	var added bool
	if h.own, added = h.own.set(k, value); added {
		h.granted++
	}
	h.dirty = true
}

// yield makes a host another's.
func (h *Hub) yield(host string, to strategy.Node) {
	k := key(host)
	if value, mine := h.own.get(k); mine {
		if h.granted--; value == ownParked {
			h.parked--
		}
		h.own, _ = h.own.without(k)
		h.dirty = true
	}
	if !h.alive[to] {
		return // or this node does not know it yet: it will ask again
	}
	n, known := h.numbers[to]
	if !known {
		n = uint32(len(h.nodes))
		h.numbers[to] = n
		h.nodes = append(h.nodes, to)
	}
	if v, known := h.foreign[0].get(k); known && v == n {
		return
	}
	if h.young >= maxForeign {
		h.age()
	}
	if h.agesAt.IsZero() {
		h.agesAt = h.now.Add(foreignAge)
	}
	var added bool
	if h.foreign[0], added = h.foreign[0].set(k, n); added {
		h.young++
	}
	h.dirty = true
}

// age begins a new generation of what is known of others' hosts. Who has no links to a host is not told that it has another owner; in the end
// nobody believes in the one before.
func (h *Hub) age() {
	if h.foreign[0] != nil || h.foreign[1] != nil {
		h.dirty = true
	}
	h.foreign[1], h.foreign[0], h.young = h.foreign[0], nil, 0
	h.agesAt = time.Time{}
	if h.foreign[1] != nil {
		h.agesAt = h.now.Add(foreignAge)
	}
}

// disown forgets whose a host is that is another's.
func (h *Hub) disown(host string) {
	k := key(host)
	for i := range h.foreign {
		var was bool
		if h.foreign[i], was = h.foreign[i].without(k); was {
			h.dirty = true
		}
	}
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
		h.disown(host)
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
		if !p.books {
			p.books = true
			h.unbooked++
		}
	}
}

func (h *Hub) add(host string, ph phase) *pending {
	p := &pending{host: host, index: -1}
	h.pending[host] = p
	h.turn(p, ph)
	return p
}

// turn gives a host another phase, of which the first thing is done at once.
func (h *Hub) turn(p *pending, ph phase) {
	if p.phase == probing && ph != probing {
		h.probing--
	}
	p.phase, p.tries = ph, 0
	h.schedule(p, h.now)
}

func (h *Hub) schedule(p *pending, at time.Time) {
	p.at = at
	if p.index < 0 {
		heap.Push(&h.queue, p)
	} else {
		heap.Fix(&h.queue, p.index)
	}
}

// drop ends a host's pending: it is settled.
func (h *Hub) drop(p *pending) {
	h.book(p)
	if p.phase == probing {
		h.probing--
	}
	p.phase = asking
	if p.index >= 0 {
		heap.Remove(&h.queue, p.index)
	}
	delete(h.pending, p.host)
}

// book notes that the control unit knows that a host is held here.
func (h *Hub) book(p *pending) {
	if p.books {
		p.books = false
		h.unbooked--
	}
}

// toProbe has a host probed when it is its turn.
func (h *Hub) toProbe(p *pending, round uint8) {
	h.turn(p, queued)
	p.round = round
	if p.index >= 0 {
		heap.Remove(&h.queue, p.index)
	}
	h.probes = append(h.probes, p)
}

// probeTimeout is how long is waited for a host.
func (h *Hub) probeTimeout(round uint8) time.Duration {
	return min(h.timeout<<min(round, 10), max(h.cfg.Most, h.timeout))
}

func (h *Hub) startProbes() {
	for h.probing < h.cfg.Probes && len(h.probes) > 0 {
		p := h.probes[0]
		h.probes[0] = nil
		h.probes = h.probes[1:]
		if p.phase != queued || h.pending[p.host] != p {
			continue
		}
		p.phase = probing
		h.probing++
		t := h.probeTimeout(p.round)
		h.schedule(p, h.now.Add(2*t+movePatience)) // it is answered long before
		h.do(strategy.Probe{Host: p.host, Timeout: t})
	}
	if len(h.probes) == 0 {
		h.probes = nil
	}
}

func (h *Hub) reached(e strategy.Reached) {
	p := h.pending[e.Host]
	if p == nil || p.phase != probing {
		return
	}
	p.ok, p.took, p.net = e.OK, e.Connect, e.Network
	if !e.OK && h.cfg.FetchFirst && !p.owned {
		h.yield(p.host, "")
	}
	h.turn(p, telling)
}

// load adapts the timeout: who has little to do takes hosts that are farther away, who has much leaves them to others.
func (h *Hub) load(e strategy.Load) {
	switch least, most := h.cfg.Least, 2*h.cfg.Timeout; {
	case e.Node != h.cfg.Self:
	case e.Busy < 0.5:
		h.timeout = min(h.timeout+h.timeout/16, most)
	case e.Busy > 0.9:
		h.timeout = max(h.timeout-h.timeout/16, least)
	}
}

// bury forgets whose hosts were a dead node's.
func (h *Hub) bury(dead strategy.Node) {
	if n, known := h.numbers[dead]; known {
		h.nodes = slices.Clone(h.nodes)
		h.nodes[n] = ""
		delete(h.numbers, dead)
		h.dirty = true
	}
}

// moved is told which hosts change hands.
func (h *Hub) moved(moves []strategy.Move) {
	for _, m := range moves {
		if m.From != h.cfg.Self {
			h.disown(m.Host)
		}
	}
	for _, m := range moves {
		if p := h.pending[m.Host]; m.From == h.cfg.Self && p != nil && p.phase == moving && p.moved == 0 {
			p.moved = h.epoch
		}
	}
	for _, host := range h.movingHosts() {
		switch p := h.pending[host]; {
		case p.moved > 0 && h.settled >= p.moved:
			if h.drop(p); !h.alive[p.to] { // it went to an heir, or stays
				h.survey, h.surveyed = false, false
			}
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
	h.probes, h.probing, h.unbooked = nil, 0, 0
	h.synced, h.cursor, h.syncAt, h.survey, h.surveyed = false, 0, h.now, false, false
}

// advanceNode does what is due.
func (h *Hub) advanceNode() {
	if !h.alive[h.cfg.Self] {
		return
	}
	h.seek()
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
	if h.whole > h.booked && h.synced && h.surveyed && h.unbooked == 0 {
		h.booked = h.whole
		h.do(strategy.Booked{Epoch: h.whole})
	}
}

// seek finds somebody to ask: while the control unit does not answer, one after the other of those who may be it.
func (h *Hub) seek() {
	first := h.members[:min(len(h.members), standbys)]
	if len(first) == 0 || h.control != "" && (h.askedAt.IsZero() || h.now.Sub(h.askedAt) < 4*h.cfg.Retry) {
		return
	}
	h.control = first[h.tries%len(first)]
	h.tries++
	h.askedAt = time.Time{}
}

// soon asks the control unit, another one perhaps, all that has no answer yet.
func (h *Hub) soon() {
	h.askedAt, h.syncAt = time.Time{}, h.now
	for _, p := range slices.Clone(h.queue) {
		if (p.phase == asking || p.phase == telling || p.phase == holding) && p.tries > 0 {
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
		h.ask(p, it)
	case holding:
		h.ask(p, item{kind: itemHold})
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
	if h.askedAt.IsZero() {
		h.askedAt = h.now
	}
	h.post(h.control, msgAsk, it)
}

// dueNode is when something is due.
func (h *Hub) dueNode() (at time.Time) {
	if !h.alive[h.cfg.Self] {
		return at
	}
	if len(h.queue) > 0 {
		at = h.queue[0].at
	}
	if at.IsZero() || !h.agesAt.IsZero() && h.agesAt.Before(at) {
		at = h.agesAt
	}
	if !h.synced && (at.IsZero() || h.syncAt.Before(at)) {
		at = h.syncAt
	}
	return at
}

// answered takes the control unit's answers in.
func (h *Hub) answered(items []item) {
	h.askedAt, h.tries = time.Time{}, 0
	if !h.alive[h.cfg.Self] {
		return
	}
	var lost map[strategy.Node][]string
	for i := range items {
		it := &items[i]
		if it.kind == itemList {
			h.listed(it)
			continue
		}
		if it.kind == itemOwner && it.node == h.cfg.Self {
			it.kind = itemYours
		}
		if h.settle(it) {
			if lost == nil {
				lost = map[strategy.Node][]string{}
			}
			lost[it.node] = append(lost[it.node], it.host)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(lost)) {
		h.do(strategy.HandOver{Hosts: lost[n], To: n})
	}
}

// settle takes an answer in, and reports whether the host is to be handed over to the item's node.
func (h *Hub) settle(it *item) bool {
	p := h.pending[it.host]
	switch it.kind {
	case itemYours:
		h.grant(it.host, ownGranted)
		if p != nil {
			h.drop(p)
		}
	case itemOwner:
		if v, mine := h.own.get(key(it.host)); mine && v == ownGranted && p == nil {
			p = h.add(it.host, asking)
			p.holds = true
		}
		h.yield(it.host, it.node)
		if p == nil {
			return false
		}
		h.book(p)
		if !p.holds {
			h.drop(p)
			return false
		}
		if p.phase == moving && p.to == it.node {
			return false
		}
		h.turn(p, moving)
		p.to, p.owned, p.moved = it.node, false, 0
		h.schedule(p, h.now.Add(movePatience))
		return true
	case itemWait:
		if p != nil && (p.phase == asking || p.phase == telling || p.phase == holding) {
			p.tries = 0
			h.schedule(p, h.now.Add(millis(it.number)))
		}
	case itemProbe:
		h.askedToProbe(p, it)
	case itemProve:
		p = h.ownParked(p, it.host)
		if p.phase != probing && p.phase != queued && p.phase != resting && p.phase != telling {
			h.toProbe(p, uint8(min(it.number, 20)))
		}
	case itemRest:
		p = h.ownParked(p, it.host)
		if p.phase != resting {
			h.turn(p, resting)
			p.round++
		}
		h.schedule(p, h.now.Add(millis(it.number)))
	}
	return false
}

func millis(n uint64) time.Duration { return time.Duration(min(n, 1<<32)) * time.Millisecond }

// askedToProbe is told that the control unit wants to know whether this node reaches a host.
func (h *Hub) askedToProbe(p *pending, it *item) {
	if p == nil {
		if _, mine := h.own.get(key(it.host)); mine {
			return
		}
		p = h.add(it.host, asking)
	}
	if p.phase == asking {
		h.toProbe(p, uint8(min(it.number, 20)))
	}
}

// ownParked makes a host this node's that it is not known to reach.
func (h *Hub) ownParked(p *pending, host string) *pending {
	h.grant(host, ownParked)
	if p == nil {
		p = h.add(host, asking)
	}
	h.book(p)
	p.owned, p.holds = true, true
	return p
}

// listed takes in what the control unit says is this node's.
func (h *Hub) listed(it *item) {
	if h.synced {
		return
	}
	r := varint.Reader{Rest: []byte(it.text)}
	for len(r.Rest) > 0 && !r.Bad {
		host, parked, round := r.String(), r.Bool(), r.Byte()
		switch {
		case r.Bad:
		case !parked:
			h.settle(&item{kind: itemYours, host: host})
		default:
			h.settle(&item{kind: itemProve, host: host, number: uint64(round)})
		}
	}
	h.cursor = it.number
	h.syncAt = h.now
	h.synced = h.cursor == 0
}

// byTime is a heap of hosts by when they want something.
type byTime []*pending

func (q byTime) Len() int { return len(q) }
func (q byTime) Less(i, j int) bool {
	if !q[i].at.Equal(q[j].at) {
		return q[i].at.Before(q[j].at)
	}
	return q[i].host < q[j].host
}

func (q byTime) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

func (q *byTime) Push(x any) {
	p := x.(*pending)
	p.index = len(*q)
	*q = append(*q, p)
}

func (q *byTime) Pop() any {
	old := *q
	p := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	p.index = -1
	return p
}
