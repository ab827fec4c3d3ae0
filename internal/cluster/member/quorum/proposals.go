package quorum

import (
	"errors"
	"fmt"
	"time"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
)

// proposals guards this node's changes of the table: it decides which table should come next, and when this node writes
// it.
//
// It writes the registry entry table, by compare-and-set on the revision that the node has read. Invariants: one
// proposal is under way at a time. Dead nodes are removed at any time; a node joins or leaves, or hosts move, only when
// the last epoch has ended.
type proposals struct {
	env    *env
	layout string
	slot   func(members []strategy.Member, node strategy.Node) int // Config.Slot
	jitter float64

	// state of the other parts
	rank      func() time.Duration
	dead      func() []strategy.Node // participants with revoked leases, sorted
	allDone   func() bool            // all participants have finished the epoch
	movesIdle func() bool            // no host of this node moves or will move
	batches   func() []Moves         // batches that this node is to propose now, as a guard

	revision  uint64 // revision of the table
	busy      bool
	notBefore time.Time // delay, so that several nodes do not write the same at once
	conflicts int       // proposals that lost to those of other nodes
	leaving   bool      // Leave was received
}

// propose writes the next table, if the table should change and it is this node's turn. An error ends the Member.
func (p *proposals) propose(ph phase) error {
	if p.busy || p.notBefore.After(p.env.now) {
		return nil
	}
	t, err := p.next(ph)
	if t == nil {
		return err
	}
	p.busy = true
	p.env.do(member.Write{Key: TableKey, Value: t.Encode(), Revision: p.revision})
	return nil
}

func (p *proposals) wrote(err error, joining bool) {
	p.busy = false
	p.notBefore = p.env.now.Add(p.env.timing.Beat / 4) // the watch reports the new table
	if errors.Is(err, member.ErrStale) {
		p.conflicts++
		p.stagger(joining)
	}
}

// stagger delays the next proposal, as other nodes may be about to write the same. A joining node writes what no other
// node writes for it: it delays only to take turns, longer after each conflict.
func (p *proposals) stagger(joining bool) {
	wait := p.rank()
	if joining {
		turn := p.env.timing.Beat / 8 << min(p.conflicts, 8)
		wait = min(wait, time.Duration((0.5+p.jitter)*float64(turn)))
	}
	p.notBefore = p.env.now.Add(wait)
}

// due returns when a delayed proposal may be written; zero if none is delayed.
func (p *proposals) due() time.Time { return p.env.later(p.notBefore, !p.busy) }

// next returns the table that should replace the current one; nil if none should.
func (p *proposals) next(ph phase) (*Table, error) {
	t, self := p.env.table, p.env.self
	if t == nil {
		return &Table{Epoch: 1, Finalized: 1, Layout: p.layout, Members: []strategy.Member{p.member(nil)}}, nil
	}
	switch dead := p.dead(); {
	case len(dead) > 0:
		return t.removeDead(dead), nil
	case ph == joining && (t.isFinalized() || len(t.Members) == 0):
		if t.namesake(self) != "" {
			return nil, nil
		}
		if p.slot != nil && p.slot(t.Members, self) < 0 {
			return nil, fmt.Errorf("the cluster is full, with %d nodes: a node must leave first",
				len(t.Members))
		}
		return t.with(p.member(t.Members)), nil
	case ph == active && len(t.Members) == 0: // all receivers of this node's hosts have died
		return t.with(p.member(t.Members)), nil
	case !t.isFinalized():
		if p.allDone() {
			return t.end(), nil
		}
	case ph == active && p.leaving && t.has(self) && len(t.Members) > 1 && p.movesIdle():
		return t.without(self), nil
	case ph == active:
		if batches := p.batches(); len(batches) > 0 {
			return t.move(batches), nil
		}
	}
	return nil, nil
}

// member returns this node as a member, given the others.
func (p *proposals) member(others []strategy.Member) strategy.Member {
	slot := -1
	if p.slot != nil {
		slot = p.slot(others, p.env.self)
	}
	return strategy.Member{Node: p.env.self, Slot: slot}
}
