// Package inproc implements a bus between nodes in one process, with injected faults, for tests.
//
// A Hub delivers the messages. On demand it drops, duplicates and delays messages, partitions nodes, and leaves a
// writer uncertain whether its write succeeded.
package inproc

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/strategy"
)

// Faults are the faults that a Hub injects, drawn from its seed. The zero value injects none.
type Faults struct {
	Drop      float64       // share of messages that are lost
	Duplicate float64       // share of messages that are duplicated
	Delayed   float64       // share of messages, and of duplicates, that are delayed, and so reordered
	Delay     time.Duration // maximum delay
	Uncertain float64       // share of writes that succeed but return bus.ErrUnavailable
}

// A Hub is shared by the nodes of one process: it has the registry and the logs, and delivers messages.
type Hub struct {
	mu      sync.Mutex
	rand    *rand.Rand
	faults  Faults
	nodes   map[strategy.Node]*Bus
	cut     map[strategy.Node]bool // without messages, registry and logs
	denied  map[strategy.Node]bool // without registry and logs
	keys    map[string]bus.Entry   // with deleted keys: watchers receive their revisions
	logs    map[string][]record
	number  uint64        // of the last write
	changed chan struct{} // closed and replaced after each change that watchers could see
}

type record struct {
	number uint64
	data   []byte
}

// New returns a hub that draws its faults from seed.
func New(seed uint64) *Hub {
	return &Hub{
		rand:    rand.New(rand.NewPCG(seed, seed)),
		nodes:   map[strategy.Node]*Bus{},
		cut:     map[strategy.Node]bool{},
		denied:  map[strategy.Node]bool{},
		keys:    map[string]bus.Entry{},
		logs:    map[string][]record{},
		changed: make(chan struct{}),
	}
}

// Join returns the bus of a node. Messages to a node go to the bus that joined last.
func (h *Hub) Join(node strategy.Node) (*Bus, error) {
	if err := bus.CheckNode(node); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	b := &Bus{hub: h, node: node, inbox: make(chan message, inboxSize)}
	b.ctx, b.end = context.WithCancel(context.Background())
	h.nodes[node] = b
	return b, nil
}

// SetFaults replaces the faults to inject.
func (h *Hub) SetFaults(f Faults) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.faults = f
}

// Partition separates a node from all others, the registry and the logs, or reconnects it.
func (h *Hub) Partition(node strategy.Node, off bool) { h.set(h.cut, node, off) }

// DenyRegistry separates a node from the registry and the logs, or reconnects it. Messages are not affected.
func (h *Hub) DenyRegistry(node strategy.Node, off bool) { h.set(h.denied, node, off) }

func (h *Hub) set(which map[strategy.Node]bool, node strategy.Node, off bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	which[node] = off
	h.wake()
}

// wake notifies watchers. mu is held.
func (h *Hub) wake() {
	close(h.changed)
	h.changed = make(chan struct{})
}

// checkReachable returns an error if a node cannot reach the registry and the logs. mu is held.
func (h *Hub) checkReachable(node strategy.Node) error {
	if h.cut[node] || h.denied[node] {
		return fmt.Errorf("%s is cut off: %w", node, bus.ErrUnavailable)
	}
	return nil
}

// maybeUncertain sometimes returns an error for a write that has succeeded. mu is held.
func (h *Hub) maybeUncertain() error {
	if h.faults.Uncertain > 0 && h.rand.Float64() < h.faults.Uncertain {
		return fmt.Errorf("the answer was lost: %w", bus.ErrUnavailable)
	}
	return nil
}

// send delivers, drops or duplicates a message.
func (h *Hub) send(m message, to strategy.Node) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cut[m.from] || h.chance(h.faults.Drop) {
		return
	}
	m.data = bytes.Clone(m.data)
	h.deliver(m, to)
	if h.chance(h.faults.Duplicate) {
		h.deliver(m, to)
	}
}

func (h *Hub) chance(share float64) bool { return share > 0 && h.rand.Float64() < share }

// deliver enqueues a message, now or later. mu is held.
func (h *Hub) deliver(m message, to strategy.Node) {
	if !h.chance(h.faults.Delayed) || h.faults.Delay <= 0 {
		h.enqueue(m, to)
		return
	}
	time.AfterFunc(time.Duration(h.rand.Int64N(int64(h.faults.Delay))), func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.enqueue(m, to)
	})
}

// enqueue adds a message to its receiver's inbox, if there is a receiver, and room. mu is held.
func (h *Hub) enqueue(m message, to strategy.Node) {
	b := h.nodes[to]
	if b == nil || h.cut[to] {
		return
	}
	select {
	case b.inbox <- m:
	default:
	}
}
