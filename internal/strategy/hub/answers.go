package hub

import (
	"maps"
	"slices"
	"time"

	"kumo/internal/strategy"
	"kumo/internal/varint"
)

// answered takes the control unit's answers in.
func (h *Hub) answered(items []item) {
	if !h.alive[h.cfg.Self] {
		return
	}
	var lost map[strategy.Node][]string
	for i := range items {
		it := &items[i]
		switch it.kind {
		case itemList:
			h.listed(it)
			continue
		case itemGive:
			h.toGive(it)
			continue
		}
		if it.kind == itemOwner && it.node == h.cfg.Self {
			it.kind = itemYours
		}
		if h.settle(it) {
			if lost == nil {
				lost = map[strategy.Node][]string{}
			}
			lost[it.node] = append(lost[it.node], it.host)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(lost)) {
		h.do(strategy.HandOver{Hosts: lost[n], To: n})
	}
}

// settle takes an answer in, and reports whether the host is to be handed over to the item's node.
func (h *Hub) settle(it *item) bool {
	p := h.pending[it.host]
	switch it.kind {
	case itemYours:
		h.grant(it.host, ownGranted)
		if p != nil {
			if p.phase == offering {
				h.kept.add(h.now, it.host)
			}
			h.drop(p)
		}
	case itemOwner:
		if v, mine := h.own.get(key(it.host)); mine && v == ownGranted && p == nil {
			p = h.add(it.host, asking)
			p.holds = true
		}
		h.cedeTo(it.host, it.node)
		if p == nil {
			return false
		}
		if !h.alive[it.node] && p.holds { // one of the two does not know of an epoch yet
			h.turn(p, holding)
			h.schedule(p, h.now.Add(h.cfg.Retry))
			return false
		}
		h.acknowledge(p)
		if !p.holds {
			h.drop(p)
			return false
		}
		if p.phase == moving && p.to == it.node {
			return false
		}
		h.turn(p, moving)
		p.to, p.owned, p.moved = it.node, false, 0
		h.schedule(p, h.now.Add(movePatience))
		return true
	case itemWait:
		if p != nil && (p.phase == asking || p.phase == telling || p.phase == holding || p.phase == offering) {
			p.tries = 0
			h.schedule(p, h.now.Add(millis(it.number)))
		}
	case itemProbe:
		h.askedToProbe(p, it)
	case itemProve:
		p = h.ownParked(p, it.host)
		if p.phase != probing && p.phase != queued && p.phase != resting && p.phase != telling {
			h.toProbe(p, uint8(min(it.number, 20)))
		}
	case itemRest:
		p = h.ownParked(p, it.host)
		if p.phase != resting {
			h.turn(p, resting)
			p.round++
		}
		h.schedule(p, h.now.Add(millis(it.number)))
	}
	return false
}

func millis(n uint64) time.Duration { return time.Duration(min(n, 1<<32)) * time.Millisecond }

// askedToProbe is told that the control unit wants to know whether this node reaches a host.
func (h *Hub) askedToProbe(p *pending, it *item) {
	if p == nil {
		if _, mine := h.own.get(key(it.host)); mine {
			return
		}
		p = h.add(it.host, asking)
	}
	if p.phase == asking {
		h.toProbe(p, uint8(min(it.number, 20)))
	}
}

// ownParked makes a host this node's that it is not known to reach.
func (h *Hub) ownParked(p *pending, host string) *pending {
	h.grant(host, ownParked)
	if p == nil {
		p = h.add(host, asking)
	}
	h.acknowledge(p)
	p.owned, p.holds = true, true
	return p
}

// listed takes in what the control unit says is this node's.
func (h *Hub) listed(it *item) {
	if h.synced {
		return
	}
	r := varint.Reader{Rest: []byte(it.text)}
	for len(r.Rest) > 0 && !r.Bad {
		host, parked, round := r.String(), r.Bool(), r.Byte()
		switch {
		case r.Bad:
		case !parked:
			h.settle(&item{kind: itemYours, host: host})
		default:
			h.settle(&item{kind: itemProve, host: host, number: uint64(round)})
		}
	}
	h.cursor = it.number
	h.syncAt = h.now
	h.synced = h.cursor == 0
}
