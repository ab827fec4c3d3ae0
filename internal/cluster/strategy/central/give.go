package central

import (
	"slices"
	"strings"
	"time"

	"kumo/internal/base/varint"
	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/leader"
)

// sendLoad tells the leader how much this node has to do. If that is lost, it is told again soon.
func (s *Strategy) sendLoad(e strategy.Load) {
	if s.cfg.Fixed || s.now.Sub(s.loadSentAt) < s.cfg.Beat*3/4 || !s.alive[s.cfg.Self] {
		return
	}
	s.loadSentAt, s.donor.queueTime = s.now, 0
	if e.Rate > 0 {
		s.donor.queueTime = time.Duration(min(float64(e.Pending)/e.Rate, 1e9) * float64(time.Second))
	}
	var w varint.Writer
	appendLoad(&w, &e)
	s.post(s.elector.Leader(), leader.Question, item{kind: itemLoad, text: string(w)})
}

// A give is what the leader wants this node to offer to another: so many hosts, or hosts where so many URLs wait.
type offerRequest struct {
	to    strategy.Node
	hosts int
	urls  int
}

// A giver offers this node's hosts to others, as the leader wants.
type donor struct {
	*clusterState
	*output
	owners      *owners
	pending     *pendingHosts
	queueTime   time.Duration // this node's queue, at its pace; 0: that is not known
	requestedAt time.Time
	requests    []offerRequest // that the leader wants, while it is asked which hosts can be spared
	declined    declinedHosts
}

// MaxOffers is how many hosts one node offers at once, at most.
const MaxOffers = 500

// addRequest is told that another node should have some of this one's hosts.
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

// A host where few URLs wait is not worth moving, unless it is long until their turn comes.
const (
	shortHost     = 2 // URLs
	longQueueTime = 10 * time.Second
)

// offer offers hosts where URLs wait, to all that should have some in turn.
func (g *donor) offerQueues(queues []strategy.Queue) {
	gives := g.requests
	g.requests = nil
	turn, least := 0, shortHost
	if g.queueTime == 0 || g.queueTime >= longQueueTime {
		least = 1
	}
	for _, q := range queues {
		if len(gives) == 0 {
			return
		}
		value, mine := g.owners.own.get(key(q.Host))
		if !mine || value != ownGranted || g.pending.hosts[q.Host] != nil ||
			g.declined.has(g.now, g.cfg.OfferCooldown, q.Host) {
			continue
		}
		turn %= len(gives)
		if at := findRequest(gives, turn, q, least); at >= 0 {
			turn = at
		} else {
			continue
		}
		o := &gives[turn]
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
			gives = slices.Delete(gives, turn, turn+1)
		} else {
			turn++
		}
	}
}

// findRequest is the first give, from one on, that a host with such a queue is for; -1: none. Where URLs are counted, the host
// must not bring more than are wanted, but for what is left over of a host, and is not to be waited for.
func findRequest(gives []offerRequest, from int, q strategy.Queue, least int) int {
	for i := range gives {
		at := (from + i) % len(gives)
		g := &gives[at]
		if g.urls == 0 && q.Pending >= least || g.urls > 0 && q.Pending > 0 && 2*q.Pending <= 3*g.urls && !q.Busy {
			return at
		}
	}
	return -1
}

// offer asks the leader to give a host to another node. If it does not answer for long, it may be one that knows
// no offers: then it is asked whose the host is.
func (s *Strategy) sendOffer(p *pending) {
	if p.tries >= 8 {
		s.pending.setPhase(p, reportingHeld)
		s.runDue(p)
		return
	}
	s.askAbout(p, item{kind: itemOffer, node: p.target, number: uint64(p.urls)})
}

// kept are hosts that were offered in vain not long ago, in two generations.
type declinedHosts struct {
	young, old map[string]bool
	since      time.Time // of the younger
}

// A generation of hosts that were kept has so many.
const maxDeclined = 2000

func (k *declinedHosts) add(now time.Time, age time.Duration, host string) {
	k.rotate(now, age)
	k.young[host] = true
}

func (k *declinedHosts) has(now time.Time, age time.Duration, host string) bool {
	k.rotate(now, age)
	return k.young[host] || k.old[host]
}

// rotate begins a new generation when the younger one is as old as that, or full.
func (k *declinedHosts) rotate(now time.Time, age time.Duration) {
	if k.young == nil || len(k.young) >= maxDeclined || now.Sub(k.since) >= age {
		k.old, k.young, k.since = k.young, map[string]bool{}, now
	}
}
