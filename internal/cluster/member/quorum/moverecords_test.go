package quorum

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
)

func TestRecordsOfMoves(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	moves := map[string]strategy.Node{}
	for i := range 1000 {
		moves[fmt.Sprintf("h%d.example", i)] = node(rng.IntN(9))
	}
	value := encodeMoves(moves)
	if got, err := parseMoves(value); err != nil || !reflect.DeepEqual(got, moves) {
		t.Errorf("%d moves came back as %d, %v", len(moves), len(got), err)
	}
	if _, err := parseMoves(value[:len(value)-1]); err == nil {
		t.Error("a part of a record is taken for a whole one")
	}
}

// FuzzMoves reads arbitrary records.
func FuzzMoves(f *testing.F) {
	f.Add(encodeMoves(map[string]strategy.Node{"a.example": "a~1", "b.example": "b~1"}))
	f.Fuzz(func(t *testing.T, data []byte) {
		moves, err := parseMoves(data)
		if err != nil {
			return
		}
		if again, err := parseMoves(encodeMoves(moves)); err != nil || !reflect.DeepEqual(moves, again) {
			t.Errorf("%v came back as %v, %v", moves, again, err)
		}
	})
}

// TestARecordCountsUnderItsEpoch reads a batch that the table names, then another revision.
func TestARecordCountsUnderItsEpoch(t *testing.T) {
	env := &env{self: "a~1", table: &Table{Epoch: 3, Finalized: 2, Moves: []Moves{{From: "b~1", Batch: 7}}}}
	r := moveRecords{env: env, read: map[strategy.Node]record{}}
	moves := map[string]strategy.Node{"h": "c~1"}
	if !r.known("c~1") || r.known("b~1") || r.under(3, "b~1") != nil {
		t.Error("moves are known before their record is read")
	}
	for revision, known := range map[uint64]bool{7: true, 8: false} {
		if err := r.entry("b~1", member.Entry{Value: encodeMoves(moves), Revision: revision}); err != nil {
			t.Fatal(err)
		}
		if got := r.under(3, "b~1"); r.known("b~1") != known || (got != nil) != known || r.under(2, "b~1") != nil {
			t.Errorf("revision %d: known %v, %v", revision, r.known("b~1"), got)
		}
		r.read = map[strategy.Node]record{"a~1": {5, moves}}
	}
	r.read["b~1"] = record{7, moves}
	if r.epochFinalized(); len(r.read) != 1 || r.own()["h"] != "c~1" {
		t.Errorf("after the end of the epoch %v are retained", r.read)
	}
}
