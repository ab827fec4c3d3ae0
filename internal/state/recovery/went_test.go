package recovery

import (
	"slices"
	"testing"

	"kumo/internal/cluster/member"
	"kumo/internal/state/entry"
)

func TestWhatWentIsKnownUntilItIsSettled(t *testing.T) {
	one, two := member.Transfer{From: "a", To: "b", Epoch: 3}, member.Transfer{From: "a", To: "c", Epoch: 5}
	var enc entry.Encoder
	enc.TransfersDone([]member.Transfer{one, two})
	s := &replay{State: &State{}}
	for _, step := range []struct {
		behind bool
		want   []member.Transfer
	}{{true, nil}, {false, []member.Transfer{one, two}}} {
		s.beforeCheckpoint = step.behind
		if err := entry.Read(enc.Writer, s); err != nil || !slices.Equal(s.Went(), step.want) {
			t.Errorf("behind %v: %v (%v), want %v", step.behind, s.Went(), err, step.want)
		}
	}
	enc.Writer = nil
	enc.EpochSettled(3)
	if err := entry.Read(enc.Writer, s); err != nil || !slices.Equal(s.Went(), []member.Transfer{two}) {
		t.Errorf("settled: %v (%v)", s.Went(), err)
	}
}
