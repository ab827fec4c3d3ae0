package experiments

import (
	"fmt"
	"slices"
	"time"

	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/central"
	"kumo/internal/cluster/strategy/hub"
)

// This file simulates the parts of a cluster that package hub needs: a shared log, and epochs by which hosts move
// between living nodes. No node joins, leaves or fails, and no message is lost.

// hubs returns kumo's real strategies; one node is also the control unit. Their timeouts are longer than any delay
// here: otherwise late answers would be requested again, and heartbeats of the control unit would drown the messages
// that are counted.
func (d *DSpider) hubs(s Setting, nodes []strategy.Node) (all []strategy.Strategy) {
	message, timeout := ticks(d.net(s.Network).Message), ticks(s.Timeout)
	for _, self := range nodes {
		all = append(all, hub.New(hub.Config{Config: central.Config{Self: self, GatherTime: -1, Timeout: timeout,
			RetryTimeout: max(4*timeout, ticks(float64(2*d.Delays))),
			Retry:        4*message + 2*tick,
			DecisionWait: time.Duration(s.Nodes+2) * (2*message + timeout),
			Beat:         10_000 * tick, Silence: 40_000 * tick}}))
	}
	return all
}

// A membership has the epochs by which hosts move.
type membership struct {
	members          []strategy.Member
	epoch, finalized uint64
	moves            []strategy.Move // in this epoch
	next             []strategy.Move // in the next epoch
	acked            int             // nodes that have acknowledged the epoch
}

func newMembership(names []strategy.Node) (m membership) {
	for i, n := range names {
		m.members = append(m.members, strategy.Member{Node: n, Slot: i})
	}
	m.epoch, m.finalized = 1, 1
	return m
}

func (m *membership) event() strategy.Members {
	return strategy.Members{Epoch: m.epoch, Settled: m.finalized, Members: m.members, Moves: m.moves}
}

// write appends an entry to the log if the writer has read all earlier ones.
func (w *spiderWorld) write(who int, a strategy.Persist) {
	e := strategy.Persisted{ID: a.ID, State: strategy.Stale}
	if a.After == uint64(len(w.log)) {
		w.log = append(w.log, slices.Clone(a.Data))
		e.State, e.Number = strategy.Durable, uint64(len(w.log))
	}
	w.after(w.persist, spiderEvent{kind: hDeliver, party: int32(who), event: e})
}

func (w *spiderWorld) read(who int, after uint64) {
	for i := after; i < uint64(len(w.log)); i++ {
		w.after(w.persist, spiderEvent{kind: hDeliver, party: int32(who), event: strategy.LogEntry{Number: i + 1,
			Data: w.log[i]}})
	}
	w.after(w.persist, spiderEvent{kind: hDeliver, party: int32(who), event: strategy.LogEnd{Last: uint64(len(w.log))}})
}

// handOver adds moves to the next epoch, which begins when the current one is finalized.
func (w *spiderWorld) handOver(who int, a strategy.HandOver) {
	for _, h := range a.Hosts {
		w.member.next = append(w.member.next, strategy.Move{Host: h, From: w.name(who), To: a.To})
	}
	w.nextEpoch()
}

func (w *spiderWorld) nextEpoch() {
	m := &w.member
	if m.epoch != m.finalized || len(m.next) == 0 {
		return
	}
	m.epoch++
	m.moves, m.next, m.acked = m.next, nil, 0
	w.announce(m.event(), w.message)
	for _, move := range m.moves {
		w.after(2*w.message, spiderEvent{kind: hMoved, party: int32(w.index[move.To]), host: w.hosts[move.Host],
			place: int32(w.index[move.From])})
	}
	w.announce(strategy.TransfersComplete{Epoch: m.epoch}, 2*w.message)
}

func (w *spiderWorld) announce(e strategy.Event, after time.Duration) {
	for i := range w.nodes {
		w.after(after, spiderEvent{kind: hDeliver, party: int32(i), event: e})
	}
}

func (w *spiderWorld) moved(from, to *spiderNode, h int32) {
	from.waiting = slices.DeleteFunc(from.waiting, func(o int32) bool { return o == h })
	to.known[h] = true
	if to.listed[h] {
		return // it already had the host
	}
	to.taken[h] = max(to.taken[h], from.taken[h])
	if !slices.Contains(to.waiting, h) {
		to.waiting = append(to.waiting, h)
	}
	w.deliver(to.id, strategy.Held{Hosts: []string{w.web.names[h]}})
	w.step(to.id)
	w.retryWaiting(to)
}

// acknowledge counts the nodes that know all moves of the epoch, and finalizes it after the last.
func (w *spiderWorld) acknowledge(epoch uint64) {
	m := &w.member
	if epoch != m.epoch || m.epoch == m.finalized {
		return
	}
	if m.acked++; m.acked < len(w.nodes) {
		return
	}
	m.finalized, m.moves = m.epoch, nil
	w.announce(m.event(), w.message)
	w.nextEpoch()
}

// A Decider selects the strategy in kumo's mode.
type Decider uint8

// The deciders.
const (
	ByHub   Decider = iota // the real package hub
	ByPlain                // the same rules in their simplest form
)

// deciders returns the strategies of all nodes, then that of a separate control unit, if there is one.
func (d *DSpider) deciders(s Setting, nodes []strategy.Node, control strategy.Node) (all []strategy.Strategy) {
	timeout := ticks(s.Timeout)
	switch {
	case s.Mode == AsPaper:
		for _, self := range nodes {
			all = append(all, &paperNode{knownOwners{}, self, control, timeout})
		}
		return append(all, &paperControl{knownOwners{}, nodes})
	case d.Decider == ByPlain:
		for _, self := range nodes {
			all = append(all, &plainNode{knownOwners{}, self, control})
		}
		return append(all, newPlainControl(nodes, timeout))
	}
	return d.hubs(s, nodes)
}

func nodeName(i int) strategy.Node { return strategy.Node(fmt.Sprintf("node%04d~1", i)) }

const controlName strategy.Node = "control~1"
