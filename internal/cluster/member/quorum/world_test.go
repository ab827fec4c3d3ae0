package quorum

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
)

// A world is a registry, a network and holders. They answer in an order decided by a seed. It is smaller than the
// simulator: hosts have no URLs.
type world struct {
	t      *testing.T
	rng    *rand.Rand
	now    time.Time
	keys   map[string]member.Entry
	rev    uint64
	nodes  map[strategy.Node]*testNode
	shared map[strategy.Node]map[string]bool   // hosts in each node's log
	came   map[strategy.Node][]member.Transfer // complete transfers to it
	forgot map[strategy.Node][]member.Transfer
	todo   []func()
	late   []echo // messages that will arrive a second time
	keeps  bool   // the strategy is no Placer: hosts stay, except those that are moved
	moved  int    // hosts that were moved
	lossy  bool
	slot   func([]strategy.Member, strategy.Node) int
	wrote  func() // called after each write to the registry; may be nil
	story  []string
}

type testNode struct {
	w      *world
	id     strategy.Node
	m      *Member
	dead   bool
	wake   time.Time
	inbox  []member.Event
	held   []func()
	part   map[member.Transfer]map[string]bool // hosts of incomplete transfers
	reads  map[strategy.Node][]member.Chunk
	ends   []member.Action
	view   *View
	all    bool
	watch  map[string]bool
	joined bool
}

// An echo is a message that arrives again.
type echo struct {
	at time.Time
	do func()
}

// modulo places hosts by the highest hash.
type modulo struct{ strategy.Placer }

type moduloView []strategy.Member

func (modulo) Place(members []strategy.Member) strategy.View {
	return moduloView(slices.Clone(members))
}
func (modulo) Minimal() bool { return true }

func (v moduloView) Owner(host string) (strategy.Node, strategy.State) {
	var t Table
	t.Members = v
	if n := t.takeoverNode(strategy.Node(host)); n != "" {
		return n, strategy.Owned
	}
	return "", strategy.Unknown
}

func newWorld(t *testing.T, seed uint64) *world {
	return &world{t: t, rng: rand.New(rand.NewPCG(seed, 1)), now: time.Unix(1e9, 0), keys: map[string]member.Entry{},
		nodes:  map[strategy.Node]*testNode{},
		shared: map[strategy.Node]map[string]bool{}, came: map[strategy.Node][]member.Transfer{},
		forgot: map[strategy.Node][]member.Transfer{}}
}

func (w *world) add(id strategy.Node, joined bool) *testNode {
	n := &testNode{w: w, id: id, part: map[member.Transfer]map[string]bool{}, reads: map[strategy.Node][]member.Chunk{},
		watch: map[string]bool{TableKey: true}, view: &View{}, joined: joined}
	if w.shared[id] == nil {
		w.shared[id] = map[string]bool{}
	}
	var place strategy.Placer = modulo{}
	if w.keeps {
		place = nil
	}
	n.m = New(Config{Self: id, Instance: w.rng.Uint64() | 1, Joined: joined, Received: w.came[id], Forgotten: w.forgot[id],
		Place: place, Slot: w.slot, Layout: "test", Timing: member.LAN(), Seed: w.rng.Uint64()})
	w.nodes[id] = n
	w.tell("%s begins", id)
	for _, a := range n.m.Start(nil) {
		n.carryOut(a)
	}
	for _, k := range slices.Sorted(maps.Keys(w.keys)) {
		if n.wants(k) {
			n.inbox = append(n.inbox, w.keys[k])
		}
	}
	n.inbox = append(n.inbox, member.Synced{})
	return n
}

func (w *world) tell(format string, args ...any) {
	w.story = append(w.story, w.now.UTC().Format("04:05.0 ")+fmt.Sprintf(format, args...))
}

func (w *world) soon(f func()) { w.todo = append(w.todo, f) }

// hold executes the holder's actions, in order.
func (n *testNode) hold(f func()) {
	n.held = append(n.held, f)
	n.w.soon(func() {
		f := n.held[0]
		n.held = n.held[1:]
		if !n.dead {
			f()
		}
	})
}

func (n *testNode) later(e member.Event) { n.w.soon(func() { n.inbox = append(n.inbox, e) }) }

