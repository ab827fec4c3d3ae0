package central

import (
	"container/heap"
	"time"

	"kumo/internal/cluster/strategy"
)

// A phase is how far a host is that is not settled.
type phase uint8

const (
	asking   phase = iota // whose it is
	queued                // to be probed
	probing               // it is
	telling               // the leader, what came of that
	holding               // telling that it is held here
	resting               // nobody reaches it; it will be probed again
	moving                // it goes to its owner
	offering              // to another node, which has less to do: it is stopped here until the leader has decided
)

// A pending is a host that is not settled.
type pending struct {
	host      string
	phase     phase
	holds     bool  // what is known of it is here
	owned     bool  // by this node, which is not known to reach it
	needsAck  bool  // the leader does not know that it is held
	round     uint8 // of probes, by all nodes
	ok        bool  // it was reached
	took      time.Duration
	net       string
	to        strategy.Node // its owner, or to whom it is offered
	waits     int           // URLs, of one that is offered
	links     int           // to it, that wait here; and of how many the leader was told
	linksTold int
	moved     uint64 // the epoch under which it goes there
	tries     uint8
	at        time.Time
	index     int // in the queue; -1: not in it
}

func (s *Strategy) add(host string, ph phase) *pending {
	p := &pending{host: host, index: -1, links: 1} // as far as is known
	s.pending[host] = p
	s.turn(p, ph)
	return p
}

// turn gives a host another phase, of which the first thing is done at once.
func (s *Strategy) turn(p *pending, ph phase) {
	if p.phase == probing && ph != probing {
		s.probing--
	}
	p.phase, p.tries = ph, 0
	s.schedule(p, s.now)
}

func (s *Strategy) schedule(p *pending, at time.Time) {
	p.at = at
	if p.index < 0 {
		heap.Push(&s.queue, p)
	} else {
		heap.Fix(&s.queue, p.index)
	}
}

// drop ends a host's pending: it is settled.
func (s *Strategy) drop(p *pending) {
	s.acknowledge(p)
	if p.phase == probing {
		s.probing--
	}
	p.phase = asking
	if p.index >= 0 {
		heap.Remove(&s.queue, p.index)
	}
	delete(s.pending, p.host)
}

// acknowledge notes that the leader knows that a host is held here.
func (s *Strategy) acknowledge(p *pending) {
	if p.needsAck {
		p.needsAck = false
		s.unacknowledged--
	}
}

// toProbe has a host probed when it is its turn.
func (s *Strategy) toProbe(p *pending, round uint8) {
	s.turn(p, queued)
	p.round = round
	if p.index >= 0 {
		heap.Remove(&s.queue, p.index)
	}
	s.probes = append(s.probes, p)
}

// probeTimeout is how long is waited for a host.
func (s *Strategy) probeTimeout(round uint8) time.Duration {
	return min(s.timeout<<min(round, 10), max(s.cfg.Most, s.timeout))
}

func (s *Strategy) startProbes() {
	for s.probing < s.cfg.Probes && len(s.probes) > 0 {
		p := s.probes[0]
		s.probes[0] = nil
		s.probes = s.probes[1:]
		if p.phase != queued || s.pending[p.host] != p {
			continue
		}
		p.phase = probing
		s.probing++
		t := s.probeTimeout(p.round)
		s.schedule(p, s.now.Add(2*t+MovePatience)) // it is answered long before
		s.do(strategy.Probe{Host: p.host, Timeout: t})
	}
	if len(s.probes) == 0 {
		s.probes = nil
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
