package quorum

import (
	"time"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
)

// A flow is what an export has for one node.
type flow struct {
	queue   []chunkMsg // not known to be taken
	next    uint64     // number of the next chunk
	taken   uint64     // chunks before this one are, by the receiver's process
	process uint64
	whole   bool
	at      time.Time // when the queue is sent again
	wait    time.Duration
}

// read asks for chunks as far as the window allows, and sends what has not been taken again.
func (m *Member) read(e *export) {
	if g := m.ghosts[e.from]; !e.ended && (len(e.flows) == 0 || g != nil && g.released) {
		m.lastChunks(e)
	}
	open := e.reads
	for _, n := range sortedNodes(e.flows) {
		f := e.flows[n]
		open += len(f.queue)
		if len(f.queue) > 0 && !f.at.After(m.now) {
			m.resend(n, f)
		}
	}
	for ; !e.ended && open < m.cfg.Timing.Window; open++ {
		e.reads++
		m.do(member.Read{From: e.from, Epoch: e.epoch, Attempt: e.attempt, Owner: m.ownerOf(e)})
	}
}

func (m *Member) resend(to strategy.Node, f *flow) {
	f.wait = min(2*max(f.wait, m.cfg.Timing.Retry/2), 8*m.cfg.Timing.Retry)
	f.at = m.now.Add(f.wait)
	for _, c := range f.queue[:min(len(f.queue), 4)] {
		m.do(member.Send{To: to, Data: c.encode()})
	}
}

// chunk is told of a chunk that was read.
func (m *Member) chunk(c member.Chunk) {
	e := m.exports[c.From]
	if e == nil || e.epoch != c.Epoch || c.Attempt != e.attempt || e.stage != reading || e.ended {
		return
	}
	e.reads--
	if c.To == "" {
		m.lastChunks(e)
		return
	}
	e.moved = true
	if e.flows[c.To] == nil {
		e.flows[c.To] = &flow{}
	}
	m.post(e, c.To, c.Data, false)
}

// lastChunks ends all flows of an export.
func (m *Member) lastChunks(e *export) {
	e.ended = true
	for _, n := range sortedNodes(e.flows) {
		m.post(e, n, nil, true)
	}
}

func (m *Member) post(e *export, to strategy.Node, data []byte, last bool) {
	f := e.flows[to]
	if f.whole {
		return // with an earlier attempt
	}
	c := chunkMsg{t: member.Transfer{From: e.from, To: to, Epoch: e.epoch, Attempt: e.attempt}, seq: f.next, last: last,
		data: data}
	f.next++
	if len(f.queue) == 0 {
		f.wait = m.cfg.Timing.Retry
		f.at = m.now.Add(f.wait)
	}
	f.queue = append(f.queue, c)
	m.do(member.Send{To: to, Data: c.encode()})
}

// ack is told what was taken.
func (m *Member) ack(from strategy.Node, a ackMsg) {
	e := m.exports[a.t.From]
	if e == nil || e.epoch != a.t.Epoch || from != a.t.To {
		return
	}
	f := e.flows[from]
	if f == nil {
		return
	}
	if a.whole { // perhaps by an earlier attempt: then what this one has for it had come before
		f.whole, f.queue = true, nil
		return
	}
	if a.t.Attempt != e.attempt || a.process < f.process {
		return
	}
	if a.process > f.process && a.next < f.taken {
		e.again()
		return
	}
	f.process = a.process
	for len(f.queue) > 0 && f.queue[0].seq < a.next {
		f.queue, f.taken = f.queue[1:], a.next
		f.wait = m.cfg.Timing.Retry
		f.at = m.now.Add(f.wait)
	}
}

// again begins anew to read and send: a receiver has died and come back, and what it had taken is undone.
func (e *export) again() {
	e.attempt++
	e.reads, e.ended = 0, false
	for n, f := range e.flows {
		e.flows[n] = &flow{whole: f.whole}
	}
}

func (e *export) whole() bool {
	for _, f := range e.flows {
		if !f.whole {
			return false
		}
	}
	return true
}
