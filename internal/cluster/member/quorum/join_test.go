package quorum

import (
	"testing"
	"time"
)

// TestManyJoinAtOnce has nodes begin at the same time, as those of a new cluster do. They join one after the other; who
// was too late waits a little, and not as for something that another node sees to.
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
