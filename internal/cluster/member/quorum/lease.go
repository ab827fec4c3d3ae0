package quorum

import (
	"errors"
	"strings"
	"time"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
)

// own is this node's lease.
type own struct {
	rev     uint64
	busy    bool      // a renewal is under way
	asked   time.Time // when it was
	until   time.Time
	next    time.Time // renewal
	beat    uint64
	ours    bool // it was had by this process
	report  []byte
	process uint64 // the revision with which this process got it: greater with each
	asks    Lease  // what its last renewal has asked to be written
	said    Lease  // what was written last
}

// A peer is another node whose lease is watched.
type peer struct {
	lease    Lease
	rev      uint64
	since    time.Time // when it was last seen to change
	renewals int       // seen
	revoking bool
}

func nodeOf(key string) (strategy.Node, bool) {
	name, ok := strings.CutPrefix(key, LeasePrefix)
	return strategy.Node(name), ok
}

// renew asks for a renewal of the lease when it is time.
func (m *Member) renew() {
	l := &m.lease
	if m.phase == starting || l.busy || l.next.After(m.now) && l.asks.Done >= m.done &&
		l.asks.Batch == m.moving.offer.Batch {
		return
	}
	l.beat++
	l.asks = Lease{Instance: m.cfg.Instance, Beat: l.beat, Done: m.done, Proposal: m.moving.offer, Report: l.report}
	l.busy, l.asked, l.next = true, m.now, m.now.Add(m.cfg.Timing.Beat)
	m.do(member.Write{Key: leaseKey(m.cfg.Self), Value: l.asks.Encode(), Revision: l.rev})
}

func (m *Member) wroteOwn(w member.Wrote) {
	l := &m.lease
	l.busy = false
	switch {
	case w.Err == nil:
		l.rev, l.said = max(l.rev, w.Revision), l.asks
		if m.guard {
			m.offered(m.cfg.Self, &l.said.Proposal)
		}
		m.renewed()
	case errors.Is(w.Err, member.ErrStale):
		// the watch tells who has written: this process with an earlier try, or who has revoked it
		l.next = m.now.Add(m.cfg.Timing.Beat)
	default:
		l.next = m.now.Add(m.cfg.Timing.Beat / 4)
	}
}

// renewed extends the lease from when the renewal was asked for.
func (m *Member) renewed() {
	l := &m.lease
	if l.until.Before(m.now) || m.now.Sub(l.until.Add(-m.cfg.Timing.TTL)) > 3*m.cfg.Timing.Beat {
		m.sound, m.scanAt = m.now, time.Time{} // others may not have been able to renew theirs, either
	}
	if !l.ours {
		l.process = l.rev
	}
	l.ours, l.until = true, l.asked.Add(m.cfg.Timing.TTL)
	if m.phase == acquiring {
		m.acquired()
		return
	}
	m.publish()
}

// acquired goes on from a lease that is had.
func (m *Member) acquired() {
	if !m.part() {
		m.phase = entering
		m.do(member.Enter{})
		return
	}
	m.unsure = !m.table.settled()
	m.enter()
}

// enter begins a member's work: it has joined, or a new process goes on with what an earlier one of the same identity
// had.
func (m *Member) enter() {
	m.phase = in
	for _, t := range m.cfg.Partial {
		m.retire(&arrival{t: t})
	}
	m.cfg.Partial = nil
	m.has, m.booked = m.table.Settled, m.table.Settled
	m.newEpoch()
	m.publish()
}

