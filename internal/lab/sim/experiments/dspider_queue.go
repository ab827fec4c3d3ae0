package experiments

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"kumo/internal/lab/sim/queue"
)

// A scaleRun is one run of Scale.
type scaleRun struct {
	Scale
	variant Variant
	agenda  queue.Agenda[scaleEvent]
	now     time.Duration
	rng     *rand.Rand
	nodes   []scaleNode
	units   []controlUnit
	owned   []bool // hosts
	from    time.Duration
	until   time.Duration
	offers  int
	delays  []time.Duration // of the answers
	pages   float64         // fetched while figures are taken
}

// A scaleNode fetches.
type scaleNode struct {
	pending    int // pages that it owns and has not fetched
	untilFound int // pages to fetch before one names a host; fetching has stopped if none is in stock
	idle       bool
	gathered   [][]ownerRequest // by control unit, that are being gathered
}

// A want is a host that a node wants to know the owner of.
type ownerRequest struct {
	node, host int32
	found      time.Duration
	granted    bool
}

// A controlUnit is a processor with a line of jobs before it, and a log with a line of claims.
type controlUnit struct {
	jobs    queue.FIFO[job]
	working bool
	claims  queue.FIFO[ownerRequest]
	writing int // how many are being written
	worked  time.Duration
	wrote   time.Duration
}

// A job is a message that comes or goes.
type job struct {
	requests []ownerRequest
	answer   bool
}

// A scaleEvent is something that is due.
type scaleEvent struct {
	kind     uint8
	who      int32 // a node or a control unit
	unit     int32
	requests []ownerRequest
}

const (
	eHostFound    uint8 = iota // a node has fetched a page that names a host
	eOutOfPages                // a node has fetched all it had
	eSendGathered              // it asks what it has gathered
	eArrived                   // that comes to the control unit
	eWorked                    // the processor has done a job
	eWritten                   // the log has an entry
	eAnswered                  // an answer comes to a node
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

// drawGap draws how many pages there are until one names a host.
func (r *scaleRun) drawGap() int {
	return 1 + int(r.rng.ExpFloat64()*max(0, 1/r.Found-1))
}

// fetch lets a node fetch on until a page names a host, or it has none left.
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

// measuredTime is how much of a time lies where figures are taken.
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

// found has a node ask for a host: at once, or with what it finds until it asks.
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

// startJob begins the next job, if there is one and the processor is free.
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

// finishJob sends an answer, or looks in the table: what has an owner is answered, the rest written down first.
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

// startEntry begins an entry of the log, if something waits for it and none is under way.
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

// finishEntry answers the claims of an entry, each node in one message.
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
