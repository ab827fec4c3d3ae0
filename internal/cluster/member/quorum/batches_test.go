package quorum

import (
	"slices"
	"testing"
	"time"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
)

// TestAnEpochTakesTheOldestFirst has more batches than an epoch takes, a batch of a member that may not have finished
// the last epoch, and a batch of a node that is not a member.
func TestAnEpochTakesTheOldestFirst(t *testing.T) {
	env := &env{self: "a~1", timing: member.LAN(), table: &Table{Epoch: 7, Finalized: 7}}
	done := map[strategy.Node]uint64{}
	b := batches{env: env, waiting: map[strategy.Node]Proposal{}, rank: func() time.Duration { return 0 },
		done: func(n strategy.Node) uint64 { return done[n] }}
	var to []strategy.Node
	for i := range maxPairs / 2 {
		to = append(to, node(i))
	}
	for i := range 5 {
		n := node(i)
		env.table.Members = append(env.table.Members, strategy.Member{Node: n})
		done[n] = 7
		b.offered(n, &Proposal{Batch: uint64(10 - i), To: to})
	}
	done[node(4)] = 6 // the oldest: the last epoch may have taken it
	done[node(5)] = 7
	b.offered(node(5), &Proposal{Batch: 1, To: to}) // no member
	if b.next() != nil {
		t.Error("no time is left for other batches to join")
	}
	env.now = b.due()
	var got []strategy.Node
	for _, m := range b.next() {
		got = append(got, m.From)
	}
	if want := []strategy.Node{node(3), node(2)}; !slices.Equal(got, want) {
		t.Errorf("the epoch takes the batches of %v, not %v", got, want)
	}
	for i := range 4 {
		b.offered(node(i), &Proposal{Batch: uint64(10 - i), Taken: 8})
	}
	if got := b.next(); len(got) > 0 || b.due() != (time.Time{}) {
		t.Errorf("the next epoch takes %d batches that another one has taken", len(got))
	}
}
