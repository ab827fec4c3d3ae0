package central

import (
	"container/heap"
	"slices"
	"time"

	"kumo/internal/cluster/strategy"
)

// A phase is how far a host is that is not settled.
type phase uint8

const (
	asking        phase = iota // whose it is
	queued                     // to be probed
	probing                    // it is
	reporting                  // the leader, what came of that
	reportingHeld              // telling that it is held here
	waiting                    // nobody reaches it; it will be probed again
	moving                     // it goes to its owner
	offering                   // to another node, which has less to do: it is stopped here until the leader has decided
)

// A pending is a host that is not settled.
type pending struct {
	host      string
	phase     phase
	holds     bool  // what is known of it is here
	owned     bool  // by this node, which is not known to reach it
	needsAck  bool  // the leader does not know that it is held
	round     uint8 // of probes, by all nodes
	reached   bool  // it was reached
	took      time.Duration
	network   string
	target    strategy.Node // its owner, or to whom it is offered
	urls      int           // URLs, of one that is offered
	links     int           // to it, that wait here; and of how many the leader was told
	linksSent int
	moveEpoch uint64 // the epoch under which it goes there
	tries     uint8
	at        time.Time
	index     int // in the queue; -1: not in it
}

// pendingHosts are the hosts that are not settled, by when they want something.
type pendingHosts struct {
	*clusterState
	*output
	hosts   map[string]*pending
	queue   byTime
	probes  []*pending // that wait for their turn
	probing int
	timeout time.Duration

	unacknowledged int // hosts held of which the leader does not know
}

func newPendingHosts(around *clusterState, out *output) *pendingHosts {
	return &pendingHosts{clusterState: around, output: out, hosts: map[string]*pending{}, timeout: around.cfg.Timeout}
}

func (q *pendingHosts) add(host string, ph phase) *pending {
	p := &pending{host: host, index: -1, links: 1} // as far as is known
	q.hosts[host] = p
	q.setPhase(p, ph)
	return p
}

// setPhase gives a host another phase, of which the first thing is done at once.
func (q *pendingHosts) setPhase(p *pending, ph phase) {
	if p.phase == probing && ph != probing {
		q.probing--
	}
	p.phase, p.tries = ph, 0
	q.schedule(p, q.now)
}

func (q *pendingHosts) schedule(p *pending, at time.Time) {
	p.at = at
	if p.index < 0 {
		heap.Push(&q.queue, p)
	} else {
		heap.Fix(&q.queue, p.index)
	}
}

// drop ends a host's pending: it is settled.
func (q *pendingHosts) drop(p *pending) {
	q.acknowledge(p)
	if p.phase == probing {
		q.probing--
	}
	p.phase = asking
	if p.index >= 0 {
		heap.Remove(&q.queue, p.index)
	}
	delete(q.hosts, p.host)
}

// acknowledge notes that the leader knows that a host is held here.
func (q *pendingHosts) acknowledge(p *pending) {
	if p.needsAck {
		p.needsAck = false
		q.unacknowledged--
	}
}

// queueProbe has a host probed when it is its turn.
func (q *pendingHosts) queueProbe(p *pending, round uint8) {
	q.setPhase(p, queued)
	p.round = round
	if p.index >= 0 {
		heap.Remove(&q.queue, p.index)
	}
	q.probes = append(q.probes, p)
}

// probeTimeout is how long is waited for a host.
func (q *pendingHosts) probeTimeout(round uint8) time.Duration {
	return min(q.timeout<<min(round, 10), max(q.cfg.MaxTimeout, q.timeout))
}

func (q *pendingHosts) startProbes() {
	for q.probing < q.cfg.Probes && len(q.probes) > 0 {
		p := q.probes[0]
		q.probes[0] = nil
		q.probes = q.probes[1:]
		if p.phase != queued || q.hosts[p.host] != p {
			continue
		}
		p.phase = probing
		q.probing++
		t := q.probeTimeout(p.round)
		q.schedule(p, q.now.Add(2*t+MoveTimeout)) // it is answered long before
		q.do(strategy.Probe{Host: p.host, Timeout: t})
	}
	if len(q.probes) == 0 {
		q.probes = nil
	}
}

func (q *pendingHosts) movingHosts() (all []string) {
	for host, p := range q.hosts {
		if p.phase == moving {
			all = append(all, host)
		}
	}
	slices.Sort(all)
	return all
}

func (q *pendingHosts) clear() {
	for _, p := range q.queue {
		p.index = -1
	}
	clear(q.hosts)
	q.queue, q.probes, q.probing, q.unacknowledged = nil, nil, 0, 0
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
