package sim

import (
	"os"
	"sync"
	"testing"
	"time"
)

// longestStall is the longest time that a host is not asked though it could be, on average over eight seeds, where nodes race
// for hosts of which each reaches a part: who has begun with a host, and loses it, hands it over. No worker is waited
// for, and no message is lost.
func stall(t *testing.T, nodes int) time.Duration {
	cfg := LAN()
	cfg.Nodes, cfg.Hosts, cfg.Unreachable, cfg.Formed, cfg.FaultEvery = nodes, 1000, 0.3, true, -1
	cfg.Workers, cfg.Loss = 256, 0
	cfg.Use("hub/paper")
	var stalls [8]time.Duration
	var all sync.WaitGroup
	for i := range stalls {
		all.Go(func() {
			f, violations := Run(cfg, uint64(i+1))
			t.Logf("%d nodes, seed %d: %+v", nodes, i+1, f)
			for _, v := range violations {
				t.Errorf("%d nodes, seed %d: %v", nodes, i+1, v)
			}
			stalls[i] = f.Stall
		})
	}
	all.Wait()
	var sum time.Duration
	for _, s := range stalls {
		sum += s
	}
	return sum / time.Duration(len(stalls))
}

// TestManyNodesStallHostsNoLonger has ten nodes, then a hundred, race for as many hosts. A single run has from 7 to 31
// s; the mean of twelve was 16 and 20 s.
func TestManyNodesStallHostsNoLonger(t *testing.T) {
	if os.Getenv("KUMO_TEST_STALL") == "" {
		t.Skip("takes two minutes; KUMO_TEST_STALL=1 has it run, as .ci/long soak does")
	}
	if few, many := stall(t, 10), stall(t, 100); many > few*3/2 {
		t.Errorf("a host is silent for %v with 100 nodes, for %v with 10", many, few)
	}
}
