package quorum

import (
	"slices"
	"testing"
	"time"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
)

// newPeerLeases returns the leases that a node watches in a cluster of five.
func newPeerLeases(self strategy.Node) *peerLeases {
	env := &env{self: self, timing: member.LAN(), now: time.Unix(1e9, 0), table: &Table{Epoch: 2, Finalized: 1}}
	for i := range 5 {
		env.table.Members = append(env.table.Members, strategy.Member{Node: node(i)})
	}
	return &peerLeases{env: env, jitter: 0.5, leases: map[strategy.Node]*peer{}, dead: map[strategy.Node]bool{},
		behind: map[strategy.Node]bool{}}
}

func entryOf(l Lease, revision uint64) member.Entry {
	return member.Entry{Value: l.Encode(), Revision: revision}
}

// TestGuardsWatchAllLeases, and the other members those of the guards.
func TestGuardsWatchAllLeases(t *testing.T) {
	for self, want := range map[strategy.Node][]string{
		node(0): {"lease/"},
		node(4): {"lease/n4~1", "lease/n0~1", "lease/n1~1", "lease/n2~1"},
		"n4~2":  {"lease/n4~2", "lease/n0~1", "lease/n1~1", "lease/n2~1", "lease/n4~1"}, // joins: n4~1 is its namesake
	} {
		l := newPeerLeases(self)
		if keys := l.assign(self == "n4~2"); !slices.Equal(keys, want) {
			t.Errorf("%s watches %v, not %v", self, keys, want)
		}
	}
}

// TestAnExpiredLeaseIsRevoked revokes leases that were not renewed in time. Time without the registry does not count.
func TestAnExpiredLeaseIsRevoked(t *testing.T) {
	l := newPeerLeases(node(0))
	l.assign(false)
	l.entry(node(1), entryOf(Lease{Instance: 1}, 1))
	l.entry(node(2), entryOf(Lease{Instance: 2}, 2))
	l.entry("x~1", entryOf(Lease{Instance: 3}, 3)) // no participant
	revoked := func() (keys []string) {
		l.revokeExpired()
		for _, w := range actions[member.Write](l.env) {
			if lease, err := ParseLease(w.Value); err != nil || !lease.Revoked {
				t.Errorf("%s becomes %+v, %v", w.Key, lease, err)
			}
			keys = append(keys, w.Key)
		}
		return keys
	}
	limit := l.env.timing.TTL + l.env.timing.Margin
	l.env.now = l.env.now.Add(limit / 2)
	l.entry(node(2), entryOf(Lease{Instance: 2, Beat: 1}, 4))
	l.env.now = l.env.now.Add(limit/2 - 1)
	if got := revoked(); got != nil {
		t.Errorf("%v are revoked too early", got)
	}
	l.env.now = l.env.now.Add(1)
	if got := revoked(); !slices.Equal(got, []string{"lease/n1~1"}) {
		t.Errorf("%v are revoked", got)
	}
	l.wrote(node(1), member.Wrote{Revision: 5})
	if dead := l.deadNodes(); !slices.Equal(dead, []strategy.Node{node(1)}) {
		t.Errorf("%v are dead", dead)
	}
	l.env.now = l.env.now.Add(limit / 2)
	if l.restartTimeouts(); revoked() != nil {
		t.Error("a lease is revoked just after the registry was out of reach")
	}
	l.env.now = l.env.now.Add(limit)
	if got := revoked(); !slices.Equal(got, []string{"lease/n2~1"}) {
		t.Errorf("%v are revoked", got)
	}
}

// TestAGuardKnowsWhoIsBehind reads of each member that it has finished the epoch.
func TestAGuardKnowsWhoIsBehind(t *testing.T) {
	l := newPeerLeases(node(0))
	l.assign(false)
	for i := 1; i < 5; i++ {
		if l.noneBehind() {
			t.Fatalf("nobody is behind, and %d members have not finished", 5-i)
		}
		l.entry(node(i), entryOf(Lease{Done: 1}, uint64(i)))
		l.entry(node(i), entryOf(Lease{Done: 2}, uint64(10+i)))
	}
	if !l.noneBehind() || l.doneBy(node(3)) != 2 {
		t.Errorf("%v are behind", l.behind)
	}
	l.env.table = l.env.table.without(node(4))
	if l.assign(false); len(l.behind) != 4 || !l.behind[node(4)] {
		t.Errorf("under a new epoch %v are behind", l.behind)
	}
	other := newPeerLeases(node(4))
	if other.assign(false); other.noneBehind() {
		t.Error("a node that is no guard takes all others for done")
	}
}
