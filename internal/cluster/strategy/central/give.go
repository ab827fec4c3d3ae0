package central

import (
	"slices"
	"strings"
	"time"

	"kumo/internal/base/varint"
	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/leader"
)

// tellLoad tells the leader how much this node has to do. If that is lost, it is told again soon.
func (s *Strategy) tellLoad(e strategy.Load) {
	if s.cfg.Fixed || s.now.Sub(s.toldAt) < s.cfg.Beat*3/4 || !s.alive[s.cfg.Self] {
		return
	}
	s.toldAt, s.giver.lasts = s.now, 0
	if e.Rate > 0 {
		s.giver.lasts = time.Duration(min(float64(e.Waiting)/e.Rate, 1e9) * float64(time.Second))
	}
	var w varint.Writer
	appendLoad(&w, &e)
	s.post(s.elector.Leader(), leader.Question, item{kind: itemLoad, text: string(w)})
}

// A give is what the leader wants this node to offer to another: so many hosts, or hosts where so many URLs wait.
type give struct {
	to    strategy.Node
	hosts int
	urls  int
}

// A giver offers this node's hosts to others, as the leader wants.
type giver struct {
	*surroundings
	*output
	owners  *owners
	pending *pendingHosts
	lasts   time.Duration // this node's queue, at its pace; 0: that is not known
	givesAt time.Time
	gives   []give // that the leader wants, while it is asked which hosts can be spared
	kept    kept
}

// MaxGive is how many hosts one node offers at once, at most.
const MaxGive = 500

// want is told that another node should have some of this one's hosts.
func (g *giver) want(it *item) {
	if g.cfg.Fixed || !g.alive[it.node] || it.node == g.cfg.Self || it.number == 0 {
		return
	}
	asked := len(g.gives) > 0 && g.now.Sub(g.givesAt) < MovePatience
	if !asked {
		g.gives = nil
	}
	if slices.ContainsFunc(g.gives, func(o give) bool { return o.to == it.node }) {
		return
	}
	o := give{to: it.node, hosts: int(min(it.number, MaxGive))}
	if it.kind == itemGiveURLs {
		o.hosts, o.urls = MaxGive, int(min(it.number, 1<<40))
	}
	g.gives = append(g.gives, o)
	if !asked {
		g.givesAt = g.now
		g.do(strategy.Spare{Most: 4 * MaxGive})
	}
}

// A host where few URLs wait is not worth moving, unless it is long until their turn comes.
const (
	shortHost = 2 // URLs
	longTurn  = 10 * time.Second
)

// offer offers hosts where URLs wait, to all that should have some in turn.
func (g *giver) offer(queues []strategy.Queue) {
	gives := g.gives
	g.gives = nil
	turn, least := 0, shortHost
	if g.lasts == 0 || g.lasts >= longTurn {
		least = 1
	}
	for _, q := range queues {
		if len(gives) == 0 {
			return
		}
		value, mine := g.owners.own.get(key(q.Host))
		if !mine || value != ownGranted || g.pending.hosts[q.Host] != nil || g.kept.has(g.now, g.cfg.Keep, q.Host) {
			continue
		}
		turn %= len(gives)
		if at := fits(gives, turn, q, least); at >= 0 {
			turn = at
		} else {
			continue
		}
		o := &gives[turn]
		host := strings.Clone(q.Host)
		g.owners.cedeTo(host, "")
		p := g.pending.add(host, offering)
		p.holds, p.to, p.waits = true, o.to, q.Waiting
		o.hosts--
		if o.urls > 0 {
			if o.urls -= q.Waiting; o.urls <= 0 {
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

// fits is the first give, from one on, that a host with such a queue is for; -1: none. Where URLs are counted, the host
// must not bring more than are wanted, but for what is left over of a host, and is not to be waited for.
func fits(gives []give, from int, q strategy.Queue, least int) int {
	for i := range gives {
		at := (from + i) % len(gives)
		g := &gives[at]
		if g.urls == 0 && q.Waiting >= least || g.urls > 0 && q.Waiting > 0 && 2*q.Waiting <= 3*g.urls && !q.Busy {
			return at
		}
	}
	return -1
}

// offer asks the leader to give a host to another node. If it does not answer for long, it may be one that knows
// no offers: then it is asked whose the host is.
func (s *Strategy) offer(p *pending) {
	if p.tries >= 8 {
		s.pending.turn(p, holding)
		s.due(p)
		return
	}
	s.ask(p, item{kind: itemOffer, node: p.to, number: uint64(p.waits)})
}

// kept are hosts that were offered in vain not long ago, in two generations.
type kept struct {
	young, old map[string]bool
	since      time.Time // of the younger
}

// A generation of hosts that were kept has so many.
const maxKept = 2000

func (k *kept) add(now time.Time, age time.Duration, host string) {
	k.age(now, age)
	k.young[host] = true
}

func (k *kept) has(now time.Time, age time.Duration, host string) bool {
	k.age(now, age)
	return k.young[host] || k.old[host]
}

// age begins a new generation when the younger one is as old as that, or full.
func (k *kept) age(now time.Time, age time.Duration) {
	if k.young == nil || len(k.young) >= maxKept || now.Sub(k.since) >= age {
		k.old, k.young, k.since = k.young, map[string]bool{}, now
	}
}
