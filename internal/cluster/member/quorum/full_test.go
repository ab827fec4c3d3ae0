package quorum

import (
	"strings"
	"testing"
	"time"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
)

// TestNoSlotIsLeft: a node that joins when no slot is free fails, and nothing changes for the others.
func TestNoSlotIsLeft(t *testing.T) {
	w := newWorld(t, 1)
	w.slot = func(members []strategy.Member, _ strategy.Node) int {
		if len(members) == 2 {
			return -1
		}
		return len(members)
	}
	for i := range 3 {
		w.add(node(i), false)
		w.run(30 * time.Second)
	}
	late := w.nodes[node(2)]
	failed, ok := late.ends[0].(member.Failed)
	if !ok || !strings.Contains(failed.Err.Error(), "full, with 2 nodes") {
		t.Errorf("the third of two ends with %+v", late.ends)
	}
	if err := w.check(nil); err != nil {
		t.Error(err)
	}
}
