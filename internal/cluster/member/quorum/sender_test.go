package quorum

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
)

// TestChunksArriveOnceAndInOrder connects a sender with a receiver by a net that loses, reorders and repeats messages.
// In some runs the receiver's process restarts in between and undoes the transfer.
func TestChunksArriveOnceAndInOrder(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		out := &env{self: "a~1", timing: member.LAN()}
		s := &sender{env: out, from: "a~1", epoch: 2, attempt: 1 << 16, flows: map[strategy.Node]*flow{"b~1": {}}}
		in, to := newReceiver()
		var want, got []string
		for i := range 50 {
			want = append(want, fmt.Sprint(i))
		}
		left, attempt := want, s.attempt
		var net [][]byte
		restart := 1 + rng.IntN(200)
		for round := 0; !s.isComplete(); round++ {
			if round > 10_000 {
				t.Fatalf("seed %d: the transfer does not end", seed)
			}
			if round == restart && len(to.expected) > 0 {
				in, to = newReceiver()
				to.process, got = 1, nil
			}
			out.now, in.now = out.now.Add(out.timing.Retry/4), in.now.Add(out.timing.Retry/4)
			s.resend()
			n := s.request()
			if s.attempt != attempt {
				left, attempt = want, s.attempt
			}
			for range n {
				if len(left) == 0 {
					s.chunk("", nil)
					break
				}
				s.chunk("b~1", []byte(left[0]))
				left = left[1:]
			}
			if f := s.flows["b~1"]; len(f.queue) > out.timing.Window+1 {
				t.Fatalf("seed %d: %d chunks are under way", seed, len(f.queue))
			}
			for _, m := range append(actions[member.Send](out), actions[member.Send](in)...) {
				for range rng.IntN(3) {
					net = append(net, m.Data)
				}
			}
			for range len(net) / 2 {
				i := rng.IntN(min(len(net), 6))
				msg, err := decode(net[i])
				if err != nil {
					t.Fatal(err)
				}
				net = slices.Delete(net, i, i+1)
				switch msg := msg.(type) {
				case chunkMsg:
					to.chunk("a~1", msg)
				case ackMsg:
					s.ack("b~1", msg)
				}
			}
			rest := in.actions
			for in.actions = nil; len(rest) > 0; rest = rest[1:] {
				switch a := rest[0].(type) {
				case member.Send:
					in.actions = append(in.actions, a)
				case member.Drop:
					got = nil
					to.dropped(a.Transfer)
				case member.Import:
					if !a.Last {
						got = append(got, string(a.Data))
					}
					to.taken(a.Transfer)
				}
			}
		}
		if !slices.Equal(got, want) || !to.complete() {
			t.Fatalf("seed %d: %v arrived, complete %v", seed, got, to.complete())
		}
	}
}
