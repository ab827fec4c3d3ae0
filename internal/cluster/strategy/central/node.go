package central

import (
	"container/heap"
	"slices"
	"time"

	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/leader"
)

// progress tracks a member's synchronization with the leader and with the epoch.
type progress struct {
	synced        bool // the list of hosts that this node owns by the leader's table is complete
	cursor        uint64
	syncAt        time.Time
	survey        bool // requested
	surveyed      bool
	completeEpoch uint64 // last epoch whose transfers to this node are complete
	acknowledged  uint64
}

// MoveTimeout limits the wait for a host to move.
const MoveTimeout = time.Minute

// View returns the host owners that this node knows.
func (s *Strategy) View() strategy.View { return s.owners.view }

// Status returns the node's status for users.
func (s *Strategy) Status() strategy.Status {
	f := strategy.Status{Controller: s.elector.Leader(), Leads: s.elector.Leads(), Timeout: s.pending.timeout,
		MinTimeout: s.cfg.MinTimeout, MaxTimeout: s.cfg.MaxTimeout, Requests: s.hostRequests + s.hostAnswers,
		Owned: s.owners.granted, Parked: s.owners.parked, Unsettled: len(s.pending.hosts)}
	if s.facts != nil {
		s.facts(s.policyStatus, &f)
	}
	return f
}

// ownersNeeded handles hosts with links but without a known owner.
func (s *Strategy) ownersNeeded(e strategy.OwnersNeeded) {
	if !s.alive[s.cfg.Self] {
		return // the event is repeated
	}
	for i, host := range e.Hosts {
		links := 1
		if i < len(e.Links) {
			links = e.Links[i]
		}
		if p := s.pending.hosts[host]; p != nil {
			s.updateLinks(p, links)
			continue
		}
		if _, mine := s.owners.own.get(key(host)); mine {
			continue
		}
		s.owners.forgetOwner(host)
		p := s.pending.add(host, asking)
		p.links = links
		if s.cfg.FetchFirst && s.epoch == s.settled { // else the host may be moving away from here
			p.holds = true
			s.owners.grant(host, ownProvisional)
			s.pending.queueProbe(p, 0)
		}
	}
}

// updateLinks updates the number of links that wait for a host. The leader is informed soon if the number has more than
// doubled.
func (s *Strategy) updateLinks(p *pending, links int) {
	if p.links = links; p.phase == asking && p.tries == 0 && links > 2*p.linksSent {
		s.pending.schedule(p, Earliest(p.at, s.now.Add(s.cfg.Retry)))
	}
}

// heldHosts handles hosts that this node holds but does not own.
func (s *Strategy) heldHosts(hosts []string) {
	if !s.alive[s.cfg.Self] {
		return // the takeover nodes will report them
	}
	for _, host := range hosts {
		if v, mine := s.owners.own.get(key(host)); mine && v == ownGranted {
			continue
		}
		p := s.pending.hosts[host]
		if p == nil {
			p = s.pending.add(host, reportingHeld)
		} else { // whatever the phase: first the leader must learn that the host is held here
			s.pending.setPhase(p, reportingHeld)
		}
		p.holds, p.moveEpoch = true, 0
		if !p.needsAck {
			p.needsAck = true
			s.pending.unacknowledged++
		}
	}
}

func (s *Strategy) probeResult(e strategy.ProbeResult) {
	p := s.pending.hosts[e.Host]
	if p == nil || p.phase != probing {
		return
	}
	p.reached, p.took, p.network = e.OK, e.Connect, e.Network
	if !e.OK && s.cfg.FetchFirst && !p.owned {
		s.owners.cedeTo(p.host, "")
	}
	s.pending.setPhase(p, reporting)
}

// adaptTimeout adapts the probe timeout to the load: an idle node takes more distant hosts, a busy one leaves them to
// others.
func (s *Strategy) adaptTimeout(e strategy.Load) {
	switch least, most := s.cfg.MinTimeout, s.cfg.MaxTimeout; {
	case e.Node != s.cfg.Self:
		return
	case e.Busy < 0.5:
		s.pending.timeout = min(s.pending.timeout+s.pending.timeout/16, most)
	case e.Busy > 0.9:
		s.pending.timeout = max(s.pending.timeout-s.pending.timeout/16, least)
	}
	s.sendLoad(e)
}

