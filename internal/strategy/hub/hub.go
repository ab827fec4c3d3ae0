package hub

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"kumo/internal/strategy"
)

// A Hub is the strategy of one node. It is not safe for concurrent use; its views are.
type Hub struct {
	cfg     Config
	now     time.Time
	out     []strategy.Action
	mails   []mail
	mailAt  map[mailKey]int
	posted  uint64 // mails
	epoch   uint64
	settled uint64
	calm    time.Time                   // since when the epoch is settled
	changed time.Time                   // when somebody came or went, the last time
	members []strategy.Node             // sorted
	alive   map[strategy.Node]bool      // the same
	gone    map[strategy.Node]uint64    // who is none any more, by the epoch under which that was first so
	joined  map[strategy.Node]time.Time // when members came, of those that came while this process knew of others
	coming  []strategy.Node             // nodes that are about to be members

	term    uint64        // the highest control unit's that was heard of
	control strategy.Node // whom to ask
	seq     uint64        // of the last answer in that term

	node
	reads      int         // that were asked for, and whose end was not told
	controller *controller // this node's part as control unit or as one who would be; nil if it is neither
	wake       [lastTimer]time.Time
}

// Timers.
const (
	nodeTimer uint64 = iota
	unitTimer
	lastTimer
)

var _ strategy.Strategy = (*Hub)(nil)

// New returns the strategy of a node that knows nothing yet. What it owned in an earlier process the control unit tells
// it.
func New(cfg Config) *Hub {
	h := &Hub{cfg: cfg.withDefaults(), mailAt: map[mailKey]int{}, alive: map[strategy.Node]bool{},
		gone:   map[strategy.Node]uint64{},
		joined: map[strategy.Node]time.Time{}}
	h.node = newNode(h)
	return h
}

// Step takes the events since the last call and appends the actions that it wants done.
func (h *Hub) Step(now time.Time, in []strategy.Event, out []strategy.Action) []strategy.Action {
	h.now, h.out = now, out
	for _, e := range in {
		h.take(e)
	}
	h.advance()
	for range 16 { // words to itself come back in the same step, and may be answered there
		if !h.deliver() {
			break
		}
		h.advance()
	}
	h.publish()
	h.plan()
	out, h.out = h.out, nil
	return out
}

func (h *Hub) do(a strategy.Action) { h.out = append(h.out, a) }

func (h *Hub) take(e strategy.Event) {
	switch e := e.(type) {
	case strategy.Members:
		h.setMembers(e)
	case strategy.Wanted:
		h.wanted(e.Hosts)
	case strategy.Held:
		h.held(e.Hosts)
	case strategy.Surveyed:
		h.surveyed = true
	case strategy.Whole:
		h.whole = max(h.whole, e.Epoch)
	case strategy.Reached:
		h.reached(e)
	case strategy.Load:
		h.load(e)
	case strategy.Coming:
		h.coming = e.Nodes
	case strategy.Spared:
		h.spared(e.Queues)
	case strategy.Message:
		h.message(e)
	case strategy.Fired:
		if e.Timer < lastTimer {
			h.wake[e.Timer] = time.Time{}
		}
	case strategy.Persisted, strategy.Logged, strategy.AtEnd:
		if _, end := e.(strategy.AtEnd); end {
			h.reads--
		}
		if h.controller != nil {
			h.controller.told(e)
		}
	}
}

// setMembers takes a new list of members in.
func (h *Hub) setMembers(e strategy.Members) {
	if e.Epoch < h.epoch {
		return
	}
	if was := h.epoch == h.settled; e.Epoch == e.Settled && (!was || e.Epoch != h.epoch) {
		h.calm = h.now
	}
	h.epoch, h.settled = e.Epoch, max(e.Settled, h.settled)
	was := h.alive
	if !slices.EqualFunc(h.members, e.Members, func(n strategy.Node, m strategy.Member) bool { return n == m.Node }) {
		h.changed = h.now
	}
	h.members, h.alive = h.members[:0:0], make(map[strategy.Node]bool, len(e.Members))
	for _, m := range e.Members {
		h.members = append(h.members, m.Node)
		h.alive[m.Node] = true
		delete(h.gone, m.Node)
		if len(was) > 0 && !was[m.Node] {
			h.joined[m.Node] = h.now
			h.kept = kept{} // what others did not want it may
		}
	}
	for n := range was {
		if !h.alive[n] {
			h.gone[n] = e.Epoch
			delete(h.joined, n)
			h.forgetNode(n)
		}
	}
	if was[h.cfg.Self] != h.alive[h.cfg.Self] {
		h.begin()
	}
	h.moved(e.Moves)
	h.elect()
}