func (n *testNode) carryOut(a member.Action) {
	w := n.w
	switch a := a.(type) {
	case member.Watch:
		n.all = n.all || slices.Contains(a.Keys, LeasePrefix)
		for _, key := range a.Keys {
			n.watch[key] = true
		}
		for _, k := range slices.Sorted(maps.Keys(w.keys)) {
			switch e := w.keys[k]; {
			case !n.wants(k):
			case strings.HasPrefix(k, MovesPrefix) && k != movesKey(n.id): // long after the node is recovered
				w.late = append(w.late, echo{w.now.Add(time.Duration(w.rng.IntN(5000)) * time.Millisecond),
					func() { n.inbox = append(n.inbox, e) }})
			default:
				n.later(e)
			}
		}
	case member.Write:
		w.soon(func() { w.write(n, a) })
	case member.Send:
		if w.lossy && w.rng.IntN(4) == 0 {
			return
		}
		deliver := func() {
			if to := w.nodes[a.To]; to != nil && !to.dead {
				to.inbox = append(to.inbox, member.Message{From: n.id, Data: a.Data})
			}
		}
		w.soon(deliver)
		if w.rng.IntN(8) == 0 {
			w.late = append(w.late, echo{w.now.Add(time.Duration(w.rng.IntN(30_000)) * time.Millisecond), deliver})
		}
	case member.Publish:
		n.view = a.View.(*View)
	case member.Wake:
		n.wake = a.At
	case member.RecordJoin:
		n.joined = true
		n.later(member.JoinRecorded{})
	case member.Drain:
		n.later(member.Drained{Epoch: a.Epoch})
	case member.Read:
		n.hold(func() { n.read(a) })
	case member.Import:
		n.hold(func() { n.take(a) })
	case member.Drop:
		n.hold(func() {
			for h := range n.part[a.Transfer] {
				w.tell("%s drops %s of %v", n.id, h, a.Transfer)
				delete(w.shared[n.id], h)
			}
			delete(n.part, a.Transfer)
			n.inbox = append(n.inbox, member.Dropped(a))
		})
	case member.Forget:
		n.hold(func() {
			maps.DeleteFunc(w.shared[a.From], func(h string, _ bool) bool {
				// a host is held by one node: none arrives at a node that moves it away
				gone := a.Moved != nil && a.Moved(h, 0)
				if gone {
					w.tell("%s forgets %s of %s, epoch %d, %v", n.id, h, a.From, a.Epoch, a.Completed)
				}
				return gone
			})
			if a.From == n.id {
				w.forgot[n.id] = append(w.forgot[n.id], a.Completed...)
			}
			n.inbox = append(n.inbox, member.Forgotten{From: a.From, Epoch: a.Epoch})
		})
	case member.Recover:
		w.tell("%s folds %s", n.id, a.Node)
		n.hold(func() {
			n.inbox = append(n.inbox, member.Recovered{Node: a.Node, Received: slices.Clone(w.came[a.Node]),
				Forgotten: slices.Clone(w.forgot[a.Node])})
		})
	case member.Flush:
		n.later(member.Flushed(a))
	case member.AllReceived:
		n.later(member.Acknowledged(a))
	case member.AdoptOutbox:
		n.later(member.OutboxAdopted(a))
	case member.Lost, member.Left, member.Failed:
		w.tell("%s ends: %T %+v", n.id, a, a)
		n.ends = append(n.ends, a)
		n.dead = true
	}
}

func (n *testNode) wants(key string) bool {
	return n.watch[key] || n.all && strings.HasPrefix(key, LeasePrefix)
}

func (w *world) write(n *testNode, a member.Write) {
	if n.dead {
		return
	}
	if w.keys[a.Key].Revision != a.Revision && w.keys[a.Key].Value != nil || w.keys[a.Key].Value == nil &&
		a.Revision != 0 {
		n.inbox = append(n.inbox, member.Wrote{Key: a.Key, Err: member.ErrStale})
		return
	}
	w.rev++
	if a.Key == TableKey {
		w.tell("%s writes %s", n.id, a.Value)
	}
	e := member.Entry{Key: a.Key, Value: a.Value, Revision: w.rev}
	w.keys[a.Key] = e
	if w.wrote != nil {
		w.wrote()
	}
	n.inbox = append(n.inbox, member.Wrote{Key: a.Key, Revision: w.rev})
	for _, id := range sortedNodes(w.nodes) {
		if o := w.nodes[id]; o.wants(a.Key) {
			o.later(e)
		}
	}
}

