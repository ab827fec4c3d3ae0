// Package overlaytest simulates networks of overlays in virtual time, with message delays and losses.
//
// It serves the tests of overlay and of packages above it, and experiments with many nodes.
package overlaytest

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"kumo/internal/base/xor"
	"kumo/internal/cluster/overlay"
)

// A World is a set of nodes and a network between them. The same seed gives the same run.
type World struct {
	Config   overlay.Config                      // of nodes created by Start, except Self and Seed
	MinDelay time.Duration                       // delay of a message; 10ms
	MaxDelay time.Duration                       // 300ms
	Delay    func(from, to string) time.Duration // replaces MinDelay and MaxDelay; may be nil
	Loss     float64                             // share of lost messages
	// reports whether a node can be reached at the addresses that the sender has; nil: always
	Reaches     func(from string, to overlay.Contact) bool
	Messages    int // messages since Reset
	Bytes       int // total of their bytes
	Largest     int // bytes of the largest of them
	Refused     int // messages refused by an overlay
	FalseDeaths int // live nodes that were taken for dead
	Steps       int

	rng    *rand.Rand
	now    time.Duration
	seq    uint64
	events events
	nodes  map[string]*Node
	named  map[xor.ID]bool
	live   []*Node // sorted by id
	cut    func(a, b string) bool
}

// A Node is one overlay and its results.
type Node struct {
	*overlay.Overlay
	Name  string
	ID    xor.ID
	Alive bool
	Found map[uint64]overlay.Found // by tag
	Table map[string]bool          // contacts, according to Joined and Removed
	Fresh time.Duration            // end of the time given by the last Fresh
	Addrs []string                 // addresses that receivers of its messages see
	// OnFound, if set, is called with results instead of storing them in Found.
	OnFound func(overlay.Found)
	// Reply, if set, answers instead of the overlay, to simulate a malicious node.
	Reply func(from string, data []byte) []byte

	world *World
	timer time.Duration
	out   []overlay.Action
}

var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// New returns a world without nodes.
func New(seed uint64) *World {
	return &World{MinDelay: 10 * time.Millisecond, MaxDelay: 300 * time.Millisecond,
		rng: rand.New(rand.NewPCG(seed, 0x776f726c64)), nodes: map[string]*Node{}, named: map[xor.ID]bool{}}
}

// Now returns the time since the world began.
func (w *World) Now() time.Duration { return w.now }

// Rand returns the world's source of randomness.
func (w *World) Rand() *rand.Rand { return w.rng }

// IDOf returns the id of a node of this world.
func (w *World) IDOf(node string) xor.ID {
	id := overlay.IDOf(node)
	if w.Config.Width > 0 {
		id = id.Truncate(w.Config.Width)
	}
	return id
}

// Names returns n new node names whose ids are all different and unused; fewer if the space has fewer ids.
func (w *World) Names(n int) (names []string) {
	if w.Config.Width > 0 && w.Config.Width < 20 {
		n = min(n, 1<<w.Config.Width-len(w.named))
	}
	for len(names) < n {
		name := fmt.Sprintf("n%d", w.rng.Uint32())
		if id := w.IDOf(name); !w.named[id] {
			w.named[id] = true
			names = append(names, name)
		}
	}
	return names
}

// Start creates a node and lets it join through the nodes by.
func (w *World) Start(name string, by ...string) *Node {
	cfg := w.Config
	cfg.Self = overlay.Contact{Node: name}
	cfg.Seed = w.rng.Uint64()
	n := &Node{Overlay: overlay.New(cfg), Name: name, ID: w.IDOf(name), Alive: true, world: w,
		Found: map[uint64]overlay.Found{}, Table: map[string]bool{}}
	w.nodes[name] = n
	at, _ := w.place(n.ID)
	w.live = slices.Insert(w.live, at, n)
	contacts := make([]overlay.Contact, len(by))
	for i, b := range by {
		contacts[i].Node = b
	}
	n.Handle(overlay.Join{Contacts: contacts})
	return n
}

func (w *World) place(id xor.ID) (int, bool) {
	return slices.BinarySearchFunc(w.live, id, func(n *Node, id xor.ID) int {
		switch {
		case n.ID == id:
			return 0
		case n.ID.Less(id):
			return -1
		}
		return 1
	})
}

// Crash stops a node without a farewell.
func (w *World) Crash(n *Node) {
	n.Alive = false
	if at, there := w.place(n.ID); there {
		w.live = slices.Delete(w.live, at, at+1)
	}
	delete(w.nodes, n.Name)
}

// Leave lets a node send a farewell and stop.
func (w *World) Leave(n *Node) {
	n.Handle(overlay.Leave{})
	w.Crash(n)
}

// Live returns the live nodes, sorted by id.
func (w *World) Live() []*Node { return w.live }

// RandomNode returns a random live node.
func (w *World) RandomNode() *Node { return w.live[w.rng.IntN(len(w.live))] }

// Partition drops messages between nodes for which f returns true; nil ends it.
func (w *World) Partition(f func(a, b string) bool) { w.cut = f }

// ByID returns the live node with an id; nil if there is none.
func (w *World) ByID(id xor.ID) *Node {
	if at, there := w.place(id); there {
		return w.live[at]
	}
	return nil
}

