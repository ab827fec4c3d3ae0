package quorum

import (
	"strings"
	"testing"
	"time"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
)

// TestNoSlotIsLeft: who comes when all places are taken is told so, and nothing changes for the others.
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
	if !ok || !strings.Contains(failed.Err.Error(), "planned for, 2") {
		t.Errorf("the third of two ends with %+v", late.ends)
	}
	if err := w.check(nil); err != nil {
		t.Error(err)
	}
}
