// Package peer implements a node of a mesh as one state machine.
//
// It combines the node's part in the overlay ([kumo/internal/cluster/overlay]) with its part in the crawl
// ([kumo/internal/cluster/member/mesh]). It passes events between the two, and encodes the messages of both to other
// nodes as messages of one kind. Its caller, a real or a simulated node, provides transport, time and disk.
package peer

import (
	"slices"
	"time"

	"kumo/internal/base/bounded"
	"kumo/internal/base/xor"
	"kumo/internal/cluster/member/mesh"
	"kumo/internal/cluster/overlay"
	"kumo/internal/cluster/strategy"
)

// The first byte of a message says whose the rest is.
const (
	kindOverlay = 'o'
	kindMesh    = 'm'
)

// maxKnown is how many nodes' addresses are kept that are not in the overlay's table.
const maxKnown = 4096

// Config is what a Peer is made of.
type Config struct {
	Overlay overlay.Config
	Mesh    mesh.Config // Self and Overlay are set by New
}

// An Event is something that a Peer is told: one of the types below, or one of mesh's, but for those that the overlay
// tells (Message, Neighbours, Fresh, Gone, Found, Tick). mesh.Leave has the overlay say farewell, too.
type Event any

// Join asks to become part of the network by way of some nodes: [overlay.Join].
type Join = overlay.Join

// Lost says that no connection to a node can be had: [overlay.Lost].
type Lost = overlay.Lost

// Message is what another node's Peer has sent. It may be lost, come twice, or late. That From.Node has sent it is
// proved. Data is the Peer's from then on.
type Message struct {
	From overlay.Contact
	Data []byte
}

// Tick says that time has passed: after Wake.
type Tick struct{}

// An Action is something that a Peer wants done: one of the types below, or one of mesh's but for Send, Find, Doubt and
// Wake.
type Action any

// Send sends a message to a node, once. The node's addresses may be unknown.
type Send struct {
	To   overlay.Contact
	Data []byte
}

// Wake asks for a Tick at a time, which may be later or sooner than was asked for before: that is replaced.
type Wake struct{ At time.Time }

// A Peer is a pure state machine. Its methods are called by one goroutine at a time.
type Peer struct {
	overlay *overlay.Overlay
	machine *mesh.Machine
	width   int
	known   *bounded.Recent[strategy.Node, overlay.Contact] // where nodes are that were found
	finds   map[uint64]xor.ID
	tag     uint64

	neighbors, scratch []overlay.Contact // neighbours when the machine was told of some, and scratch
	occupied           xor.ID
	timer              time.Time // the overlay's
	wake               time.Time // the machine's
	armed              time.Time

	toOverlay      []overlay.Event // scratch
	overlayActions []overlay.Action
	toMesh         []mesh.Event
	meshActions    []mesh.Action
}

// New makes a peer that knows nobody yet.
func New(cfg Config) *Peer {
	p := &Peer{overlay: overlay.New(cfg.Overlay), finds: map[uint64]xor.ID{}, width: cfg.Overlay.Width,
		known: bounded.NewRecent[strategy.Node, overlay.Contact](maxKnown)}
	cfg.Mesh.Self, cfg.Mesh.Overlay, cfg.Mesh.Width = strategy.Node(
		cfg.Overlay.Self.Node,
	), &overlayView{
		Overlay: p.overlay,
	},
		p.width
	p.machine = mesh.New(cfg.Mesh)
	return p
}

// Machine is the part of the crawl. It is to be asked only, and told nothing.
func (p *Peer) Machine() *mesh.Machine { return p.machine }

// Overlay is the place in the network. It is to be asked only, and told nothing.
func (p *Peer) Overlay() *overlay.Overlay { return p.overlay }

// Start appends what is to be done first.
func (p *Peer) Start(now time.Time, out []Action) []Action {
	p.meshActions = p.machine.Start(now, p.meshActions[:0])
	return p.run(now, out)
}

// Step takes the events since the last call, in order, and appends the actions it wants done, in order, to out.
func (p *Peer) Step(now time.Time, events []Event, out []Action) []Action {
	for _, e := range events {
		switch e := e.(type) {
		case Message:
			p.message(e)
		case overlay.Event:
			p.toOverlay = append(p.toOverlay, e)
		case Tick:
			p.armed = time.Time{}
		case mesh.Leave:
			p.toOverlay = append(p.toOverlay, overlay.Leave{})
			p.toMesh = append(p.toMesh, e)
		case mesh.Event:
			p.toMesh = append(p.toMesh, e)
		}
	}
	if !p.timer.IsZero() && !p.timer.After(now) {
		p.timer = time.Time{}
		p.toOverlay = append(p.toOverlay, overlay.Fired{})
	}
	if !p.wake.IsZero() && !p.wake.After(now) {
		p.wake = time.Time{}
		p.toMesh = append(p.toMesh, mesh.Tick{})
	}
	return p.run(now, out)
}

func (p *Peer) message(e Message) {
	if len(e.Data) == 0 {
		return
	}
	switch data := e.Data[1:]; e.Data[0] {
	case kindOverlay:
		p.toOverlay = append(p.toOverlay, overlay.Message{From: e.From, Data: data})
	case kindMesh:
		p.toMesh = append(p.toMesh, mesh.Message{From: strategy.Node(e.From.Node), Data: data})
		if len(e.From.Addrs) > 0 {
			p.known.Put(strategy.Node(e.From.Node), e.From)
		}
	}
}

