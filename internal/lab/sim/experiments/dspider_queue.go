package experiments

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"kumo/internal/lab/sim/queue"
)

// A scaleRun is a run of Scale.
type scaleRun struct {
	Scale
	variant Variant
	agenda  queue.Agenda[scaleEvent]
	now     time.Duration
	rng     *rand.Rand
	nodes   []scaleNode
	units   []controlUnit
	owned   []bool // by host
	from    time.Duration
	until   time.Duration
	offers  int
	delays  []time.Duration // of the answers
	pages   float64         // fetched in the measured period
}

// A scaleNode is a node that fetches.
type scaleNode struct {
	pending    int // pages of its hosts that are not fetched yet
	untilFound int // pages to fetch until one names a host; the node has stopped if none is pending
	idle       bool
	gathered   [][]ownerRequest // by control unit: requests that are being batched
}

// An ownerRequest is a node's request for the owner of a host.
type ownerRequest struct {
	node, host int32
	found      time.Duration
	granted    bool
}

// A controlUnit is a processor with a queue of jobs, and a log with a queue of claims.
type controlUnit struct {
	jobs    queue.FIFO[job]
	working bool
	claims  queue.FIFO[ownerRequest]
	writing int // number of claims being written
	worked  time.Duration
	wrote   time.Duration
}

// A job is a message that was received or is to be sent.
type job struct {
	requests []ownerRequest
	answer   bool
}

// A scaleEvent is a scheduled event.
type scaleEvent struct {
	kind     uint8
	who      int32 // node
	unit     int32
	requests []ownerRequest
}

const (
	eHostFound    uint8 = iota // a node has fetched a page that names a host
	eOutOfPages                // a node has fetched all its pages
	eSendGathered              // a node sends its batch of requests
	eArrived                   // requests arrive at a control unit
	eWorked                    // a processor has finished a job
	eWritten                   // a log entry is written
	eAnswered                  // an answer arrives at a node
)

func (s Scale) row(ctx context.Context, nodes int, v Variant) (ScaleRow, error) {
	r := &scaleRun{Scale: s, variant: v, rng: rand.New(rand.NewPCG(s.Seed, uint64(nodes))),
		nodes: make([]scaleNode, nodes),
		units: make([]controlUnit, 1), owned: make([]bool, s.Hosts), from: s.WarmUp, until: s.WarmUp + s.Time}
	if v == Sharded {
		r.units = make([]controlUnit, s.Shards)
	}
	for i := range r.nodes {
		n := &r.nodes[i]
		n.gathered, n.pending = make([][]ownerRequest, len(r.units)), s.Start*s.Pages
		for range s.Start {
			r.owned[r.rng.IntN(s.Hosts)] = true
		}
		n.untilFound = r.drawGap()
		r.fetch(int32(i))
	}
	for i := 0; r.agenda.Next() <= r.until; i++ {
		if i%65536 == 0 && ctx.Err() != nil {
			return ScaleRow{}, ctx.Err()
		}
		r.now = r.agenda.Next()
		r.handle(r.agenda.Take())
	}
	return r.result(), nil
}

// drawGap draws the number of pages until one names a host.
func (r *scaleRun) drawGap() int {
	return 1 + int(r.rng.ExpFloat64()*max(0, 1/r.Found-1))
}

// fetch lets a node fetch until a page names a host or none is left.
func (r *scaleRun) fetch(node int32) {
	n := &r.nodes[node]
	take, what := n.untilFound, eHostFound
	if n.pending < take {
		take, what = n.pending, eOutOfPages
	}
	n.pending -= take
	n.untilFound -= take
	n.idle = take == 0
	if n.idle {
		return
	}
	end := r.now + time.Duration(float64(take)/r.Speed*float64(time.Second))
	r.pages += r.measuredTime(r.now, end).Seconds() * r.Speed
	r.agenda.Put(end, scaleEvent{kind: what, who: node})
}

// measuredTime returns the part of a time range that is in the measured period.
func (r *scaleRun) measuredTime(from, to time.Duration) time.Duration {
	return max(0, min(to, r.until)-max(from, r.from))
}

func (r *scaleRun) handle(e scaleEvent) {
	switch e.kind {
	case eHostFound:
		r.requestOwner(e.who)
		r.nodes[e.who].untilFound = r.drawGap()
		r.fetch(e.who)
	case eOutOfPages:
		r.fetch(e.who)
	case eSendGathered:
		n := &r.nodes[e.who]
		r.send(e.unit, n.gathered[e.unit])
		n.gathered[e.unit] = nil
	case eArrived:
		r.enqueue(e.unit, job{requests: e.requests})
	case eWorked:
		r.finishJob(e.unit)
	case eWritten:
		r.finishEntry(e.unit)
	case eAnswered:
		r.deliverAnswer(e.requests)
	}
}

