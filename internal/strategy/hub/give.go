package hub

import (
	"slices"
	"strings"
	"time"

	"kumo/internal/strategy"
	"kumo/internal/strategy/leader"
	"kumo/internal/varint"
)

// tellLoad tells the control unit how much this node has to do. If that is lost, it is told again soon.
func (h *Hub) tellLoad(e strategy.Load) {
	if h.cfg.Level < 0 || h.now.Sub(h.toldAt) < h.cfg.Beat*3/4 || !h.alive[h.cfg.Self] {
		return
	}
	h.toldAt, h.lasts = h.now, 0
	if e.Rate > 0 {
		h.lasts = time.Duration(min(float64(e.Waiting)/e.Rate, 1e9) * float64(time.Second))
	}
	var w varint.Writer
	w.Uint(uint64(h.lasts.Milliseconds()))
	h.post(h.elector.Leader(), leader.Question, item{kind: itemLoad, number: uint64(max(0, e.Hosts)), text: string(w)})
}

// toGive is told that another node should have some of this one's hosts.
func (h *Hub) toGive(it *item) {
	if h.cfg.Level < 0 || !h.alive[it.node] || it.node == h.cfg.Self || it.number == 0 {
		return
	}
	asked := len(h.gives) > 0 && h.now.Sub(h.givesAt) < movePatience
	if !asked {
		h.gives = nil
	}
	if slices.ContainsFunc(h.gives, func(g give) bool { return g.to == it.node }) {
		return
	}
	h.gives = append(h.gives, give{h.cfg.Self, it.node, int(min(it.number, maxGive))})
	if !asked {
		h.givesAt = h.now
		h.do(strategy.Spare{Most: 4 * maxGive})
	}
}

// A host where few URLs wait is not worth moving, unless it is long until their turn comes.
const (
	shortHost = 2 // URLs
	longTurn  = 10 * time.Second
)

// spared offers hosts where URLs wait, to all that should have some in turn.
func (h *Hub) spared(queues []strategy.Queue) {
	gives := h.gives
	h.gives = nil
	turn, least := 0, shortHost
	if h.lasts == 0 || h.lasts >= longTurn {
		least = 1
	}
	for _, q := range queues {
		if len(gives) == 0 {
			return
		}
		value, mine := h.own.get(key(q.Host))
		if !mine || value != ownGranted || q.Waiting < least || h.pending[q.Host] != nil || h.kept.has(h.now, q.Host) {
			continue
		}
		turn %= len(gives)
		g := &gives[turn]
		host := strings.Clone(q.Host)
		h.cedeTo(host, "")
		p := h.add(host, offering)
		p.holds, p.to, p.waits = true, g.to, q.Waiting
		if g.hosts--; g.hosts == 0 {
			gives = slices.Delete(gives, turn, turn+1)
		} else {
			turn++
		}
	}
}

// offer asks the control unit to give a host to another node. If it does not answer for long, it may be one that knows
// no offers: then it is asked whose the host is.
func (h *Hub) offer(p *pending) {
	if p.tries >= 8 {
		h.turn(p, holding)
		h.due(p)
		return
	}
	h.ask(p, item{kind: itemOffer, node: p.to, number: uint64(p.waits)})
}

// kept are hosts that were offered in vain not long ago, in two generations.
type kept struct {
	young, old map[string]bool
	since      time.Time // of the younger
}

// A generation of hosts that were kept has so many, and takes so long.
const (
	maxKept = 2000
	keptAge = 5 * time.Minute
)

func (k *kept) add(now time.Time, host string) {
	k.age(now)
	k.young[host] = true
}

func (k *kept) has(now time.Time, host string) bool {
	k.age(now)
	return k.young[host] || k.old[host]
}

func (k *kept) age(now time.Time) {
	if k.young == nil || len(k.young) >= maxKept || now.Sub(k.since) >= keptAge {
		k.old, k.young, k.since = k.young, map[string]bool{}, now
	}
}
