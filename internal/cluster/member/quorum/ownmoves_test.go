package quorum

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
)

func newOwnMoves(env *env) *ownMoves {
	records := moveRecords{env: env, read: map[strategy.Node]record{}}
	return &ownMoves{env: env, records: &records}
}

// TestABatchIsBounded requests more moves than a batch may have; the batches have them in the order of the requests.
func TestABatchIsBounded(t *testing.T) {
	o := newOwnMoves(&env{self: "a~1"})
	var all []string
	for i := range 3*maxMoves + 5 {
		all = append(all, fmt.Sprintf("h%d.example", (i*7919)%(1<<20)))
	}
	o.request(all, "b~1")
	for len(o.requested) > 0 {
		batch := o.choose()
		for h := range batch {
			if !slices.Contains(all[:len(batch)], h) {
				t.Fatalf("%s was requested later than others", h)
			}
		}
		all = all[len(batch):]
		if len(batch) > maxMoves || len(encodeMoves(batch)) > maxMoveBytes+1<<10 || len(batch) == 0 {
			t.Fatalf("a batch has %d moves", len(batch))
		}
	}
	for i := range maxTargets + 1 {
		o.request([]string{fmt.Sprintf("h%d.example", i)}, node(i))
	}
	if batch := o.choose(); len(batch) != maxTargets || len(o.requested) != 1 {
		t.Errorf("a batch goes to %d nodes, and %d are left", len(batch), len(o.requested))
	}
}

// TestAHostMayMoveTwice requests a move again: while it waits in a batch, that changes nothing; once an epoch has taken
// the batch, the host may have come back, so it moves again.
func TestAHostMayMoveTwice(t *testing.T) {
	env := &env{self: "b~1", timing: member.LAN(), table: &Table{Epoch: 2, Finalized: 2}}
	o := newOwnMoves(env)
	wants := func() bool {
		o.request([]string{"h"}, "c~1")
		return o.requested["h"] == "c~1"
	}
	o.records.setOwn(record{7, map[string]strategy.Node{"h": "c~1"}})
	o.offer = Proposal{Batch: 7, To: []strategy.Node{"c~1"}}
	if wants() {
		t.Error("it is in two batches that wait")
	}
	env.table = &Table{Epoch: 3, Finalized: 2, Moves: []Moves{{From: "b~1", Batch: 7, To: []strategy.Node{"c~1"}}}}
	o.newEpoch()
	if !wants() {
		t.Error("it is not wanted again while it moves")
	}
}

// TestARecordIsNotChangedBeforeItsEpochEnds writes a batch, and another one only after the epoch that took the first.
func TestARecordIsNotChangedBeforeItsEpochEnds(t *testing.T) {
	members := []strategy.Member{{Node: "a~1"}, {Node: "b~1"}}
	env := &env{self: "a~1", timing: member.LAN(), table: &Table{Epoch: 2, Finalized: 2, Members: members}}
	o := newOwnMoves(env)
	writes := func() bool {
		env.actions, env.now = nil, env.now.Add(env.timing.Beat)
		o.write()
		return len(env.actions) > 0
	}
	o.request([]string{"h", "i"}, "b~1")
	if !writes() || writes() || o.idle() {
		t.Fatal("a batch is not written once")
	}
	if o.wrote(member.Wrote{Err: errors.New("no quorum")}); !writes() {
		t.Fatal("a batch that was not written is lost")
	}
	o.wrote(member.Wrote{Revision: 7})
	o.request([]string{"j"}, "b~1")
	if writes() || !o.offer.waits() {
		t.Error("the record changes while its batch waits")
	}
	env.table = &Table{Epoch: 3, Finalized: 2, Members: members, Moves: []Moves{{From: "a~1", Batch: 7}}}
	if o.newEpoch(); writes() || o.offer.waits() {
		t.Error("the record changes under the epoch that takes its batch")
	}
	env.table = env.table.end()
	if !writes() || len(o.writing) != 1 {
		t.Errorf("after the epoch %v are written", o.writing)
	}
}
