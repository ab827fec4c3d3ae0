package driver

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"kumo/internal/cluster/strategy"
)

// A termination detects the end of the crawl. The first member queries all others.
//
// It uses the method of four counters (F. Mattern, Algorithms for distributed termination detection, Distributed
// Computing 2, 1987) with only one of the four counters. All nodes are queried twice, the second time after all have
// answered the first query. A link in transit stays in the sender's outbox until the receiver has it, so a node is not
// idle while something it sent is in transit. Suppose that all nodes were idle when they first answered, and that none
// has received anything before its second answer. Then at each moment in between all nodes were idle, and nothing was
// in transit. A new process counts from 0. So an answer names the process, and both answers of a node must come from
// the same process.
type termination struct {
	cfg   *Config
	links *links

	wave         uint64 // the last one; odd: the first query of a pair
	began        time.Time
	rev          uint64 // of the crawl's record when the first query began
	epoch        uint64
	answers      map[strategy.Node]idleReport
	firstAnswers map[strategy.Node]idleReport // answers to the first query
	retryAt      time.Time                    // earliest time of the next query: a node was not idle
	writing      bool

	waitingAsker strategy.Node // node that queried this one when it was not idle, and waits for a report
	askedWave    uint64        // wave of that query
}

// An idleReport is a node's answer. With only Wave set it is a query.
type idleReport struct {
	Wave       uint64 `json:"wave"`
	Epoch      uint64 `json:"epoch"`
	Process    uint64 `json:"process"` // differs for each process, as Activity restarts with it
	Activity   int64  `json:"came"`    // number of times that the node received something
	Idle       bool   `json:"idle"`
	BecameIdle bool   `json:"turned,omitempty"` // not an answer: the node was not idle when queried, and is now
}

// report returns this node's answer. It reads Activity first, so that the next answer counts what arrives while it
// reads the rest.
func (e *termination) report() idleReport {
	c := e.cfg
	r := idleReport{Process: c.Seed, Activity: c.Engine.Received() + e.links.received.Load() + c.Record.Received()}
	all := c.Member.Members()
	r.Epoch = all.Epoch
	r.Idle = c.Record.Idle() && e.links.idle() && c.Engine.Idle() &&
		slices.ContainsFunc(all.Members, func(m strategy.Member) bool { return m.Node == c.Self })
	return r
}

// mayAsk reports whether this node should send the queries, and the crawl may be done as far as it knows. revision is
// that of the crawl's record.
func (e *termination) mayAsk() (revision uint64, ok bool) {
	all := e.cfg.Member.Members()
	if e.writing || len(all.Members) == 0 || all.Members[0].Node != e.cfg.Self || all.Epoch != all.Settled {
		return 0, false
	}
	revision, ok = e.cfg.Record.Seeded()
	return revision, ok && e.report().Idle
}

// detect queries whether all members are idle, if the crawl may be done and no query is pending. A node that was not
// idle reports when it is.
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
	e.queryAll()
}

// reportIdle reports to the querying node that this one has become idle.
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

func (e *termination) queryAll() {
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

// message processes a query or an answer of another node.
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
		if !r.Idle || r.Epoch != e.epoch { // a node that has only received something may already be idle again
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
		e.queryAll()
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
