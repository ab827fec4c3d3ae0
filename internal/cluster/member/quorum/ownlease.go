package quorum

import (
	"errors"
	"time"

	"kumo/internal/cluster/member"
)

// An ownLease guards this node's right to send requests: its lease, the registry entry lease/SELF, which it renews once
// a beat. The lease also carries the node's finished epoch, its batch of moves and its report.
//
// Invariants: the lease counts from before the request for renewal, so it ends here before any other node revokes it.
// One renewal is under way at a time. An entry that is revoked, deleted or written by another process ends the Member.
type ownLease struct {
	env      *env
	instance uint64
	joined   bool // Config.Joined

	revision    uint64
	busy        bool      // a renewal is under way
	requestedAt time.Time // when it was requested
	until       time.Time // end of the lease
	next        time.Time // time of the next renewal
	beat        uint64
	acquired    bool   // this process has acquired the lease
	process     uint64 // revision with which this process acquired it: each later process has a greater one
	done        uint64 // last epoch that this node has finished
	report      []byte
	requested   Lease // content of the last requested renewal
	written     Lease // content of the last acknowledged renewal
}

// valid reports whether this node may act as a member now.
func (l *ownLease) valid() bool { return l.until.After(l.env.now) }

// renew requests a renewal if it is due, or at once if other nodes wait for its content.
func (l *ownLease) renew(offer Proposal) {
	now := l.env.now
	if l.busy || l.next.After(now) && l.requested.Done >= l.done && l.requested.Batch == offer.Batch {
		return
	}
	l.beat++
	l.requested = Lease{Instance: l.instance, Beat: l.beat, Done: l.done, Proposal: offer, Report: l.report}
	l.busy, l.requestedAt, l.next = true, now, now.Add(l.env.timing.Beat)
	l.env.do(member.Write{Key: leaseKey(l.env.self), Value: l.requested.Encode(), Revision: l.revision})
}

// wrote applies the result of a renewal. A gap means that the registry was out of reach for some beats.
func (l *ownLease) wrote(w member.Wrote) (renewed, gap bool) {
	t, now := l.env.timing, l.env.now
	l.busy = false
	if w.Err != nil {
		l.next = now.Add(t.Beat / 4)
		if errors.Is(w.Err, member.ErrStale) {
			// the watch reports the writer: an earlier attempt of this process, or another node
			l.next = now.Add(t.Beat)
		}
		return false, false
	}
	l.revision, l.written = max(l.revision, w.Revision), l.requested
	gap = l.until.Before(now) || now.Sub(l.until.Add(-t.TTL)) > 3*t.Beat
	if !l.acquired {
		l.process = l.revision
	}
	l.acquired, l.until = true, l.requestedAt.Add(t.TTL)
	return true, gap
}

// entry applies the lease as the watch has read it. Until this process has acquired the lease, it returns the batch of
// moves that an earlier process offered. end is the Member's last action, if the lease is lost.
func (l *ownLease) entry(e member.Entry) (offer *Proposal, end member.Action) {
	if e.Revision <= l.revision {
		return nil, nil
	}
	lease, err := ParseLease(e.Value)
	switch {
	case e.Value == nil && (l.acquired || l.joined):
		return nil, member.Lost{Why: "its lease was deleted"}
	case e.Value == nil:
		l.revision = 0
		return nil, nil
	case err != nil:
		return nil, failed("the lease of %s is in a format that this version of kumo cannot read", l.env.self.Name())
	case lease.Revoked:
		return nil, member.Lost{Why: "its lease has ended, and other nodes have taken over"}
	case lease.Instance != l.instance && l.acquired:
		return nil, failed("another process runs as %s, from a copy of this node's folder", l.env.self.Name())
	}
	l.revision = e.Revision
	if lease.Instance == l.instance && !l.busy && lease.Beat == l.beat {
		l.next = l.env.now // the registry has stored an earlier attempt after all
	}
	if l.acquired {
		return nil, nil
	}
	earlier := lease.Proposal // not &lease.Proposal: that would allocate each lease
	return &earlier, nil
}

// delete removes the lease of a node that has left.
func (l *ownLease) delete() {
	l.env.do(member.Write{Key: leaseKey(l.env.self), Revision: l.revision})
}

// due returns when the lease needs attention.
func (l *ownLease) due() time.Time {
	if l.busy {
		return l.env.now.Add(l.env.timing.Beat)
	}
	return l.next
}