// run lets both go on until neither has anything to say to the other.
func (p *Peer) run(now time.Time, out []Action) []Action {
	for first := true; first || len(p.toOverlay)+len(p.toMesh)+len(p.meshActions) > 0; first = false {
		if first || len(p.toOverlay) > 0 {
			p.overlayActions = p.overlay.Step(now, p.toOverlay, p.overlayActions[:0])
			clear(p.toOverlay)
			p.toOverlay = p.toOverlay[:0]
			out = p.fromOverlay(out)
		}
		if len(p.toMesh) > 0 {
			p.meshActions = p.machine.Step(now, p.toMesh, p.meshActions)
			clear(p.toMesh)
			p.toMesh = p.toMesh[:0]
		}
		out = p.fromMesh(out)
	}
	at := p.timer
	if at.IsZero() || !p.wake.IsZero() && p.wake.Before(at) {
		at = p.wake
	}
	if !at.IsZero() && !at.Equal(p.armed) {
		p.armed = at
		out = append(out, Wake{at})
	}
	return out
}

func (p *Peer) fromOverlay(out []Action) []Action {
	changed := false
	for _, a := range p.overlayActions {
		switch a := a.(type) {
		case overlay.Send:
			out = append(out, Send{a.To, frame(kindOverlay, a.Data)})
		case overlay.Timer:
			p.timer = a.At
		case overlay.Found:
			id := p.finds[a.Tag]
			delete(p.finds, a.Tag)
			nodes := make([]strategy.Node, len(a.Closest))
			for i, c := range a.Closest {
				nodes[i] = strategy.Node(c.Node)
				if len(c.Addrs) > 0 {
					p.known.Put(nodes[i], c)
				}
			}
			p.toMesh = append(p.toMesh, mesh.Found{ID: id, Nodes: nodes})
		case overlay.Joined:
			changed = true
		case overlay.Removed:
			changed = true
			if a.Dead {
				p.toMesh = append(p.toMesh, mesh.NodeGone{Node: strategy.Node(a.Node), Left: a.Left, Near: a.Near})
			}
		case overlay.Fresh:
			p.toMesh = append(p.toMesh, mesh.Fresh{Until: a.Until})
		}
	}
	clear(p.overlayActions)
	if changed && p.neighborsChanged() {
		p.toMesh = append(p.toMesh, mesh.NeighborsChanged{})
	}
	return out
}

// neighborsChanged reports whether this node has other neighbours than it had, or others may be closer to what it was closest to.
func (p *Peer) neighborsChanged() bool {
	p.scratch = p.overlay.Neighbors(p.scratch[:0])
	occupied := p.overlay.Occupied()
	same := func(a, b overlay.Contact) bool { return a.ID == b.ID }
	if occupied == p.occupied && slices.EqualFunc(p.scratch, p.neighbors, same) {
		return false
	}
	p.occupied, p.neighbors, p.scratch = occupied, p.scratch, p.neighbors
	return true
}

func (p *Peer) fromMesh(out []Action) []Action {
	for _, a := range p.meshActions {
		switch a := a.(type) {
		case mesh.Send:
			out = append(out, Send{p.contact(a.To), frame(kindMesh, a.Data)})
		case mesh.Find:
			p.tag++
			p.finds[p.tag] = a.ID
			p.toOverlay = append(
				p.toOverlay,
				overlay.Find{ID: a.ID, Tag: p.tag, Want: a.Count, AcceptReported: true, SkipCache: a.Again},
			)
		case mesh.Suspect:
			p.toOverlay = append(p.toOverlay, overlay.Suspect{Node: string(a.Node)})
		case mesh.Wake:
			p.wake = a.At
		default:
			out = append(out, a)
		}
	}
	clear(p.meshActions)
	p.meshActions = p.meshActions[:0]
	return out
}

// contact is a node with its addresses, as far as they are known.
func (p *Peer) contact(n strategy.Node) overlay.Contact {
	if c, ok := p.known.Get(n); ok {
		return c
	}
	if c, ok := p.overlay.Contact(string(n)); ok {
		return c
	}
	return overlay.Contact{Node: string(n)}
}

func frame(whose byte, data []byte) []byte {
	return append(append(make([]byte, 0, 1+len(data)), whose), data...)
}

// overlayView is the overlay as the machine asks it.
type overlayView struct {
	*overlay.Overlay
	contacts []overlay.Contact // scratch
}

func (a *overlayView) Closest(id xor.ID, n int) ([]strategy.Node, bool) {
	var exact bool
	a.contacts, exact = a.Overlay.Closest(id, n, a.contacts[:0])
	return a.nodes(), exact
}

func (a *overlayView) Bucket(index int) []strategy.Node {
	a.contacts = a.Overlay.Bucket(index, a.contacts[:0])
	return a.nodes()
}

func (a *overlayView) Neighbors() []strategy.Node {
	a.contacts = a.Overlay.Neighbors(a.contacts[:0])
	return a.nodes()
}

func (a *overlayView) nodes() []strategy.Node {
	nodes := make([]strategy.Node, len(a.contacts))
	for i, c := range a.contacts {
		nodes[i] = strategy.Node(c.Node)
	}
	return nodes
}