// elect sees to it that this node has a part as control unit if it is one of those who would be.
func (h *Hub) elect() {
	switch rank := slices.Index(h.members[:min(len(h.members), standbys)], h.cfg.Self); {
	case rank >= 0 && h.controller == nil:
		h.controller = newController(h, rank)
	case rank >= 0:
		h.controller.rank = rank
	case h.controller != nil && !h.controller.leading:
		h.controller = nil
	}
	if h.controller != nil && !h.alive[h.cfg.Self] {
		h.controller = nil // given up for dead, or leaving: another one does it
	}
	if !h.alive[h.control] {
		h.control = ""
	}
}

// standbys is how many members keep the control unit's table, one of which is it.
const standbys = 3

func (h *Hub) message(e strategy.Message) {
	m, err := parseMessage(e.Data)
	if err != nil {
		return
	}
	switch m.kind {
	case msgAsk:
		if h.controller != nil && h.controller.sure() {
			h.controller.asked(e.From, m.items)
		} else if h.control != "" && h.control != h.cfg.Self {
			h.post(e.From, msgNotMe, item{kind: itemOwner, node: h.control})
		}
	case msgAnswer:
		// what an earlier control unit has said the present one says again
		if m.term < h.term || m.term == h.term && m.seq <= h.seq {
			return
		}
		h.follow(e.From, m.term)
		h.seq = m.seq
		h.answered(m.items)
	case msgBeat:
		if m.term >= h.term {
			h.follow(e.From, m.term)
			if h.controller != nil {
				h.controller.heard = h.now
			}
		}
	case msgNotMe:
		if m.term >= h.term && len(m.items) == 1 && h.alive[m.items[0].node] {
			h.follow(m.items[0].node, m.term)
		}
	}
}

// follow notes who is the control unit.
func (h *Hub) follow(n strategy.Node, term uint64) {
	if h.control == n && h.term == term {
		return
	}
	if h.controller != nil && h.controller.leading && term > h.controller.led {
		h.controller.depose()
	}
	if term > h.term {
		h.seq = 0
	}
	h.control, h.term = n, term
	h.soon()
}

func (h *Hub) advance() {
	if h.controller != nil {
		h.controller.advance()
	}
	h.advanceNode()
}

// plan asks to be woken when something is due.
func (h *Hub) plan() {
	h.wakeAt(nodeTimer, h.dueNode())
	if h.controller != nil {
		h.wakeAt(unitTimer, h.controller.due())
	}
}

func (h *Hub) wakeAt(timer uint64, at time.Time) {
	if at.IsZero() {
		return
	}
	if least := h.now.Add(5 * time.Millisecond); at.Before(least) {
		at = least
	}
	if w := h.wake[timer]; !w.IsZero() && w.After(h.now) && !at.Before(w) {
		return // it is woken before
	}
	h.wake[timer] = at
	h.do(strategy.Timer{Timer: timer, At: at})
}

// String says what the node has not settled, for who looks for the reason why.
func (h *Hub) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: control unit %s, term %d, synced %v, surveyed %v, whole %d, booked %d, unbooked %d, probing %d\n",
		h.cfg.Self, h.control, h.term,
		h.synced, h.surveyed, h.whole, h.booked, h.unbooked, h.probing)
	for _, host := range slices.Sorted(maps.Keys(h.pending)) {
		p := h.pending[host]
		fmt.Fprintf(&b, "  %s: phase %d, holds %v, owned %v, books %v, round %d, tries %d, to %s, moved %d, in %v\n", host,
			p.phase, p.holds, p.owned, p.books, p.round,
			p.tries, p.to, p.moved, p.at.Sub(h.now))
	}
	if u := h.controller; u != nil {
		fmt.Fprintf(&b, "  unit: leading %v, led %d, last %d by %v, reading %v, persisting %v, doubt %v, batches %d, "+
			"trials %d\n", u.leading, u.led, u.last, u.wrote,
			u.reading, u.persisting, u.doubt, len(u.batches), len(u.searches))
	}
	return b.String()
}
