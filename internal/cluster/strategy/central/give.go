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
	s.toldAt, s.lasts = s.now, 0
	if e.Rate > 0 {
		s.lasts = time.Duration(min(float64(e.Waiting)/e.Rate, 1e9) * float64(time.Second))
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

// MaxGive is how many hosts one node offers at once, at most.
const MaxGive = 500

// toGive is told that another node should have some of this one's hosts.
func (s *Strategy) toGive(it *item) {
	if s.cfg.Fixed || !s.alive[it.node] || it.node == s.cfg.Self || it.number == 0 {
		return
	}
	asked := len(s.gives) > 0 && s.now.Sub(s.givesAt) < MovePatience
	if !asked {
		s.gives = nil
	}
	if slices.ContainsFunc(s.gives, func(g give) bool { return g.to == it.node }) {
		return
	}
	g := give{to: it.node, hosts: int(min(it.number, MaxGive))}
	if it.kind == itemGiveURLs {
		g.hosts, g.urls = MaxGive, int(min(it.number, 1<<40))
	}
	s.gives = append(s.gives, g)
	if !asked {
		s.givesAt = s.now
		s.do(strategy.Spare{Most: 4 * MaxGive})
	}
}

// A host where few URLs wait is not worth moving, unless it is long until their turn comes.
const (
	shortHost = 2 // URLs
	longTurn  = 10 * time.Second
)

// spared offers hosts where URLs wait, to all that should have some in turn.
func (s *Strategy) spared(queues []strategy.Queue) {
	gives := s.gives
	s.gives = nil
	turn, least := 0, shortHost
	if s.lasts == 0 || s.lasts >= longTurn {
		least = 1
	}
	for _, q := range queues {
		if len(gives) == 0 {
			return
		}
		value, mine := s.own.get(key(q.Host))
		if !mine || value != ownGranted || s.pending[q.Host] != nil || s.kept.has(s.now, s.cfg.Keep, q.Host) {
			continue
		}
		turn %= len(gives)
		if at := fits(gives, turn, q, least); at >= 0 {
			turn = at
		} else {
			continue
		}
		g := &gives[turn]
		host := strings.Clone(q.Host)
		s.cedeTo(host, "")
		p := s.add(host, offering)
		p.holds, p.to, p.waits = true, g.to, q.Waiting
		g.hosts--
		if g.urls > 0 {
			if g.urls -= q.Waiting; g.urls <= 0 {
				g.hosts = 0
			}
		}
		if g.hosts == 0 {
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
		s.turn(p, holding)
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