// Closest returns the n live nodes closest to an id, the closest first.
func (w *World) Closest(id xor.ID, n int) []string {
	var best []*Node
	// Nodes that share the longest prefix with id are next to it in the order of ids. A part of the space around it
	// with at least n nodes contains the closest.
	lo, hi := 0, len(w.live)
	for bit := 0; bit < xor.Bits && hi-lo > 0; bit++ {
		l, h := w.part(id, bit+1)
		if h-l < n {
			break
		}
		lo, hi = l, h
	}
	for _, node := range w.live[lo:hi] {
		i := len(best)
		for i > 0 && xor.Compare(node.ID, best[i-1].ID, id) < 0 {
			i--
		}
		if i < n {
			best = slices.Insert(best, i, node)
			best = best[:min(len(best), n)]
		}
	}
	names := make([]string, len(best))
	for i, node := range best {
		names[i] = node.Name
	}
	return names
}

// part returns the range of live nodes whose ids share a prefix with id.
func (w *World) part(id xor.ID, bits int) (lo, hi int) {
	first := id.Truncate(bits)
	lo, _ = w.place(first)
	last := first
	for i := range last {
		switch left := bits - 8*i; {
		case left <= 0:
			last[i] = 0xff
		case left < 8:
			last[i] |= 0xff >> left
		}
	}
	hi, there := w.place(last)
	if there {
		hi++
	}
	return lo, hi
}

// Handle passes events to a node's overlay, and executes its actions.
func (n *Node) Handle(in ...overlay.Event) {
	w := n.world
	w.Steps++
	n.out = n.Step(began.Add(w.now), in, n.out[:0])
	for _, a := range n.out {
		switch a := a.(type) {
		case overlay.Send:
			if w.Reaches == nil || w.Reaches(n.Name, a.To) {
				w.send(n.Name, a.To.Node, a.Data)
			}
		case overlay.Timer:
			n.timer = a.At.Sub(began)
			w.push(event{at: n.timer, node: n})
		case overlay.Found:
			if n.OnFound != nil {
				n.OnFound(a)
				continue
			}
			n.Found[a.Tag] = a
		case overlay.Joined:
			n.Table[a.Contact.Node] = true
		case overlay.Removed:
			delete(n.Table, a.Node)
			if a.Dead && w.nodes[a.Node] != nil {
				w.FalseDeaths++
			}
		case overlay.Fresh:
			n.Fresh = a.Until.Sub(began)
		case overlay.Refused:
			w.Refused++
		}
	}
	clear(n.out)
}

// Send sends an arbitrary message from a node.
func (n *Node) Send(to string, data []byte) { n.world.send(n.Name, to, data) }

func (w *World) send(from, to string, data []byte) {
	w.Messages++
	w.Bytes += len(data)
	w.Largest = max(w.Largest, len(data))
	if w.Loss > 0 && w.rng.Float64() < w.Loss || w.cut != nil && w.cut(from, to) {
		return
	}
	d := w.MinDelay
	if w.Delay != nil {
		d = w.Delay(from, to)
	} else if w.MaxDelay > w.MinDelay {
		d += time.Duration(w.rng.Int64N(int64(w.MaxDelay - w.MinDelay)))
	}
	w.push(event{at: w.now + d, from: from, to: to, data: data})
}

// Reset resets the message counters.
func (w *World) Reset() { w.Messages, w.Bytes, w.Largest, w.Steps, w.FalseDeaths = 0, 0, 0, 0, 0 }

// After calls f after a time.
func (w *World) After(d time.Duration, f func()) { w.push(event{at: w.now + d, f: f}) }

// Run advances the time.
func (w *World) Run(d time.Duration) {
	for until := w.now + d; ; {
		if len(w.events) == 0 || w.events[0].at > until {
			w.now = until
			return
		}
		e := heap.Pop(&w.events).(event)
		w.now = max(w.now, e.at)
		switch {
		case e.f != nil:
			e.f()
		case e.node != nil:
			if e.node.Alive && e.node.timer == e.at {
				e.node.Handle(overlay.Fired{})
			}
		default:
			w.deliver(e)
		}
	}
}

func (w *World) deliver(e event) {
	n := w.nodes[e.to]
	switch {
	case n == nil:
	case n.Reply != nil:
		if data := n.Reply(e.from, e.data); data != nil {
			n.Send(e.from, data)
		}
	default:
		from := overlay.Contact{Node: e.from}
		if f := w.nodes[e.from]; f != nil {
			from.Addrs = f.Addrs
		}
		n.Handle(overlay.Message{From: from, Data: e.data})
	}
}

func (w *World) push(e event) {
	w.seq++
	e.seq = w.seq
	heap.Push(&w.events, e)
}

// An event is a message, a timer, or a call.
type event struct {
	at       time.Duration
	seq      uint64
	node     *Node
	from, to string
	data     []byte
	f        func()
}

type events []event

func (h events) Len() int { return len(h) }
func (h events) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].seq < h[j].seq
}
func (h events) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *events) Push(x any)   { *h = append(*h, x.(event)) }
func (h *events) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = event{}
	*h = old[:len(old)-1]
	return e
}
