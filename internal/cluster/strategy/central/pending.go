package central

import (
	"container/heap"
	"slices"
	"time"

	"kumo/internal/cluster/strategy"
)

// A phase is the state of an unsettled host.
type phase uint8

const (
	asking        phase = iota // requests the owner
	queued                     // waits for a probe
	probing                    // the probe is running
	reporting                  // reports the probe's result to the leader
	reportingHeld              // reports that this node holds the host
	waiting                    // parked; probed again later
	moving                     // moving to its owner
	offering                   // offered to a node with less work; paused here until the leader decides
)

// A pending is an unsettled host.
type pending struct {
	host      string
	phase     phase
	holds     bool  // this node holds the host's state
	owned     bool  // this node owns the host, but may not reach it
	needsAck  bool  // the leader does not know that this node holds the host
	round     uint8 // failed rounds of probes by all nodes
	reached   bool  // the last probe connected
	took      time.Duration
	network   string
	target    strategy.Node // the owner, or the receiver of an offer
	urls      int           // pending URLs, if the host is offered
	links     int           // links that wait here, and the number last reported to the leader
	linksSent int
	moveEpoch uint64 // epoch of the move; 0: not known yet
	tries     uint8
	at        time.Time
	index     int // in the queue; -1: none
}

// pendingHosts are the unsettled hosts, ordered by the time of their next operation.
type pendingHosts struct {
	*clusterState
	*output
	hosts   map[string]*pending
	queue   byTime
	probes  []*pending // hosts that wait for a probe
	probing int
	timeout time.Duration

	unacknowledged int // hosts with needsAck
}

func newPendingHosts(cluster *clusterState, out *output) *pendingHosts {
	return &pendingHosts{clusterState: cluster, output: out, hosts: map[string]*pending{}, timeout: cluster.cfg.Timeout}
}

func (q *pendingHosts) add(host string, ph phase) *pending {
	p := &pending{host: host, index: -1, links: 1} // until links are counted
	q.hosts[host] = p
	q.setPhase(p, ph)
	return p
}

// setPhase sets a host's phase, whose first operation is due at once.
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

// drop removes a settled host.
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

// acknowledge records that the leader knows that this node holds the host.
func (q *pendingHosts) acknowledge(p *pending) {
	if p.needsAck {
		p.needsAck = false
		q.unacknowledged--
	}
}

// queueProbe queues a host for a probe.
func (q *pendingHosts) queueProbe(p *pending, round uint8) {
	q.setPhase(p, queued)
	p.round = round
	if p.index >= 0 {
		heap.Remove(&q.queue, p.index)
	}
	q.probes = append(q.probes, p)
}

// probeTimeout returns the timeout of a probe in a round.
func (q *pendingHosts) probeTimeout(round uint8) time.Duration {
	return min(q.timeout<<min(round, 10), max(q.cfg.RetryTimeout, q.timeout))
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
		q.schedule(p, q.now.Add(2*t+MoveTimeout)) // a guard only: the result arrives much earlier
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

// byTime is a heap of hosts by the time of their next operation.
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