// read returns one host per chunk.
func (n *testNode) read(a member.Read) {
	key := strategy.Node(fmt.Sprint(a.From, a.Epoch, a.Attempt))
	if _, begun := n.reads[key]; !begun {
		n.reads[key] = []member.Chunk{}
		for _, h := range slices.Sorted(maps.Keys(n.w.shared[a.From])) {
			if to := a.Owner(h); to != "" {
				n.reads[key] = append(n.reads[key], member.Chunk{From: a.From, Epoch: a.Epoch, Attempt: a.Attempt, To: to,
					Data: []byte(h)})
			}
		}
	}
	c := member.Chunk{From: a.From, Epoch: a.Epoch, Attempt: a.Attempt}
	if all := n.reads[key]; len(all) > 0 {
		c, n.reads[key] = all[0], all[1:]
	}
	n.inbox = append(n.inbox, c)
}

func (n *testNode) take(a member.Import) {
	if n.part[a.Transfer] == nil {
		n.part[a.Transfer] = map[string]bool{}
	}
	if h := string(a.Data); h != "" {
		n.w.tell("%s takes %s of %v", n.id, h, a.Transfer)
		n.part[a.Transfer][h] = true
		n.w.shared[n.id][h] = true
	}
	if a.Last {
		n.w.tell("%s has the whole of %v", n.id, a.Transfer)
		delete(n.part, a.Transfer)
		n.w.came[n.id] = append(n.w.came[n.id], a.Transfer)
	}
	n.inbox = append(n.inbox, member.Imported{Transfer: a.Transfer, Seq: a.Seq})
}

// kill ends a node. Hosts of incomplete transfers are dropped from its log when it is recovered, or when it comes back.
func (n *testNode) kill() {
	n.dead = true
	n.w.tell("%s is killed", n.id)
	for _, hosts := range n.part {
		for h := range hosts {
			n.w.tell("%s drops %s", n.id, h)
			delete(n.w.shared[n.id], h)
		}
	}
	clear(n.part)
}

// run advances the time by d.
func (w *world) run(d time.Duration) {
	for end := w.now.Add(d); w.now.Before(end); {
		for len(w.todo) > 0 || w.pendingEvents() {
			if len(w.todo) > 0 {
				i := 0
				if w.rng.IntN(3) == 0 { // mostly in order
					i = w.rng.IntN(min(len(w.todo), 8))
				}
				f := w.todo[i]
				w.todo = slices.Delete(w.todo, i, i+1)
				f()
			}
			w.step(false)
		}
		w.now = w.now.Add(100 * time.Millisecond)
		w.late = slices.DeleteFunc(w.late, func(e echo) bool {
			due := !e.at.After(w.now)
			if due {
				w.todo = append(w.todo, e.do)
			}
			return due
		})
		w.step(true)
	}
}

func (w *world) pendingEvents() bool {
	for _, n := range w.nodes {
		if !n.dead && len(n.inbox) > 0 {
			return true
		}
	}
	return false
}

func (w *world) step(ticks bool) {
	for _, id := range sortedNodes(w.nodes) {
		n := w.nodes[id]
		if n.dead || len(n.inbox) == 0 && !(ticks && !n.wake.After(w.now)) {
			continue
		}
		events := n.inbox
		n.inbox = nil
		for _, a := range n.m.Step(w.now, events, nil) {
			n.carryOut(a)
		}
	}
}

// check returns an error at rest unless each host is held by its owner, and by no other node.
func (w *world) check(hosts []string) error {
	var all []error
	var table *Table
	for _, id := range sortedNodes(w.nodes) {
		if n := w.nodes[id]; !n.dead {
			if !n.m.env.table.isFinalized() || !n.m.env.table.has(id) {
				all = append(all, fmt.Errorf("%s: the table is not settled: %+v", id, n.m.env.table))
			}
			table = n.m.env.table
		}
	}
	if table == nil {
		for _, id := range sortedNodes(w.nodes) {
			n := w.nodes[id]
			all = append(all, fmt.Errorf("%s: dead %v, joined %v, ended by %+v", id, n.dead, n.joined, n.ends))
		}
		return errors.Join(append(all, fmt.Errorf("nobody is alive: %s", w.keys[TableKey].Value))...)
	}
	for _, h := range hosts {
		owner, _ := moduloView(table.Members).Owner(h)
		for _, id := range sortedNodes(w.nodes) {
			n := w.nodes[id]
			if n.dead && !table.has(id) {
				continue // it was recovered
			}
			if holds := w.shared[id][h]; holds != (id == owner) {
				all = append(all, fmt.Errorf("%s is %s's; %s has it: %v", h, owner, id, holds))
			}
			if !n.dead && n.view.Ours(h) != (id == owner) {
				all = append(all, fmt.Errorf("%s is %s's; %s says that it is its own: %v", h, owner, id, id != owner))
			}
		}
	}
	return errors.Join(all...)
}
