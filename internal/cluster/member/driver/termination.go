package driver

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"kumo/internal/cluster/strategy"
)

// A termination finds out when the crawl is done. The first member is the one that asks.
//
// This is the method of four counters (F. Mattern, Algorithms for distributed termination detection, Distributed
// Computing 2, 1987): all are asked twice, the second time when all have answered the first. It needs but one of the
// counters. A link that is on its way lies in the outbox of who sent it until its receiver has it, so nobody is idle
// while something of his is on its way. If all were idle when they first answered, and nothing has come to any of them
// until they answered again, then at each moment in between all were idle, and nothing was under way. A process that
// begins counts from 0; so an answer names the process, and both of a node's must be of the same.
type termination struct {
	wave    uint64 // the last one; odd: the first of two
	began   time.Time
	rev     uint64 // of the crawl's record when the first began
	epoch   uint64
	answers map[strategy.Node]idleReport
	before  map[strategy.Node]idleReport // the answers of the first
	again   time.Time                    // not before that is asked anew: somebody was not idle
	writing bool

	asker strategy.Node // who asked this node when it was not idle, and has not been told that it is
	asked uint64        // in which wave
}

// An idleReport is a node's answer.
type idleReport struct {
	Wave    uint64 `json:"wave"`
	Epoch   uint64 `json:"epoch"`
	Process uint64 `json:"process"` // another for each: Came begins anew with it
	Came    int64  `json:"came"`    // how often something was brought to it
	Idle    bool   `json:"idle"`
	Turned  bool   `json:"turned,omitempty"` // nobody asked: it was not idle when it was asked, and now it is
}

// idleReport says how it is with this node. What came is counted first: what comes after that finds it changed the next
// time.
func (d *Driver) idleReport() idleReport {
	c := &d.cfg
	r := idleReport{Process: c.Seed, Came: c.Engine.Received() + d.links.received.Load() + c.Record.Received()}
	all := c.Member.Members()
	r.Epoch = all.Epoch
	r.Idle = c.Record.Idle() && d.links.idle() && c.Engine.Idle() &&
		slices.ContainsFunc(all.Members, func(m strategy.Member) bool { return m.Node == c.Self })
	return r
}

// Idle reports whether this node has nothing to do, as far as the crawl's end goes.
func (d *Driver) Idle() bool { return d.idleReport().Idle }

// asks reports whether it is this node that asks, and whether the crawl may be done, as far as it knows itself, and at
// which revision of its record.
func (d *Driver) asks() (revision uint64, ok bool) {
	all := d.cfg.Member.Members()
	if d.end.writing || len(all.Members) == 0 || all.Members[0].Node != d.cfg.Self || all.Epoch != all.Settled {
		return 0, false
	}
	revision, ok = d.cfg.Record.Seeded()
	return revision, ok && d.Idle()
}

// LookForEnd asks all whether they are idle, if there is a reason to, and nobody is being asked; a node that was asked
// when it was not idle says when it is. It is called again and again: the more often, the sooner the end is found. Who
// is not idle, or of another epoch, is asked once in half a beat.
func (d *Driver) LookForEnd() {
	e := &d.end
	d.sayTurned()
	revision, ok := d.asks()
	if !ok {
		e.answers, e.again = nil, time.Time{}
		return
	}
	now := d.cfg.Runtime.Now()
	if e.answers != nil && now.Sub(e.began) < d.cfg.Timing.TTL/4 || now.Before(e.again) {
		return
	}
	e.wave += 1 + e.wave%2
	e.before, e.rev, e.epoch = nil, revision, d.cfg.Member.Members().Epoch
	d.askAll()
}

// sayTurned tells who asked that this node is idle by now.
func (d *Driver) sayTurned() {
	e := &d.end
	if e.asker == "" {
		return
	}
	own := d.idleReport()
	if !own.Idle {
		return
	}
	own.Wave, own.Turned = e.asked, true
	if says, err := json.Marshal(own); err == nil {
		d.cfg.Runtime.Send(e.asker, KindTally, says)
	}
	e.asker = ""
}

// askAll begins a wave.
func (d *Driver) askAll() {
	e := &d.end
	e.began, e.answers = d.cfg.Runtime.Now(), map[strategy.Node]idleReport{}
	q, err := json.Marshal(idleReport{Wave: e.wave})
	if err != nil {
		return
	}
	for _, m := range d.cfg.Member.Members().Members {
		if m.Node != d.cfg.Self {
			d.cfg.Runtime.Send(m.Node, KindAsk, q)
		}
	}
	own := d.idleReport()
	own.Wave = e.wave
	d.heard(d.cfg.Self, own)
}

// termination takes a question or an answer of another node.
func (d *Driver) termination(ctx context.Context, from strategy.Node, kind Kind, data []byte) {
	d.cfg.Runtime.Call(ctx, func() {
		var r idleReport
		if json.Unmarshal(data, &r) != nil {
			return
		}
		if kind == KindTally {
			d.heard(from, r)
			return
		}
		own := d.idleReport()
		own.Wave = r.Wave
		if d.end.asker = ""; !own.Idle {
			d.end.asker, d.end.asked = from, r.Wave
		}
		if answer, err := json.Marshal(own); err == nil {
			d.cfg.Runtime.Send(from, KindTally, answer)
		}
	})
}

func (d *Driver) heard(from strategy.Node, r idleReport) {
	e, all := &d.end, d.cfg.Member.Members()
	switch {
	case r.Turned:
		e.again = time.Time{}
		return
	case e.answers == nil || r.Wave != e.wave:
		return
	}
	if !r.Idle || r.Epoch != e.epoch || all.Epoch != e.epoch || e.before != nil &&
		e.before[from] != (idleReport{r.Wave - 1, r.Epoch, r.Process, r.Came, true, false}) {
		e.answers = nil                    // not yet
		if !r.Idle || r.Epoch != e.epoch { // whom something has come to meanwhile may have done it by now
			e.again = e.began.Add(d.cfg.Timing.Beat / 2)
		}
		return
	}
	if e.answers[from] = r; len(e.answers) < len(all.Members) {
		return
	}
	if e.before == nil {
		e.before = e.answers
		e.wave++
		d.askAll()
		return
	}
	e.answers = nil
	e.writing = true
	write := d.cfg.Record.Finish(e.rev)
	d.cfg.Runtime.Go(func(ctx context.Context) {
		write(ctx)
		d.cfg.Runtime.Call(ctx, func() { e.writing = false })
	})
}
