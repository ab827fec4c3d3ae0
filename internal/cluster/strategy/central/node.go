package central

import (
	"container/heap"
	"slices"
	"time"

	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/leader"
)

// progress is how far a member is with what it owes the leader and the epoch.
type progress struct {
	synced       bool // all that is this node's by the leader's table is known
	cursor       uint64
	syncAt       time.Time
	survey       bool // asked for
	surveyed     bool
	whole        uint64 // the epoch that is to be acknowledged
	acknowledged uint64
}

// MovePatience is how long is waited for a host to move.
const MovePatience = time.Minute

// View is whose hosts are, as this node knows it.
func (s *Strategy) View() strategy.View { return s.owners.view }

// Facts are what the node tells people.
func (s *Strategy) Facts() strategy.Facts {
	f := strategy.Facts{Control: s.elector.Leader(), Leads: s.elector.Leads(), Timeout: s.pending.timeout,
		Owned: s.owners.granted, Parked: s.owners.parked, Unsettled: len(s.pending.hosts)}
	if s.facts != nil {
		s.facts(s.told, &f)
	}
	return f
}

// wanted is told of hosts to which links wait.
func (s *Strategy) wanted(e strategy.Wanted) {
	if !s.alive[s.cfg.Self] {
		return // it is told again
	}
	for i, host := range e.Hosts {
		links := 1
		if i < len(e.Links) {
			links = e.Links[i]
		}
		if p := s.pending.hosts[host]; p != nil {
			s.moreLinks(p, links)
			continue
		}
		if _, mine := s.owners.own.get(key(host)); mine {
			continue
		}
		s.owners.forgetOwner(host)
		p := s.pending.add(host, asking)
		p.links = links
		if s.cfg.FetchFirst && s.epoch == s.settled { // else it may be on its way from here
			p.holds = true
			s.owners.grant(host, ownAsked)
			s.pending.toProbe(p, 0)
		}
	}
}

// moreLinks notes how many links wait for a host. The leader is told soon if they are many more than it knows.
func (s *Strategy) moreLinks(p *pending, links int) {
	if p.links = links; p.phase == asking && p.tries == 0 && links > 2*p.linksTold {
		s.pending.schedule(p, Earliest(p.at, s.now.Add(s.cfg.Retry)))
	}
}

// held is told of hosts that this node holds and does not own.
func (s *Strategy) held(hosts []string) {
	if !s.alive[s.cfg.Self] {
		return // its heirs will say so
	}
	for _, host := range hosts {
		if v, mine := s.owners.own.get(key(host)); mine && v == ownGranted {
			continue
		}
		p := s.pending.hosts[host]
		if p == nil {
			p = s.pending.add(host, holding)
		} else { // whatever was under way: what the leader must know first is that it is held here
			s.pending.turn(p, holding)
		}
		p.holds, p.moved = true, 0
		if !p.needsAck {
			p.needsAck = true
			s.pending.unacknowledged++
		}
	}
}

func (s *Strategy) reached(e strategy.Reached) {
	p := s.pending.hosts[e.Host]
	if p == nil || p.phase != probing {
		return
	}
	p.ok, p.took, p.net = e.OK, e.Connect, e.Network
	if !e.OK && s.cfg.FetchFirst && !p.owned {
		s.owners.cedeTo(p.host, "")
	}
	s.pending.turn(p, telling)
}

// load adapts the timeout: who has little to do takes hosts that are farther away, who has much leaves them to others.
func (s *Strategy) load(e strategy.Load) {
	switch least, most := s.cfg.Least, 2*s.cfg.Timeout; {
	case e.Node != s.cfg.Self:
		return
	case e.Busy < 0.5:
		s.pending.timeout = min(s.pending.timeout+s.pending.timeout/16, most)
	case e.Busy > 0.9:
		s.pending.timeout = max(s.pending.timeout-s.pending.timeout/16, least)
	}
	s.tellLoad(e)
}

