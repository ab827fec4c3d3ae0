package central

import (
	"slices"
	"strings"
	"time"

	"kumo/internal/base/varint"
	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/leader"
)

// sendLoad reports this node's load to the leader. A lost report is followed by another one soon.
func (s *Strategy) sendLoad(e strategy.Load) {
	interval := s.cfg.Beat * 3 / 4
	if s.cfg.ShortBeat > 0 && e.HasShortQueue(s.cfg.Beat) {
		interval = s.cfg.ShortBeat * 3 / 4
	}
	if s.cfg.Fixed || s.now.Sub(s.loadSentAt) < interval || !s.alive[s.cfg.Self] {
		return
	}
	s.loadSentAt, s.donor.queueTime = s.now, e.QueueTime()
	var w varint.Writer
	appendLoad(&w, &e)
	s.post(s.elector.Leader(), leader.Question, item{kind: itemLoad, text: string(w)})
}

// An offerRequest is a request of the leader to offer hosts to another node: a number of hosts, or hosts with a number
// of pending URLs.
type offerRequest struct {
	to    strategy.Node
	hosts int
	urls  int
}

// A donor offers this node's hosts to other nodes on the leader's request.
type donor struct {
	*clusterState
	*output
	owners      *owners
	pending     *pendingHosts
	queueTime   time.Duration // time to work off this node's queue; 0: unknown
	requestedAt time.Time
	requests    []offerRequest // pending, while the queues are being listed
	declined    declinedHosts
}

// MaxOffers is the maximum number of hosts that a node offers at a time.
const MaxOffers = 500

// addRequest handles a request of the leader to offer hosts to another node.
func (g *donor) addRequest(it *item) {
	if g.cfg.Fixed || !g.alive[it.node] || it.node == g.cfg.Self || it.number == 0 {
		return
	}
	asked := len(g.requests) > 0 && g.now.Sub(g.requestedAt) < MoveTimeout
	if !asked {
		g.requests = nil
	}
	if slices.ContainsFunc(g.requests, func(o offerRequest) bool { return o.to == it.node }) {
		return
	}
	o := offerRequest{to: it.node, hosts: int(min(it.number, MaxOffers))}
	if it.kind == itemOfferURLs {
		o.hosts, o.urls = MaxOffers, int(min(it.number, 1<<40))
	}
	g.requests = append(g.requests, o)
	if !asked {
		g.requestedAt = g.now
		g.do(strategy.ListQueues{Limit: 4 * MaxOffers})
	}
}

// Hosts with fewer pending URLs than shortHost are not worth a move, unless this node's queue is long.
const (
	shortHost     = 2 // URLs
	longQueueTime = 10 * time.Second
)

// offerQueues offers hosts with pending URLs to the requested receivers, in turn.
func (g *donor) offerQueues(queues []strategy.Queue) {
	requests := g.requests
	g.requests = nil
	turn, least := 0, shortHost
	if g.queueTime == 0 || g.queueTime >= longQueueTime {
		least = 1
	}
	for _, q := range queues {
		if len(requests) == 0 {
			return
		}
		value, mine := g.owners.own.get(key(q.Host))
		if !mine || value != ownGranted || g.pending.hosts[q.Host] != nil ||
			g.declined.has(g.now, g.cfg.OfferCooldown, q.Host) {
			continue
		}
		turn %= len(requests)
		if at := findRequest(requests, turn, q, least); at >= 0 {
			turn = at
		} else {
			continue
		}
		o := &requests[turn]
		host := strings.Clone(q.Host)
		g.owners.cedeTo(host, "")
		p := g.pending.add(host, offering)
		p.holds, p.target, p.urls = true, o.to, q.Pending
		o.hosts--
		if o.urls > 0 {
			if o.urls -= q.Pending; o.urls <= 0 {
				o.hosts = 0
			}
		}
		if o.hosts == 0 {
			requests = slices.Delete(requests, turn, turn+1)
		} else {
			turn++
		}
	}
}

// findRequest returns the index of the first request, starting at from, that a host with this queue fits; -1 if none.
// If URLs are counted, the host must not exceed the rest of the request by more than half, and must have no fetch in
// progress.
func findRequest(requests []offerRequest, from int, q strategy.Queue, least int) int {
	for i := range requests {
		at := (from + i) % len(requests)
		g := &requests[at]
		if g.urls == 0 && q.Pending >= least || g.urls > 0 && q.Pending > 0 && 2*q.Pending <= 3*g.urls && !q.Busy {
			return at
		}
	}
	return -1
}

// sendOffer asks the leader to let a host move to another node. After several attempts without an answer, the leader
// may not support offers: then this node reports the host as held.
func (s *Strategy) sendOffer(p *pending) {
	if p.tries >= 8 {
		s.pending.setPhase(p, reportingHeld)
		s.runDue(p)
		return
	}
	s.sendItem(p, item{kind: itemOffer, node: p.target, number: uint64(p.urls)})
}

// declinedHosts are hosts whose offers were declined recently, in two generations.
type declinedHosts struct {
	young, old map[string]bool
	since      time.Time // start of the young generation
}

// maxDeclined is the size of one generation of declinedHosts.
const maxDeclined = 2000

func (k *declinedHosts) add(now time.Time, age time.Duration, host string) {
	k.rotate(now, age)
	k.young[host] = true
}

func (k *declinedHosts) has(now time.Time, age time.Duration, host string) bool {
	k.rotate(now, age)
	return k.young[host] || k.old[host]
}

// rotate starts a new generation if the young one is full or too old.
func (k *declinedHosts) rotate(now time.Time, age time.Duration) {
	if k.young == nil || len(k.young) >= maxDeclined || now.Sub(k.since) >= age {
		k.old, k.young, k.since = k.young, map[string]bool{}, now
	}
}
