package central

import (
	"maps"
	"slices"
	"time"

	"kumo/internal/base/varint"
	"kumo/internal/cluster/strategy"
)

// applyAnswers applies the leader's answers.
func (s *Strategy) applyAnswers(items []item) {
	if !s.alive[s.cfg.Self] {
		return
	}
	var lost map[strategy.Node][]string
	for i := range items {
		it := &items[i]
		switch it.kind {
		case itemList:
			s.applyOwnedList(it)
			continue
		case itemOfferHosts, itemOfferURLs:
			s.donor.addRequest(it)
			continue
		case itemStatus:
			s.policyStatus = []byte(it.text)
			continue
		}
		if it.kind == itemOwner && it.node == s.cfg.Self {
			it.kind = itemOwned
		}
		if s.applyAnswer(it) {
			if lost == nil {
				lost = map[strategy.Node][]string{}
			}
			lost[it.node] = append(lost[it.node], it.host)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(lost)) {
		s.do(strategy.HandOver{Hosts: lost[n], To: n})
	}
}

// applyAnswer applies one answer. It reports whether this node must hand the host over to the item's node.
func (s *Strategy) applyAnswer(it *item) bool {
	p := s.pending.hosts[it.host]
	switch it.kind {
	case itemOwned:
		s.owners.grant(it.host, ownGranted)
		if p != nil {
			if p.phase == offering {
				s.donor.declined.add(s.now, s.cfg.OfferCooldown, it.host)
			}
			s.pending.drop(p)
		}
	case itemOwner:
		if v, mine := s.owners.own.get(key(it.host)); mine && v == ownGranted && p == nil {
			p = s.pending.add(it.host, asking)
			p.holds = true
		}
		s.owners.cedeTo(it.host, it.node)
		if p == nil {
			return false
		}
		if !s.alive[it.node] && p.holds { // this node or the leader lags an epoch behind
			s.pending.setPhase(p, reportingHeld)
			s.pending.schedule(p, s.now.Add(s.cfg.Retry))
			return false
		}
		s.pending.acknowledge(p)
		if !p.holds {
			s.pending.drop(p)
			return false
		}
		if p.phase == moving && p.target == it.node {
			return false
		}
		s.pending.setPhase(p, moving)
		p.target, p.owned, p.moveEpoch = it.node, false, 0
		s.pending.schedule(p, s.now.Add(MoveTimeout))
		return true
	case itemWait:
		if p != nil && (p.phase == asking || p.phase == reporting || p.phase == reportingHeld || p.phase == offering) {
			p.tries = 0
			s.pending.schedule(p, roundTime(s.now, millis(it.number)))
		}
	case itemProbe:
		s.applyProbeRequest(p, it)
	case itemOwnedProbe:
		p = s.adoptParked(p, it.host)
		if p.phase != probing && p.phase != queued && p.phase != waiting && p.phase != reporting {
			s.pending.queueProbe(p, uint8(min(it.number, 20)))
		}
	case itemParked:
		p = s.adoptParked(p, it.host)
		if p.phase != waiting {
			s.pending.setPhase(p, waiting)
			p.round++
		}
		s.pending.schedule(p, s.now.Add(millis(it.number)))
	}
	return false
}

// roundTime returns a time after wait, rounded up by as much as a quarter of it. So hosts with similar waits share one
// message.
func roundTime(now time.Time, wait time.Duration) time.Time {
	step := max(wait/4, time.Millisecond)
	return now.Add(wait).Truncate(step).Add(step)
}

func millis(n uint64) time.Duration { return time.Duration(min(n, 1<<32)) * time.Millisecond }

// applyProbeRequest queues a probe that the leader has requested, unless this node owns the host.
func (s *Strategy) applyProbeRequest(p *pending, it *item) {
	if p == nil {
		if _, mine := s.owners.own.get(key(it.host)); mine {
			return
		}
		p = s.pending.add(it.host, asking)
	}
	if p.phase == asking {
		s.pending.queueProbe(p, uint8(min(it.number, 20)))
	}
}

// adoptParked makes this node the owner of a parked host, which it may not be able to reach.
func (s *Strategy) adoptParked(p *pending, host string) *pending {
	s.owners.grant(host, ownParked)
	if p == nil {
		p = s.pending.add(host, asking)
	}
	s.pending.acknowledge(p)
	p.owned, p.holds = true, true
	return p
}

// applyOwnedList applies the leader's list of hosts that this node owns.
func (s *Strategy) applyOwnedList(it *item) {
	if s.synced {
		return
	}
	r := varint.Reader{Rest: []byte(it.text)}
	for len(r.Rest) > 0 && !r.Bad {
		host, parked, round := r.String(), r.Bool(), r.Byte()
		switch {
		case r.Bad:
		case !parked:
			s.applyAnswer(&item{kind: itemOwned, host: host})
		default:
			s.applyAnswer(&item{kind: itemOwnedProbe, host: host, number: uint64(round)})
		}
	}
	s.cursor = it.number
	s.syncAt = s.now
	s.synced = s.cursor == 0
}
