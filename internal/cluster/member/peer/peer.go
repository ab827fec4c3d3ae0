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

// The first byte of a message identifies the part that the rest is for.
const (
	kindOverlay = 'o'
	kindMesh    = 'm'
)

// maxKnown bounds the addresses of nodes that are not in the overlay's table.
const maxKnown = 4096

// Config configures a Peer.
type Config struct {
	Overlay overlay.Config
	Mesh    mesh.Config // Self and Overlay are set by New
}

// An Event is an input of a Peer: one of the types below, or an event of mesh that the overlay does not produce (not
// Message, NeighborsChanged, Fresh, NodeGone, Found or Tick). mesh.Leave also has the overlay announce that this node
// leaves.
type Event any

// Join requests to join the network through some nodes: [overlay.Join].
type Join = overlay.Join

// Lost reports that a node cannot be connected: [overlay.Lost].
type Lost = overlay.Lost

// Message is a message of another node's Peer. It may be lost, duplicated or late. The sender From.Node is
// authenticated. The Peer owns Data from then on.
type Message struct {
	From overlay.Contact
	Data []byte
}

// Tick reports that the time of the last Wake has come.
type Tick struct{}

// An Action is an output of a Peer: one of the types below, or an action of mesh other than Send, Find, Suspect and
// Wake.
type Action any

// Send sends a message to a node, once. The node's addresses may be unknown.
type Send struct {
	To   overlay.Contact
	Data []byte
}

// Wake requests a Tick at a time. It replaces the previous Wake, whether that is earlier or later.
type Wake struct{ At time.Time }

// A Peer is a pure state machine. Its methods are called by one goroutine at a time.
type Peer struct {
	overlay *overlay.Overlay
	machine *mesh.Machine
	width   int
	known   *bounded.Recent[strategy.Node, overlay.Contact] // contacts of nodes that were found or have sent messages
	finds   map[uint64]xor.ID
	tag     uint64

	neighbors, scratch []overlay.Contact // neighbors last reported to the machine, and scratch space
	occupied           xor.ID
	timer              time.Time // next timer of the overlay
	wake               time.Time // last Wake of the machine
	armed              time.Time

	toOverlay      []overlay.Event // scratch
	overlayActions []overlay.Action
	toMesh         []mesh.Event
	meshActions    []mesh.Action
}

// New returns a peer without contacts.
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

// Machine returns the node's part in the crawl, for queries only.
func (p *Peer) Machine() *mesh.Machine { return p.machine }

// Overlay returns the node's part in the overlay, for queries only.
func (p *Peer) Overlay() *overlay.Overlay { return p.overlay }

// Start appends the first actions.
func (p *Peer) Start(now time.Time, out []Action) []Action {
	p.meshActions = p.machine.Start(now, p.meshActions[:0])
	return p.run(now, out)
}

// Step processes the events since the last call, in order, and appends the resulting actions, in order, to out.
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

// run steps the overlay and the machine until neither has events for the other.
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

// neighborsChanged reports whether the neighbors or the occupied buckets have changed since they were last reported.
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
			p.toOverlay = append(p.toOverlay,
				overlay.Find{ID: a.ID, Tag: p.tag, Want: a.Count, AcceptReported: true, SkipCache: a.Again})
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

// contact returns a node's contact, with the addresses that are known.
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

// overlayView adapts the overlay to mesh.Overlay.
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
