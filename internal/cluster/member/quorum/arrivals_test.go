package quorum

import (
	"slices"
	"testing"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
)

// newReceiver returns the arrivals of b~1, which expects a transfer from a~1 under epoch 2.
func newReceiver() (*env, *arrivals) {
	env := &env{self: "b~1", timing: member.LAN(), table: &Table{Epoch: 2, Finalized: 1,
		Members: []strategy.Member{{Node: "a~1"}, {Node: "b~1"}}}}
	a := &arrivals{env: env, forgetsPending: func() bool { return false }}
	a.abort()
	a.expect(shiftsAny)
	return env, a
}

// actions returns the actions of one type since the last call.
func actions[T member.Action](env *env) (all []T) {
	for _, a := range env.actions {
		if a, is := a.(T); is {
			all = append(all, a)
		}
	}
	env.actions = nil
	return all
}

// TestEarlyChunksAreBuffered receives the chunks of a transfer out of order: the holder receives them in order, and
// none needs to be sent again.
func TestEarlyChunksAreBuffered(t *testing.T) {
	env, a := newReceiver()
	tr := member.Transfer{From: "a~1", To: "b~1", Epoch: 2, Attempt: 1}
	var took []uint64
	for _, seq := range []uint64{3, 1, 1, 0, 99, 2, 4} {
		a.chunk("a~1", chunkMsg{t: tr, seq: seq, data: []byte{byte(seq)}})
		for _, take := range actions[member.Import](env) {
			took = append(took, take.Seq)
			if len(take.Data) != 1 || uint64(take.Data[0]) != take.Seq {
				t.Errorf("chunk %d has %v", take.Seq, take.Data)
			}
		}
	}
	if want := []uint64{0, 1, 2, 3, 4}; !slices.Equal(took, want) || a.early != 1 {
		t.Errorf("the holder was given %v, not %v, and %d bytes are buffered", took, want, a.early)
	}
	for seq := range uint64(100) {
		a.chunk("a~1", chunkMsg{t: tr, seq: 100 + seq, data: make([]byte, 1<<20)})
	}
	if in := a.incoming["a~1"]; len(in.early) > member.LAN().Window || a.early > maxEarly {
		t.Errorf("%d chunks are buffered, %d bytes", len(in.early), a.early)
	}
	if a.abort(); a.early != 0 {
		t.Errorf("%d bytes are buffered of transfers that have ended", a.early)
	}
}

// TestIncompleteTransfersAreUndone ends an epoch while the holder journals a chunk: the transfer is undone after that,
// unless the chunk was the last one.
func TestIncompleteTransfersAreUndone(t *testing.T) {
	tr := member.Transfer{From: "a~1", To: "b~1", Epoch: 2, Attempt: 1}
	for _, last := range []bool{false, true} {
		env, a := newReceiver()
		a.chunk("a~1", chunkMsg{t: tr, last: last})
		a.abort()
		env.table = &Table{Epoch: 3, Finalized: 1, Members: env.table.Members}
		a.expect(shiftsAny)
		if _, known := a.receivedFrom("a~1"); known || !a.undoing() || len(actions[member.Drop](env)) > 0 {
			t.Errorf("last %v: the transfer is undone while the holder journals a chunk", last)
		}
		next := chunkMsg{t: member.Transfer{From: "a~1", To: "b~1", Epoch: 3, Attempt: 1}}
		if a.chunk("a~1", next); len(env.actions) > 0 {
			t.Errorf("last %v: the next transfer begins before the last one is undone", last)
		}
		a.taken(tr)
		if drops := actions[member.Drop](env); len(drops) == 0 != last || a.complete() {
			t.Errorf("last %v: %v are undone", last, drops)
		}
		a.dropped(tr)
		if all, known := a.receivedFrom("a~1"); !known || slices.Contains(all, tr) != last {
			t.Errorf("last %v: complete are %v", last, all)
		}
		if a.chunk("a~1", next); len(actions[member.Import](env)) != 1 {
			t.Errorf("last %v: the next transfer does not begin", last)
		}
	}
}
