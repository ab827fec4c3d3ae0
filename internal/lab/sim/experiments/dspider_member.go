package experiments

import (
	"fmt"
	"slices"
	"time"

	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/central"
	"kumo/internal/cluster/strategy/hub"
)

// What a carrier does for package hub besides: a log that all write, and hosts that move from one living node to
// another by an epoch. Nobody comes, goes or fails in this world, and no message is lost.

// hubs are kumo's own strategies, one of which is the control unit, too. Their times are longer than any way in this
// world, because an answer that is late would be asked for again, and words that only say that the control unit is
// there would hide those that are counted.
func (d *DSpider) hubs(s Setting, nodes []strategy.Node) (all []strategy.Strategy) {
	message, timeout := ticks(d.net(s.Network).Message), ticks(s.Timeout)
	for _, self := range nodes {
		all = append(all, hub.New(hub.Config{Config: central.Config{Self: self, GatherTime: -1, Timeout: timeout,
			MaxTimeout: max(4*timeout, ticks(float64(2*d.Delays))),
			Retry:      4*message + 2*tick, DecisionWait: time.Duration(s.Nodes+2) * (2*message + timeout), Beat: 10_000 * tick,
			Silence: 40_000 * tick}}))
	}
	return all
}

// A membership is the epochs by which hosts move.
type membership struct {
	members          []strategy.Member
	epoch, finalized uint64
	moves            []strategy.Move // under this epoch
	next             []strategy.Move // under the next one
	acked            int             // nodes
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

// startEntry adds an entry to the log, if the writer has read all that is there.
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
		w.after(w.persist, spiderEvent{kind: hDeliver, party: int32(who), event: strategy.LogEntry{Number: i + 1, Data: w.log[i]}})
	}
	w.after(w.persist, spiderEvent{kind: hDeliver, party: int32(who), event: strategy.LogEnd{Last: uint64(len(w.log))}})
}

// handOver moves hosts under the next epoch, which begins when the last one is settled.
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
		return // it had the host already
	}
	to.taken[h] = max(to.taken[h], from.taken[h])
	if !slices.Contains(to.waiting, h) {
		to.waiting = append(to.waiting, h)
	}
	w.deliver(to.id, strategy.Held{Hosts: []string{w.web.names[h]}})
	w.step(to.id)
	w.retryWaiting(to)
}

// acknowledge counts who knows of all that has moved.
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

// A Decider is who decides in kumo's mode.
type Decider uint8

// The deciders.
const (
	ByHub   Decider = iota // package hub, as it runs in a crawl
	ByPlain                // the same rules in their plainest form
)

// deciders are the strategies of a setting's nodes, and last that of a control unit which is none of these.
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