// ownEntry is told of the own lease by the watch.
func (m *Member) ownEntry(e member.Entry) {
	l := &m.lease
	if e.Revision <= l.rev {
		return
	}
	lease, err := ParseLease(e.Value)
	switch {
	case e.Value == nil && (l.ours || m.cfg.Joined):
		m.lost("its lease is gone")
		return
	case e.Value == nil:
		l.rev = 0
		return
	case err != nil:
		m.fail("the lease of %s is not one that this version of kumo reads", m.cfg.Self.Name())
		return
	case lease.Revoked:
		m.lost("its lease had ended, and others have taken over")
		return
	case lease.Instance != m.cfg.Instance && l.ours:
		m.fail("another process runs as %s, with a copy of its folder", m.cfg.Self.Name())
		return
	}
	l.rev = e.Revision
	if !l.ours { // what an earlier process has offered is not taken back
		m.moving.offer = lease.Proposal
	}
	if lease.Instance == m.cfg.Instance && !l.busy && lease.Beat == l.beat {
		l.next = m.now // an earlier try has been written after all
	}
}

// peerEntry is told of another node's lease by the watch.
func (m *Member) peerEntry(n strategy.Node, e member.Entry) {
	p := m.peers[n]
	if e.Value == nil {
		delete(m.peers, n)
		delete(m.dead, n)
		return
	}
	lease, err := ParseLease(e.Value)
	if err != nil || p != nil && e.Revision <= p.rev {
		return
	}
	if p == nil {
		p = &peer{renewals: -1}
		m.peers[n] = p
	}
	// A renewal that a process had asked for may be seen after it has ended; a second one may not.
	if p.renewals++; n.Name() == m.cfg.Self.Name() && m.phase <= joining && p.renewals > 1 && !lease.Revoked {
		m.fail("a node named %s runs in this cluster already: give this one another name", n.Name())
		return
	}
	p.lease, p.rev, p.since = lease, e.Revision, m.now
	m.scanAt = earlier(m.scanAt, m.expiry(n, p))
	if lease.Revoked {
		m.markDead(n)
		m.stagger()
	}
	if m.guard {
		m.offered(n, &lease.Proposal)
	}
	if m.guard && m.table != nil && lease.Done >= m.table.Epoch {
		delete(m.behind, n)
		if len(m.behind) == 0 && !m.table.settled() {
			m.stagger()
		}
	}
}

// expiry is when this node would revoke another's lease.
func (m *Member) expiry(n strategy.Node, p *peer) time.Time {
	t := m.cfg.Timing
	since := p.since
	if m.sound.After(since) {
		since = m.sound
	}
	return since.Add(t.TTL + t.Margin + m.rank())
}

// rank spreads over time what several nodes would do at once: guards in their order, others later by chance.
func (m *Member) rank() time.Duration {
	t := m.cfg.Timing
	if m.table != nil {
		for i, g := range m.table.guards() {
			if g.Node == m.cfg.Self {
				return time.Duration(i) * t.Beat / 2
			}
		}
	}
	return t.TTL/2 + time.Duration(float64(t.TTL/2)*m.jitter)
}

// stagger puts off what this node would write to the table, as others may be about to write the same. Who joins has
// something to write that nobody writes for it: it waits for its turn only, longer each time that others were sooner.
func (m *Member) stagger() {
	wait := m.rank()
	if m.phase == joining {
		wait = min(wait, time.Duration((0.5+m.jitter)*float64(m.cfg.Timing.Beat/8<<min(m.late, 8))))
	}
	m.proposeAt = m.now.Add(wait)
}

// watchOthers revokes the leases of members that have not been renewed. A node whose own lease is over judges nobody.
func (m *Member) watchOthers() {
	if m.table == nil || m.scanAt.After(m.now) || !m.lease.until.After(m.now) {
		return
	}
	m.scanAt = m.now.Add(m.cfg.Timing.TTL)
	for _, n := range sortedNodes(m.peers) {
		p := m.peers[n]
		if p.lease.Revoked || p.revoking || !m.table.part(n) {
			continue
		}
		if at := m.expiry(n, p); at.After(m.now) {
			m.scanAt = earlier(m.scanAt, at)
			continue
		}
		revoked := p.lease
		revoked.Revoked = true
		p.revoking = true
		m.do(member.Write{Key: leaseKey(n), Value: revoked.Encode(), Revision: p.rev})
	}
}
