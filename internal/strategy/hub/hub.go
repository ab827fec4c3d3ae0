package hub

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"kumo/internal/strategy"
	"kumo/internal/strategy/leader"
)

// A Hub is the strategy of one node. It is not safe for concurrent use; its views are.
type Hub struct {
	cfg     Config
	now     time.Time
	out     []strategy.Action
	mails   []mail
	mailAt  map[mailKey]int
	epoch   uint64
	settled uint64
	calm    time.Time                   // since when the epoch is settled
	changed time.Time                   // when somebody came or went, the last time
	members []strategy.Node             // sorted
	alive   map[strategy.Node]bool      // the same
	gone    map[strategy.Node]uint64    // who is none any more, by the epoch under which that was first so
	joined  map[strategy.Node]time.Time // when members came, of those that came while this process knew of others
	coming  []strategy.Node             // nodes that are about to be members

	node
	elector    *leader.Elector
	controller *controller // this node's part as control unit or as one who would be; nil if it is neither
	wake       [lastTimer]time.Time
}

// Timers.
const (
	nodeTimer uint64 = iota
	controllerTimer
	lastTimer
)

var _ strategy.Strategy = (*Hub)(nil)

// New returns the strategy of a node that knows nothing yet. What it owned in an earlier process the control unit tells
// it.
func New(cfg Config) *Hub {
	h := &Hub{cfg: cfg.withDefaults(), mailAt: map[mailKey]int{}, alive: map[strategy.Node]bool{},
		gone:   map[strategy.Node]uint64{},
		joined: map[strategy.Node]time.Time{}}
	h.elector = leader.New(leader.Config{Self: h.cfg.Self, Beat: h.cfg.Beat, Silence: h.cfg.Silence, Retry: h.cfg.Retry,
		Do: h.do, Changed: h.soon, Replica: func() leader.Replica {
			h.controller = newController(h)
			return h.controller
		}})
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
		h.elector.Take(h.now, e)
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
	if h.elector.SetMembers(h.now, h.epoch, h.members); !h.elector.Candidate() {
		h.controller = nil
	}
}

func (h *Hub) message(e strategy.Message) {
	kind, rest := h.elector.Receive(h.now, e)
	items, err := parseItems(rest)
	switch {
	case err != nil:
	case kind == leader.Question:
		h.controller.asked(e.From, items)
	case kind == leader.Answer:
		h.answered(items)
	}
}

func (h *Hub) advance() {
	if h.elector.Advance(h.now); h.elector.Leads() {
		h.controller.advance()
	}
	h.advanceNode()
}

// plan asks to be woken when something is due.
func (h *Hub) plan() {
	h.wakeAt(nodeTimer, h.dueNode())
	at := h.elector.Due()
	if h.elector.Leads() {
		at = earliest(at, h.controller.due())
	}
	h.wakeAt(controllerTimer, at)
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
	fmt.Fprintf(&b, "%s: %v, synced %v, surveyed %v, whole %d, acknowledged %d, unacknowledged %d, probing %d\n",
		h.cfg.Self, h.elector, h.synced, h.surveyed, h.whole, h.acknowledged, h.unacknowledged, h.probing)
	for _, host := range slices.Sorted(maps.Keys(h.pending)) {
		p := h.pending[host]
		fmt.Fprintf(&b, "  %s: phase %d, holds %v, owned %v, needsAck %v, round %d, tries %d, to %s, moved %d, in %v\n", host,
			p.phase, p.holds, p.owned, p.needsAck, p.round,
			p.tries, p.to, p.moved, p.at.Sub(h.now))
	}
	if u := h.controller; u != nil {
		fmt.Fprintf(&b, "  unit: batches %d, searches %d\n", len(u.batches), len(u.searches))
	}
	return b.String()
}
