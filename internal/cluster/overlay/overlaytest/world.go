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

// A World is nodes and a network between them. The same seed gives the same run.
type World struct {
	Config   overlay.Config                      // of the nodes that Start makes: all but Self and Seed
	MinDelay time.Duration                       // that a message takes; 10ms
	MaxDelay time.Duration                       // 300ms
	Delay    func(from, to string) time.Duration // instead of both; may be nil
	Loss     float64                             // share of messages that are lost
	// whether a node can be reached at the addresses that the sender knows of it; nil: always
	Reaches     func(from string, to overlay.Contact) bool
	Messages    int // sent since Reset
	Bytes       int // of these
	Largest     int // bytes of the largest of them
	Refused     int // messages that an overlay refused
	FalseDeaths int // times that a node was taken for dead and lived
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

// A Node is one overlay and what it has said.
type Node struct {
	*overlay.Overlay
	Name  string
	ID    xor.ID
	Alive bool
	Found map[uint64]overlay.Found // by tag
	Table map[string]bool          // as Joined and Gone have told it
	Fresh time.Duration            // until when it has said that what it knows holds
	Addrs []string                 // that a node sees to which it sends something
	// OnFound, if it is set, is told what was found in place of Found.
	OnFound func(overlay.Found)
	// Reply, if it is set, is asked in place of the overlay: a node that lies.
	Reply func(from string, data []byte) []byte

	world *World
	timer time.Duration
	out   []overlay.Action
}

var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// New makes a world without nodes.
func New(seed uint64) *World {
	return &World{MinDelay: 10 * time.Millisecond, MaxDelay: 300 * time.Millisecond,
		rng: rand.New(rand.NewPCG(seed, 0x776f726c64)), nodes: map[string]*Node{}, named: map[xor.ID]bool{}}
}

// Now is the time since the world began.
func (w *World) Now() time.Duration { return w.now }

// Rand is the world's source of randomness.
func (w *World) Rand() *rand.Rand { return w.rng }

// IDOf is the id of a node of this world.
func (w *World) IDOf(node string) xor.ID {
	id := overlay.IDOf(node)
	if w.Config.Width > 0 {
		id = id.Truncate(w.Config.Width)
	}
	return id
}

// Names makes names of nodes whose ids are all different, and other than those of earlier names: as many as are asked
// for, or there are ids.
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

// Start makes a node, and lets it join by some others.
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

// Crash ends a node without a word.
func (w *World) Crash(n *Node) {
	n.Alive = false
	if at, there := w.place(n.ID); there {
		w.live = slices.Delete(w.live, at, at+1)
	}
	delete(w.nodes, n.Name)
}

// Leave lets a node say farewell and go.
func (w *World) Leave(n *Node) {
	n.Handle(overlay.Leave{})
	w.Crash(n)
}

// Live are the nodes that live, sorted by id.
func (w *World) Live() []*Node { return w.live }

// RandomNode is one of them.
func (w *World) RandomNode() *Node { return w.live[w.rng.IntN(len(w.live))] }

// Partition lets messages be lost between nodes for which f is true; nil: between none.
func (w *World) Partition(f func(a, b string) bool) { w.cut = f }

// ByID is the live node with an id, if there is one.
func (w *World) ByID(id xor.ID) *Node {
	if at, there := w.place(id); there {
		return w.live[at]
	}
	return nil
}

// Closest are the n live nodes that are closest to an id, the closest first.
func (w *World) Closest(id xor.ID, n int) []string {
	var best []*Node
	// those that have most first bits as the id has are next to its place in the order of ids; a part of the space
	// around it that holds enough holds the closest
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

// part is where in the order of ids those lie whose first bits are those of an id.
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

// Handle gives events to a node's overlay, and does what it wants done.
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

// Send lets a node send any message.
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

// Reset begins to count messages anew.
func (w *World) Reset() { w.Messages, w.Bytes, w.Largest, w.Steps, w.FalseDeaths = 0, 0, 0, 0, 0 }

// After calls f when a time has passed.
func (w *World) After(d time.Duration, f func()) { w.push(event{at: w.now + d, f: f}) }

// Run lets time pass.
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
