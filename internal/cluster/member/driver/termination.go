package driver

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"kumo/internal/cluster/strategy"
)

// A termination guards the detection of the crawl's end. The first member asks all others.
//
// This is the method of four counters (F. Mattern, Algorithms for distributed termination detection, Distributed
// Computing 2, 1987): all are asked twice, the second time when all have answered the first. It needs but one of the
// counters. A link that is on its way lies in the outbox of who sent it until its receiver has it, so nobody is idle
// while something of his is on its way. If all were idle when they first answered, and nothing has come to any of them
// until they answered again, then at each moment in between all were idle, and nothing was under way. A process that
// begins counts from 0; so an answer names the process, and both of a node's must be of the same.
type termination struct {
	cfg   *Config
	links *links

	wave         uint64 // the last one; odd: the first of two
	began        time.Time
	rev          uint64 // of the crawl's record when the first began
	epoch        uint64
	answers      map[strategy.Node]idleReport
	firstAnswers map[strategy.Node]idleReport // the answers of the first
	retryAt      time.Time                    // not before that is asked anew: somebody was not idle
	writing      bool

	waitingAsker strategy.Node // who asked this node when it was not idle, and has not been told that it is
	askedWave    uint64        // in which wave
}

// An idleReport is a node's answer, or a question with its Wave alone.
type idleReport struct {
	Wave       uint64 `json:"wave"`
	Epoch      uint64 `json:"epoch"`
	Process    uint64 `json:"process"` // another for each: Came begins anew with it
	Activity   int64  `json:"came"`    // how often something was brought to it
	Idle       bool   `json:"idle"`
	BecameIdle bool   `json:"turned,omitempty"` // nobody asked: it was not idle when it was asked, and now it is
}

// report returns this node's answer. Arrivals are counted first, so that the next answer counts those that come
// meanwhile.
func (e *termination) report() idleReport {
	c := e.cfg
	r := idleReport{Process: c.Seed, Activity: c.Engine.Received() + e.links.received.Load() + c.Record.Received()}
	all := c.Member.Members()
	r.Epoch = all.Epoch
	r.Idle = c.Record.Idle() && e.links.idle() && c.Engine.Idle() &&
		slices.ContainsFunc(all.Members, func(m strategy.Member) bool { return m.Node == c.Self })
	return r
}

// mayAsk reports whether this node is the one that asks, and the crawl may be done as far as it knows. revision is that of
// the crawl's record.
func (e *termination) mayAsk() (revision uint64, ok bool) {
	all := e.cfg.Member.Members()
	if e.writing || len(all.Members) == 0 || all.Members[0].Node != e.cfg.Self || all.Epoch != all.Settled {
		return 0, false
	}
	revision, ok = e.cfg.Record.Seeded()
	return revision, ok && e.report().Idle
}

// detect asks all members whether they are idle, if the crawl may be done and no question is under way. A node that was
// not idle when it was asked reports when it is.
func (e *termination) detect() {
	e.reportIdle()
	revision, ok := e.mayAsk()
	if !ok {
		e.answers, e.retryAt = nil, time.Time{}
		return
	}
	now := e.cfg.Runtime.Now()
	if e.answers != nil && now.Sub(e.began) < e.cfg.Timing.TTL/4 || now.Before(e.retryAt) {
		return
	}
	e.wave += 1 + e.wave%2
	e.firstAnswers, e.rev, e.epoch = nil, revision, e.cfg.Member.Members().Epoch
	e.askAll()
}

// reportIdle reports to the node that asked that this one has become idle.
func (e *termination) reportIdle() {
	if e.waitingAsker == "" {
		return
	}
	own := e.report()
	if !own.Idle {
		return
	}
	own.Wave, own.BecameIdle = e.askedWave, true
	if says, err := json.Marshal(own); err == nil {
		e.cfg.Runtime.Send(e.waitingAsker, KindIdleReport, says)
	}
	e.waitingAsker = ""
}

func (e *termination) askAll() {
	e.began, e.answers = e.cfg.Runtime.Now(), map[strategy.Node]idleReport{}
	q, err := json.Marshal(idleReport{Wave: e.wave})
	if err != nil {
		return
	}
	for _, m := range e.cfg.Member.Members().Members {
		if m.Node != e.cfg.Self {
			e.cfg.Runtime.Send(m.Node, KindIdleQuery, q)
		}
	}
	own := e.report()
	own.Wave = e.wave
	e.applyReport(e.cfg.Self, own)
}

// message applies a question or an answer of another node.
func (e *termination) message(ctx context.Context, from strategy.Node, kind Kind, data []byte) {
	e.cfg.Runtime.Call(ctx, func() {
		var r idleReport
		if json.Unmarshal(data, &r) != nil {
			return
		}
		if kind == KindIdleReport {
			e.applyReport(from, r)
			return
		}
		own := e.report()
		own.Wave = r.Wave
		if e.waitingAsker = ""; !own.Idle {
			e.waitingAsker, e.askedWave = from, r.Wave
		}
		if answer, err := json.Marshal(own); err == nil {
			e.cfg.Runtime.Send(from, KindIdleReport, answer)
		}
	})
}

func (e *termination) applyReport(from strategy.Node, r idleReport) {
	all := e.cfg.Member.Members()
	switch {
	case r.BecameIdle:
		e.retryAt = time.Time{}
		return
	case e.answers == nil || r.Wave != e.wave:
		return
	}
	if !r.Idle || r.Epoch != e.epoch || all.Epoch != e.epoch || e.firstAnswers != nil &&
		e.firstAnswers[from] != (idleReport{r.Wave - 1, r.Epoch, r.Process, r.Activity, true, false}) {
		e.answers = nil
		if !r.Idle || r.Epoch != e.epoch { // a node that has only received something may be idle again
			e.retryAt = e.began.Add(e.cfg.Timing.Beat / 2)
		}
		return
	}
	if e.answers[from] = r; len(e.answers) < len(all.Members) {
		return
	}
	if e.firstAnswers == nil {
		e.firstAnswers = e.answers
		e.wave++
		e.askAll()
		return
	}
	e.answers = nil
	e.writing = true
	write := e.cfg.Record.Finish(e.rev)
	e.cfg.Runtime.Go(func(ctx context.Context) {
		write(ctx)
		e.cfg.Runtime.Call(ctx, func() { e.writing = false })
	})
}
