package node

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"kumo/internal/bus"
	"kumo/internal/strategy"
)

// An termination finds out when the crawl is done. It is the loop's, and the first member's of the table is the one
// that asks.
//
// This is the method of four counters (F. Mattern, Algorithms for distributed termination detection, Distributed
// Computing 2, 1987): all are asked twice, the second time when all have answered the first. It needs but one of the
// counters. A link that is on its way lies in the outbox of who sent it until its receiver has it, so nobody is idle
// while something of his is on its way. If all were idle when they first answered, and nothing has come to any of them
// until they answered again, then at each moment in between all were idle, and nothing was under way.
type termination struct {
	n       *Node
	wave    uint64 // the last one; odd: the first of two
	began   time.Time
	rev     uint64 // of the crawl's record when the first began
	epoch   uint64
	answers map[strategy.Node]idleReport
	before  map[strategy.Node]idleReport // the answers of the first
	writing bool
}

// A idleReport is a node's answer.
type idleReport struct {
	Wave  uint64 `json:"wave"`
	Epoch uint64 `json:"epoch"`
	Came  int64  `json:"came"` // how often something was brought to it
	Idle  bool   `json:"idle"`
}

func newTermination(n *Node) *termination { return &termination{n: n} }

// tally says how it is with this node. What came is counted first: what comes after that finds it changed the next
// time.
func (n *Node) tally() idleReport {
	t := idleReport{Epoch: n.cfg.Router.Epoch(), Came: n.cfg.Engine.Received() + n.links.received.Load() + n.record.came}
	t.Idle = n.record.idle() && n.links.idle() && n.cfg.Engine.Idle() && n.isMember()
	return t
}

func (f *recordWatcher) idle() bool {
	return f.record.State == Running && f.busy.Load() == 0 && f.allAdmitted()
}

// asks reports whether it is this node that asks, and whether the crawl may be done, as far as it knows itself.
func (e *termination) asks() bool {
	t := e.n.member.Table()
	return !e.writing && t != nil && len(t.Members) > 0 && t.Members[0].Node == e.n.self && t.Epoch == t.Settled &&
		e.n.record.record.State == Running && e.n.record.allTaken() && e.n.tally().Idle
}

// look asks all, if there is a reason to, and nobody is being asked.
func (e *termination) look() {
	if !e.asks() {
		e.answers = nil
		return
	}
	if e.answers != nil && time.Since(e.began) < e.n.cfg.Timing.TTL/4 {
		return
	}
	e.wave += 1 + e.wave%2
	e.before, e.rev, e.epoch = nil, e.n.record.rev, e.n.member.Table().Epoch
	e.ask()
}

// ask begins a wave.
func (e *termination) ask() {
	e.began, e.answers = time.Now(), map[strategy.Node]idleReport{}
	q, err := json.Marshal(idleReport{Wave: e.wave})
	if err != nil {
		return
	}
	for _, m := range e.n.member.Table().Members {
		if m.Node != e.n.self {
			e.n.send(m.Node, kindAsk, q)
		}
	}
	own := e.n.tally()
	own.Wave = e.wave
	e.heard(e.n.self, own)
}

// asked answers another node.
func (e *termination) asked(from strategy.Node, data []byte) {
	var q idleReport
	if json.Unmarshal(data, &q) != nil {
		return
	}
	t := e.n.tally()
	t.Wave = q.Wave
	if answer, err := json.Marshal(t); err == nil {
		e.n.send(from, kindTally, answer)
	}
}

func (e *termination) answered(from strategy.Node, data []byte) {
	var t idleReport
	if json.Unmarshal(data, &t) == nil {
		e.heard(from, t)
	}
}

func (e *termination) heard(from strategy.Node, t idleReport) {
	table := e.n.member.Table()
	if e.answers == nil || t.Wave != e.wave {
		return
	}
	if !t.Idle || t.Epoch != e.epoch || table.Epoch != e.epoch || e.before != nil &&
		e.before[from] != (idleReport{t.Wave - 1, t.Epoch, t.Came, true}) {
		e.answers = nil // not yet
		return
	}
	if e.answers[from] = t; len(e.answers) < len(table.Members) {
		return
	}
	if e.before == nil {
		e.before = e.answers
		e.wave++
		e.ask()
		return
	}
	e.answers = nil
	e.done()
}

// done says in the record that the crawl is done, unless that has changed since all were asked.
func (e *termination) done() {
	e.writing = true
	r, rev := e.n.record.record, e.rev
	r.turn(Done, "")
	e.n.tasks.Go(func(ctx context.Context) {
		one, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		if err := (Control{e.n.cfg.Bus}).write(one, r, rev); err != nil && !errors.Is(err, bus.ErrStale) {
			e.n.log.Debug("a write is in doubt", "key", RecordKey, "err", err)
		}
		e.n.call(ctx, func() { e.writing = false })
	})
}