// moved is told which hosts change hands. Of most that others hand over it is not: links to them are refused.
func (s *Strategy) moved(moves []strategy.Move) {
	for _, m := range moves {
		if m.From != s.cfg.Self {
			s.owners.forgetOwner(m.Host)
		}
	}
	for _, m := range moves {
		p := s.pending.hosts[m.Host]
		if m.From == s.cfg.Self && p != nil && p.phase == moving && p.moved == 0 && m.To == p.to {
			p.moved = s.epoch
		}
	}
	for _, host := range s.pending.moving() {
		switch p := s.pending.hosts[host]; {
		case p.moved > 0 && !s.alive[p.to]: // it went to an heir, or stays: the leader must know before the epoch is settled
			s.pending.drop(p)
			s.survey, s.surveyed = false, false
		case p.moved > 0 && s.settled >= p.moved:
			s.pending.drop(p)
		case p.moved == 0 && !s.alive[p.to]:
			s.pending.turn(p, holding)
		}
	}
}

// begin forgets what is this node's, which has become a member, or is none any more: what it owned others own then.
func (s *Strategy) begin() {
	s.pending.clear()
	s.owners.own, s.owners.granted, s.owners.parked, s.owners.dirty = nil, 0, 0, true
	s.giver.gives = nil
	s.synced, s.cursor, s.syncAt, s.survey, s.surveyed = false, 0, s.now, false, false
}

func (s *Strategy) advanceNode() {
	if !s.alive[s.cfg.Self] {
		return
	}
	s.advanceMember()
	if !s.owners.agesAt.IsZero() && !s.owners.agesAt.After(s.now) {
		s.owners.age()
	}
	for len(s.pending.queue) > 0 && !s.pending.queue[0].at.After(s.now) {
		s.due(s.pending.queue[0])
	}
	s.pending.startProbes()
}

func (s *Strategy) advanceMember() {
	if !s.synced && !s.syncAt.After(s.now) {
		s.syncAt = s.now.Add(4 * s.cfg.Retry)
		s.question(item{kind: itemSync, number: s.cursor})
	}
	if s.synced && !s.survey {
		s.survey = true
		s.do(strategy.Survey{})
	}
	if s.whole > s.acknowledged && s.synced && s.surveyed && s.pending.unacknowledged == 0 {
		s.acknowledged = s.whole
		s.do(strategy.Acknowledged{Epoch: s.whole})
	}
}

// soon asks the leader, another one perhaps, all that has no answer yet.
func (s *Strategy) soon() {
	s.syncAt = s.now
	for _, p := range slices.Clone(s.pending.queue) {
		waits := p.tries > 0 || p.at.Sub(s.now) > s.cfg.Wait
		if (p.phase == asking || p.phase == telling || p.phase == holding || p.phase == offering) && waits {
			p.tries = 0
			s.pending.schedule(p, s.now)
		}
	}
}

// due does what a host wants now.
func (s *Strategy) due(p *pending) {
	switch p.phase {
	case asking:
		p.linksTold = p.links
		s.ask(p, item{kind: itemWant, number: uint64(max(0, p.links))})
	case telling:
		it := item{kind: itemFail, number: uint64(p.took.Microseconds()), text: p.net}
		if p.ok {
			it.kind = itemClaim
		}
		if p.owned { // and held: if the leader does not know that, it is told now
			it.node = s.cfg.Self
		}
		s.ask(p, it)
	case holding:
		s.ask(p, item{kind: itemHold})
	case offering:
		s.offer(p)
	case resting, probing:
		s.pending.toProbe(p, p.round)
	case moving:
		if p.moved == 0 {
			s.pending.turn(p, holding)
		} else { // it may be gone already: what became of it is known when the epoch is settled
			s.pending.schedule(p, s.now.Add(MovePatience))
		}
	case queued:
		heap.Remove(&s.pending.queue, p.index)
	}
}

func (s *Strategy) ask(p *pending, it item) {
	it.host = p.host
	s.question(it)
	s.pending.schedule(p, s.now.Add(s.cfg.Retry<<min(p.tries, 3)))
	p.tries++
}

func (s *Strategy) question(it item) {
	s.elector.Asked(s.now)
	s.post(s.elector.Leader(), leader.Question, it)
}

// dueNode is when something is due.
func (s *Strategy) dueNode() (at time.Time) {
	if !s.alive[s.cfg.Self] {
		return at
	}
	if len(s.pending.queue) > 0 {
		at = s.pending.queue[0].at
	}
	if at = Earliest(at, s.owners.agesAt); !s.synced {
		at = Earliest(at, s.syncAt)
	}
	return at
}
