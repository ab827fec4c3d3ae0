package sim

import (
	"testing"
	"time"
)

// stall is the longest time that a host is not asked though it could be, over some seeds, where nodes race for hosts of
// which each reaches a part: who has begun with a host, and loses it, hands it over. No worker is waited for, and no
// message is lost.
func stall(t *testing.T, nodes int) time.Duration {
	cfg := LAN()
	cfg.Nodes, cfg.Hosts, cfg.Apart, cfg.Formed, cfg.FaultEvery, cfg.Seeds = nodes, 1000, 0.3, true, -1, 3
	cfg.Workers, cfg.Loss = 256, 0
	cfg.Use("hub/paper")
	r := Soak(t.Context(), cfg, nil)
	t.Logf("%d nodes: %v", nodes, r)
	for _, f := range r.Failed {
		t.Errorf("%d nodes, seed %d: %v", nodes, f.Seed, f.Violations[:min(len(f.Violations), 5)])
	}
	return r.Stall
}

// TestManyNodesStallHostsNoLonger has ten nodes, then a hundred, race for as many hosts.
func TestManyNodesStallHostsNoLonger(t *testing.T) {
	if testing.Short() {
		t.Skip("a hundred nodes")
	}
	if few, many := stall(t, 10), stall(t, 100); many > few*12/10 {
		t.Errorf("a host is silent for %v with 100 nodes, for %v with 10", many, few)
	}
}
