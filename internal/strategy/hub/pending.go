package hub

import (
	"container/heap"
	"time"

	"kumo/internal/strategy"
)

// A phase is how far a host is that is not settled.
type phase uint8

const (
	asking   phase = iota // whose it is
	queued                // to be probed
	probing               // it is
	telling               // the control unit, what came of that
	holding               // telling that it is held here
	resting               // nobody reaches it; it will be probed again
	moving                // it goes to its owner
	offering              // to another node, which has less to do: it is stopped here until the control unit has decided
)

// A pending is a host that is not settled.
type pending struct {
	host     string
	phase    phase
	holds    bool  // what is known of it is here
	owned    bool  // by this node, which is not known to reach it
	needsAck bool  // the control unit does not know that it is held
	round    uint8 // of probes, by all nodes
	ok       bool  // it was reached
	took     time.Duration
	net      string
	to       strategy.Node // its owner, or to whom it is offered
	waits    int           // URLs, of one that is offered
	moved    uint64        // the epoch under which it goes there
	tries    uint8
	at       time.Time
	index    int // in the queue; -1: not in it
}

func (h *Hub) add(host string, ph phase) *pending {
	p := &pending{host: host, index: -1}
	h.pending[host] = p
	h.turn(p, ph)
	return p
}

// turn gives a host another phase, of which the first thing is done at once.
func (h *Hub) turn(p *pending, ph phase) {
	if p.phase == probing && ph != probing {
		h.probing--
	}
	p.phase, p.tries = ph, 0
	h.schedule(p, h.now)
}

func (h *Hub) schedule(p *pending, at time.Time) {
	p.at = at
	if p.index < 0 {
		heap.Push(&h.queue, p)
	} else {
		heap.Fix(&h.queue, p.index)
	}
}

// drop ends a host's pending: it is settled.
func (h *Hub) drop(p *pending) {
	h.acknowledge(p)
	if p.phase == probing {
		h.probing--
	}
	p.phase = asking
	if p.index >= 0 {
		heap.Remove(&h.queue, p.index)
	}
	delete(h.pending, p.host)
}

// acknowledge notes that the control unit knows that a host is held here.
func (h *Hub) acknowledge(p *pending) {
	if p.needsAck {
		p.needsAck = false
		h.unacknowledged--
	}
}

// toProbe has a host probed when it is its turn.
func (h *Hub) toProbe(p *pending, round uint8) {
	h.turn(p, queued)
	p.round = round
	if p.index >= 0 {
		heap.Remove(&h.queue, p.index)
	}
	h.probes = append(h.probes, p)
}

// probeTimeout is how long is waited for a host.
func (h *Hub) probeTimeout(round uint8) time.Duration {
	return min(h.timeout<<min(round, 10), max(h.cfg.Most, h.timeout))
}

func (h *Hub) startProbes() {
	for h.probing < h.cfg.Probes && len(h.probes) > 0 {
		p := h.probes[0]
		h.probes[0] = nil
		h.probes = h.probes[1:]
		if p.phase != queued || h.pending[p.host] != p {
			continue
		}
		p.phase = probing
		h.probing++
		t := h.probeTimeout(p.round)
		h.schedule(p, h.now.Add(2*t+movePatience)) // it is answered long before
		h.do(strategy.Probe{Host: p.host, Timeout: t})
	}
	if len(h.probes) == 0 {
		h.probes = nil
	}
}

// byTime is a heap of hosts by when they want something.
type byTime []*pending

func (q byTime) Len() int { return len(q) }

func (q byTime) Less(i, j int) bool {
	if !q[i].at.Equal(q[j].at) {
		return q[i].at.Before(q[j].at)
	}
	return q[i].host < q[j].host
}

func (q byTime) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

func (q *byTime) Push(x any) {
	p := x.(*pending)
	p.index = len(*q)
	*q = append(*q, p)
}

func (q *byTime) Pop() any {
	old := *q
	p := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	p.index = -1
	return p
}
