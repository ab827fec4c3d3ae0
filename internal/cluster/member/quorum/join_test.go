package quorum

import (
	"testing"
	"time"
)

// TestManyJoinAtOnce starts nodes at the same time, as in a new cluster. They join one after the other; a node that was
// too late waits briefly, and not as long as for a change that another node makes.
func TestManyJoinAtOnce(t *testing.T) {
	const nodes = 6
	for seed := range uint64(20) {
		w := newWorld(t, seed)
		for i := range nodes {
			w.add(node(i), false)
		}
		took := time.Duration(0)
		for ; took < time.Minute; took += 250 * time.Millisecond {
			w.run(250 * time.Millisecond)
			if table, err := ParseTable(w.keys[TableKey].Value); err == nil && len(table.Members) == nodes && table.isFinalized() {
				break
			}
		}
		if took > 6*time.Second {
			t.Errorf("seed %d: %d nodes have joined after %v", seed, nodes, took)
		}
	}
}
