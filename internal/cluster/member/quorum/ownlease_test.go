package quorum

import (
	"errors"
	"testing"
	"time"

	"kumo/internal/cluster/member"
)

func newOwnLease() *ownLease {
	return &ownLease{env: &env{self: "a~1", timing: member.LAN(), now: time.Unix(1e9, 0)}, instance: 1}
}

// TestALeaseCountsFromItsRequest renews a lease: it is valid for its TTL from before the request, however late the
// answer, and not at all without a successful answer.
func TestALeaseCountsFromItsRequest(t *testing.T) {
	l := newOwnLease()
	asked := l.env.now
	l.renew(Proposal{})
	if w := actions[member.Write](l.env); len(w) != 1 || w[0].Key != "lease/a~1" || l.valid() {
		t.Fatalf("%+v is written", w)
	}
	l.env.now = asked.Add(l.env.timing.Beat)
	if l.renew(Proposal{}); len(l.env.actions) > 0 {
		t.Error("two renewals are under way")
	}
	if renewed, _ := l.wrote(member.Wrote{Revision: 5}); !renewed || !l.until.Equal(asked.Add(l.env.timing.TTL)) {
		t.Errorf("a lease requested at %v ends at %v", asked, l.until)
	}
	until := l.until
	for _, err := range []error{member.ErrStale, errors.New("no quorum")} {
		l.env.now = l.next
		l.renew(Proposal{})
		if renewed, _ := l.wrote(member.Wrote{Err: err}); renewed || l.until != until || !l.due().After(l.env.now) {
			t.Errorf("%v: the lease ends at %v, not %v; next %v", err, l.until, until, l.due())
		}
	}
	l.env.now = until
	l.renew(Proposal{})
	if _, gap := l.wrote(member.Wrote{Revision: 6}); !gap || l.process != 5 {
		t.Errorf("a gap of %v is not one, or the process has become %d", l.env.timing.TTL, l.process)
	}
}

// TestNewsGoesAtOnce: other nodes wait for the end of this node's epoch, and for its batch.
func TestNewsGoesAtOnce(t *testing.T) {
	l := newOwnLease()
	renews := func(p Proposal) bool {
		l.renew(p)
		defer l.wrote(member.Wrote{Revision: l.revision + 1})
		return len(actions[member.Write](l.env)) > 0
	}
	if !renews(Proposal{}) || renews(Proposal{}) || !renews(Proposal{Batch: 7}) || renews(Proposal{Batch: 7}) {
		t.Error("a new batch does not go at once, or an old one does")
	}
	if l.done = 3; !renews(Proposal{Batch: 7}) || l.written.Done != 3 {
		t.Error("the end of an epoch does not go at once")
	}
}

// TestEntriesThatEndAMember reads entries of the lease that other processes have written.
func TestEntriesThatEndAMember(t *testing.T) {
	for name, c := range map[string]struct {
		lease        *Lease
		joined, ours bool
		lost, failed bool
		offers       uint64
	}{
		"none yet":               {},
		"gone":                   {ours: true, lost: true},
		"gone since it joined":   {joined: true, lost: true},
		"revoked":                {lease: &Lease{Instance: 1, Revoked: true}, ours: true, lost: true},
		"another process's":      {lease: &Lease{Instance: 2}, ours: true, failed: true},
		"an earlier process's":   {lease: &Lease{Instance: 2, Proposal: Proposal{Batch: 9}}, offers: 9},
		"this process's renewal": {lease: &Lease{Instance: 1, Proposal: Proposal{Batch: 9}}, ours: true},
	} {
		l := newOwnLease()
		l.joined, l.acquired = c.joined, c.ours
		e := member.Entry{Revision: 3}
		if c.lease != nil {
			e.Value = c.lease.Encode()
		}
		offer, end := l.entry(e)
		_, lost := end.(member.Lost)
		_, failed := end.(member.Failed)
		if offer == nil {
			offer = &Proposal{}
		}
		if lost != c.lost || failed != c.failed || offer.Batch != c.offers {
			t.Errorf("%s: offer %+v, end %+v", name, offer, end)
		}
	}
}