// requestOwner sends a node's request for a random host, or adds it to its batch.
func (r *scaleRun) requestOwner(node int32) {
	host := int32(r.rng.IntN(r.Hosts))
	w := ownerRequest{node: node, host: host, found: r.now}
	unit := host % int32(len(r.units))
	if r.now >= r.from {
		r.offers++
	}
	if r.variant == Single {
		r.send(unit, []ownerRequest{w})
		return
	}
	asks := &r.nodes[node].gathered[unit]
	*asks = append(*asks, w)
	if len(*asks) == 1 {
		r.agenda.Put(r.now+r.Gather, scaleEvent{kind: eSendGathered, who: node, unit: unit})
	}
}

func (r *scaleRun) send(unit int32, wants []ownerRequest) {
	r.agenda.Put(r.now+r.Delay, scaleEvent{kind: eArrived, unit: unit, requests: wants})
}

func (r *scaleRun) enqueue(unit int32, j job) {
	u := &r.units[unit]
	u.jobs.Push(j)
	r.startJob(unit)
}

// startJob starts the next job if there is one and the processor is free.
func (r *scaleRun) startJob(unit int32) {
	u := &r.units[unit]
	if u.working || u.jobs.Len() == 0 {
		return
	}
	j := u.jobs.First()
	cost := r.Message
	if !j.answer {
		cost += time.Duration(len(j.requests)) * r.Claim
	}
	u.working = true
	u.worked += r.measuredTime(r.now, r.now+cost)
	r.agenda.Put(r.now+cost, scaleEvent{kind: eWorked, unit: unit})
}

// finishJob sends the job's answer, or processes its requests: it answers those for hosts with an owner and writes
// claims for the others.
func (r *scaleRun) finishJob(unit int32) {
	u := &r.units[unit]
	j := u.jobs.Pop()
	u.working = false
	if j.answer {
		r.agenda.Put(r.now+r.Delay, scaleEvent{kind: eAnswered, requests: j.requests})
		r.startJob(unit)
		return
	}
	var known []ownerRequest
	for _, w := range j.requests {
		if r.owned[w.host] {
			known = append(known, w)
			continue
		}
		r.owned[w.host], w.granted = true, true
		u.claims.Push(w)
	}
	if known != nil {
		r.enqueue(unit, job{known, true})
	}
	r.startEntry(unit)
	r.startJob(unit)
}

// startEntry starts to write a log entry if claims are waiting and no other entry is being written.
func (r *scaleRun) startEntry(unit int32) {
	u := &r.units[unit]
	if u.writing > 0 || u.claims.Len() == 0 {
		return
	}
	u.writing = u.claims.Len()
	if r.variant == Single {
		u.writing = 1
	}
	u.wrote += r.measuredTime(r.now, r.now+r.Persist)
	r.agenda.Put(r.now+r.Persist, scaleEvent{kind: eWritten, unit: unit})
}

// finishEntry answers the claims of the written entry, in one message per node.
func (r *scaleRun) finishEntry(unit int32) {
	u := &r.units[unit]
	var done []ownerRequest
	for range u.writing {
		done = append(done, u.claims.Pop())
	}
	u.writing = 0
	slices.SortStableFunc(done, func(a, b ownerRequest) int { return int(a.node - b.node) })
	for len(done) > 0 {
		end := slices.IndexFunc(done, func(w ownerRequest) bool { return w.node != done[0].node })
		if end < 0 {
			end = len(done)
		}
		r.enqueue(unit, job{done[:end:end], true})
		done = done[end:]
	}
	r.startEntry(unit)
}

func (r *scaleRun) deliverAnswer(wants []ownerRequest) {
	for _, w := range wants {
		if r.now >= r.from {
			r.delays = append(r.delays, r.now-w.found)
		}
		if w.granted {
			r.nodes[w.node].pending += r.Pages
		}
	}
	if node := wants[0].node; r.nodes[node].idle && r.nodes[node].pending > 0 {
		r.fetch(node)
	}
}

func (r *scaleRun) result() ScaleRow {
	seconds := r.Time.Seconds()
	row := ScaleRow{Nodes: len(r.nodes), Variant: r.variant, Offered: float64(r.offers) / seconds,
		Answered: float64(len(r.delays)) / seconds,
		Backlog:  r.offers - len(r.delays), Capacity: math.Min(1, r.pages/(r.Speed*seconds*float64(len(r.nodes))))}
	for i := range r.units {
		row.Processor += r.units[i].worked.Seconds() / seconds / float64(len(r.units))
		row.Log += r.units[i].wrote.Seconds() / seconds / float64(len(r.units))
	}
	slices.Sort(r.delays)
	if n := len(r.delays); n > 0 {
		row.Median, row.P99 = r.delays[n/2], r.delays[min(n-1, n*99/100)]
	}
	return row
}
