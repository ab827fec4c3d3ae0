package quorum

import (
	"cmp"
	"slices"
	"time"

	"kumo/internal/cluster/strategy"
)

// maxPairs bounds the pairs of nodes between which one epoch moves hosts, unless one batch alone has more.
const maxPairs = 1 << 14

// batches guards, at a guard, the batches of moves that members' leases offer, until an epoch takes them. Other nodes
// have none.
//
// Invariants: an epoch takes the oldest batches first. It takes no batch of a member that may not have finished the
// current epoch, as that epoch may have taken the batch already.
type batches struct {
	env       *env
	rank      func() time.Duration
	done      func(strategy.Node) uint64 // last epoch that a member has finished
	waiting   map[strategy.Node]Proposal
	notBefore time.Time
}

// offered applies the batch in a member's lease.
func (b *batches) offered(n strategy.Node, p *Proposal) {
	if !p.waits() {
		delete(b.waiting, n)
		return
	}
	if len(b.waiting) == 0 {
		b.postpone()
	}
	b.waiting[n] = *p
}

func (b *batches) clear() { clear(b.waiting) }

// postpone delays the next batches so that more can join them; changes of the members go first.
func (b *batches) postpone() { b.notBefore = b.env.now.Add(b.env.timing.Beat/8 + b.rank()) }

// due returns when delayed batches may be proposed; zero if there are none.
func (b *batches) due() time.Time { return b.env.later(b.notBefore, len(b.waiting) > 0) }

// next returns the batches that the next epoch should take now, the oldest first.
func (b *batches) next() []Moves {
	if b.notBefore.After(b.env.now) {
		return nil
	}
	var all []Moves
	for n, p := range b.waiting {
		if b.env.table.has(n) && b.done(n) >= b.env.table.Epoch {
			all = append(all, Moves{From: n, Batch: p.Batch, To: p.To})
		}
	}
	slices.SortFunc(all, func(a, b Moves) int { return cmp.Compare(a.Batch, b.Batch) })
	pairs := 0
	for i := range all {
		if pairs += len(all[i].To); i > 0 && pairs > maxPairs {
			return all[:i]
		}
	}
	return all
}
