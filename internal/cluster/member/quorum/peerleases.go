package quorum

import (
	"maps"
	"slices"
	"strings"
	"time"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
)

// peerLeases guards the other nodes' leases: it decides which leases this node watches, revokes those that are not
// renewed in time, and deletes those of failed nodes after the end of the epoch.
//
// Invariants: a lease is revoked by compare-and-set, and only after it has not changed for its TTL and a margin, by
// this node's clock. Time in which the registry may have been out of reach does not count. dead and behind name
// participants of the current table only; behind is known to guards only.
type peerLeases struct {
	env            *env
	jitter         float64 // random, from the seed: spreads writes of several nodes over time
	leases         map[strategy.Node]*peer
	guard          bool                   // this node watches all leases
	scanAt         time.Time              // earliest time when a lease may have expired
	reachableSince time.Time              // time since when the registry has answered in time
	dead           map[strategy.Node]bool // participants with revoked leases
	behind         map[strategy.Node]bool // participants that have not finished the epoch
}

// A peer is another node whose lease is watched.
type peer struct {
	lease    Lease
	revision uint64
	since    time.Time // when the last change was seen
	renewals int       // number of renewals seen
	revoking bool
}

func nodeOf(key string) (strategy.Node, bool) {
	name, ok := strings.CutPrefix(key, LeasePrefix)
	return strategy.Node(name), ok
}

// assign chooses the leases to watch under a new table, and returns their keys, this node's own included.
func (l *peerLeases) assign(joining bool) (keys []string) {
	t, self := l.env.table, l.env.self
	guards := t.guards()
	l.guard = slices.ContainsFunc(guards, func(g strategy.Member) bool { return g.Node == self })
	l.scanAt = l.env.now.Add(l.env.timing.TTL)
	var watched []strategy.Node // if this node is no guard
	for _, g := range guards {
		if g.Node != self {
			watched = append(watched, g.Node)
		}
	}
	if twin := t.namesake(self); joining && twin != "" {
		watched = append(watched, twin)
	}
	clear(l.behind)
	clear(l.dead)
	for n, p := range l.leases {
		switch {
		case !l.guard && !slices.Contains(watched, n):
			delete(l.leases, n)
		case p.lease.Revoked:
			l.markDead(n)
		}
	}
	if !l.guard {
		keys = []string{leaseKey(self)}
		for _, n := range watched {
			keys = append(keys, leaseKey(n))
		}
		return keys
	}
	t.each(func(n strategy.Node) {
		if p := l.leases[n]; n != self && !t.isFailed(n) && (p == nil || p.lease.Done < t.Epoch) {
			l.behind[n] = true
		}
	})
	return []string{LeasePrefix}
}

// entry applies a lease as the watch has read it. It returns nil if the entry is old, invalid or deleted.
func (l *peerLeases) entry(n strategy.Node, e member.Entry) *peer {
	p := l.leases[n]
	if e.Value == nil {
		delete(l.leases, n)
		delete(l.dead, n)
		return nil
	}
	lease, err := ParseLease(e.Value)
	if err != nil || p != nil && e.Revision <= p.revision {
		return nil
	}
	if p == nil {
		p = &peer{renewals: -1}
		l.leases[n] = p
	}
	p.renewals++
	p.lease, p.revision, p.since = lease, e.Revision, l.env.now
	l.scanAt = earlier(l.scanAt, l.expiry(p))
	if lease.Revoked {
		l.markDead(n)
	}
	if l.guard && lease.Done >= l.env.table.Epoch {
		delete(l.behind, n)
	}
	return p
}

func (l *peerLeases) wrote(n strategy.Node, w member.Wrote) {
	p := l.leases[n]
	if p == nil {
		return
	}
	p.revoking = false
	if w.Err == nil {
		p.revision, p.lease.Revoked = w.Revision, true
		l.markDead(n)
	}
}

// revokeExpired revokes the leases of participants that have not renewed them.
func (l *peerLeases) revokeExpired() {
	now := l.env.now
	if l.env.table == nil || l.scanAt.After(now) {
		return
	}
	l.scanAt = now.Add(l.env.timing.TTL)
	for _, n := range sortedNodes(l.leases) {
		p := l.leases[n]
		if p.lease.Revoked || p.revoking || !l.env.table.participates(n) {
			continue
		}
		if at := l.expiry(p); at.After(now) {
			l.scanAt = earlier(l.scanAt, at)
			continue
		}
		revoked := p.lease
		revoked.Revoked = true
		p.revoking = true
		l.env.do(member.Write{Key: leaseKey(n), Value: revoked.Encode(), Revision: p.revision})
	}
}

// restartTimeouts restarts the timeouts of all leases: while the registry was out of reach, other nodes could not renew
// theirs.
func (l *peerLeases) restartTimeouts() { l.reachableSince, l.scanAt = l.env.now, time.Time{} }

// expiry returns when this node would revoke a lease.
func (l *peerLeases) expiry(p *peer) time.Time {
	t, since := l.env.timing, p.since
	if l.reachableSince.After(since) {
		since = l.reachableSince
	}
	return since.Add(t.TTL + t.Margin + l.rank())
}

// rank returns a delay that spreads over time the writes that several nodes would make at once: guards act in their
// order, other nodes later, after a random time.
func (l *peerLeases) rank() time.Duration {
	t := l.env.timing
	if l.env.table != nil {
		for i, g := range l.env.table.guards() {
			if g.Node == l.env.self {
				return time.Duration(i) * t.Beat / 2
			}
		}
	}
	return t.TTL/2 + time.Duration(float64(t.TTL/2)*l.jitter)
}

func (l *peerLeases) markDead(n strategy.Node) {
	if l.env.table != nil && l.env.table.participates(n) {
		l.dead[n] = true
	}
}

// deadNodes returns the participants with revoked leases, sorted.
func (l *peerLeases) deadNodes() []strategy.Node { return sortedNodes(l.dead) }

// noneBehind reports whether this node is a guard, and all others have finished the epoch.
func (l *peerLeases) noneBehind() bool { return l.guard && len(l.behind) == 0 }

// doneBy returns the last epoch that another node has finished; 0 if it is unknown or dead.
func (l *peerLeases) doneBy(n strategy.Node) uint64 {
	if p := l.leases[n]; p != nil && !p.lease.Revoked {
		return p.lease.Done
	}
	return 0
}

// each calls f with the batch that each lease offers.
func (l *peerLeases) each(f func(strategy.Node, *Proposal)) {
	for n, p := range l.leases {
		f(n, &p.lease.Proposal)
	}
}

// sweep lets the first guard delete the leases of failed nodes, and their records of moves, after the end of the epoch.
func (l *peerLeases) sweep() {
	if guards := l.env.table.guards(); len(guards) == 0 || guards[0].Node != l.env.self {
		return
	}
	for _, n := range sortedNodes(l.leases) {
		if p := l.leases[n]; p.lease.Revoked && !l.env.table.participates(n) {
			l.env.do(member.Write{Key: leaseKey(n), Revision: p.revision})
			if p.lease.Batch != 0 {
				l.env.do(member.Write{Key: movesKey(n), Revision: p.lease.Batch})
			}
		}
	}
}

// sortedNodes returns the keys of a map in order, so that the order of actions is deterministic.
func sortedNodes[V any](all map[strategy.Node]V) []strategy.Node {
	return slices.Sorted(maps.Keys(all))
}