// applyMoves handles the moves of single hosts. Most moves between other nodes are not listed; their former owners
// refuse links instead.
func (s *Strategy) applyMoves(moves []strategy.Move) {
	for _, m := range moves {
		if m.From != s.cfg.Self {
			s.owners.forgetOwner(m.Host)
		}
	}
	for _, m := range moves {
		p := s.pending.hosts[m.Host]
		if m.From == s.cfg.Self && p != nil && p.phase == moving && p.moveEpoch == 0 && m.To == p.target {
			p.moveEpoch = s.epoch
		}
	}
	for _, host := range s.pending.movingHosts() {
		switch p := s.pending.hosts[host]; {
		// the host went to a takeover node, or stays; the leader must know before the epoch is settled
		case p.moveEpoch > 0 && !s.alive[p.target]:
			s.pending.drop(p)
			s.survey, s.surveyed = false, false
		case p.moveEpoch > 0 && s.settled >= p.moveEpoch:
			s.pending.drop(p)
		case p.moveEpoch == 0 && !s.alive[p.target]:
			s.pending.setPhase(p, reportingHeld)
		}
	}
}

// resetOwnership drops all hosts of this node after it has joined or left: other nodes own them now.
func (s *Strategy) resetOwnership() {
	s.pending.clear()
	s.owners.own, s.owners.granted, s.owners.parked, s.owners.dirty = nil, 0, 0, true
	s.donor.requests = nil
	s.synced, s.cursor, s.syncAt, s.survey, s.surveyed = false, 0, s.now, false, false
}

func (s *Strategy) advanceNode() {
	if !s.alive[s.cfg.Self] {
		return
	}
	s.advanceMember()
	if !s.owners.rotateAt.IsZero() && !s.owners.rotateAt.After(s.now) {
		s.owners.rotate()
	}
	for len(s.pending.queue) > 0 && !s.pending.queue[0].at.After(s.now) {
		s.runDue(s.pending.queue[0])
	}
	s.pending.startProbes()
}

func (s *Strategy) advanceMember() {
	if !s.synced && !s.syncAt.After(s.now) {
		s.syncAt = s.now.Add(4 * s.cfg.Retry)
		s.sendRequest(item{kind: itemSync, number: s.cursor})
	}
	if s.synced && !s.survey {
		s.survey = true
		s.do(strategy.Survey{})
	}
	if s.completeEpoch > s.acknowledged && s.synced && s.surveyed && s.pending.unacknowledged == 0 {
		s.acknowledged = s.completeEpoch
		s.do(strategy.Acknowledged{Epoch: s.completeEpoch})
	}
}

// retryAll sends all unanswered requests again, since the leader may have changed.
func (s *Strategy) retryAll() {
	s.syncAt = s.now
	for _, p := range slices.Clone(s.pending.queue) {
		waits := p.tries > 0 || p.at.Sub(s.now) > s.cfg.DecisionWait
		if (p.phase == asking || p.phase == reporting || p.phase == reportingHeld || p.phase == offering) && waits {
			p.tries = 0
			s.pending.schedule(p, s.now)
		}
	}
}

// runDue runs the next operation of a host.
func (s *Strategy) runDue(p *pending) {
	switch p.phase {
	case asking:
		p.linksSent = p.links
		s.sendItem(p, item{kind: itemRequest, number: uint64(max(0, p.links))})
	case reporting:
		it := item{kind: itemFail, number: uint64(p.took.Microseconds()), text: p.network}
		if p.reached {
			it.kind = itemClaim
		}
		if p.owned { // and held here: reports it in case the leader does not know
			it.node = s.cfg.Self
		}
		s.sendItem(p, it)
	case reportingHeld:
		s.sendItem(p, item{kind: itemHeld})
	case offering:
		s.sendOffer(p)
	case waiting, probing:
		s.pending.queueProbe(p, p.round)
	case moving:
		if p.moveEpoch == 0 {
			s.pending.setPhase(p, reportingHeld)
		} else { // the host may be gone already; that is known when the epoch is settled
			s.pending.schedule(p, s.now.Add(MoveTimeout))
		}
	case queued:
		heap.Remove(&s.pending.queue, p.index)
	}
}

func (s *Strategy) sendItem(p *pending, it item) {
	it.host = p.host
	s.sendRequest(it)
	s.pending.schedule(p, s.now.Add(s.cfg.Retry<<min(p.tries, 3)))
	p.tries++
}

func (s *Strategy) sendRequest(it item) {
	s.elector.RequestSent(s.now)
	s.post(s.elector.Leader(), leader.Question, it)
}

// nextDue returns the time of the next pending work.
func (s *Strategy) nextDue() (at time.Time) {
	if !s.alive[s.cfg.Self] {
		return at
	}
	if len(s.pending.queue) > 0 {
		at = s.pending.queue[0].at
	}
	if at = Earliest(at, s.owners.rotateAt); !s.synced {
		at = Earliest(at, s.syncAt)
	}
	return at
}
