package sim

import (
	"testing"
	"time"
)

// TestCrawl has three nodes, of which one is two times slower than the first and one four times, crawl the same web.
func TestCrawl(t *testing.T) {
	times := map[string]time.Duration{}
	for _, name := range []string{"shard", "balance"} {
		cfg := LAN()
		cfg.Use(name)
		cfg.Nodes, cfg.Hosts, cfg.Formed, cfg.EqualReach, cfg.Slowness = 3, 600, true, true, []float64{1, 2, 4}
		cfg.FaultTime, cfg.RestLimit, cfg.Chunk = time.Minute, 6*time.Hour, 100
		w, wrong := Crawl(cfg, 1)
		t.Logf("%s: %+v", name, w)
		for _, v := range wrong {
			t.Errorf("%s: %s", name, v.Message)
		}
		times[name] = w.Time
		pages, last := 0, time.Duration(0)
		for i, n := range w.Nodes {
			pages += n.Pages
			last = max(last, n.Ended)
			if n.Pages == 0 || n.Busy <= 0 || n.Busy > 1+1e-9 {
				t.Errorf("%s: node %d: %+v", name, i, n)
			}
		}
		if pages != w.Requests || w.Duplicates > 0 || last != w.Time || w.Messages.Links == 0 {
			t.Errorf("%s: %d pages, the last node ends after %v: %+v", name, pages, last, w)
		}
		if first, slowest := w.Nodes[0], w.Nodes[2]; name == "shard" && slowest.Busy < 1.5*first.Busy {
			t.Errorf("%s: of its even part the slowest node is busy %.2f, the first %.2f", name, slowest.Busy, first.Busy)
		} else if name == "balance" && slowest.Pages*2 > first.Pages {
			t.Errorf("%s: the slowest node fetches %d pages, the first %d", name, slowest.Pages, first.Pages)
		}
	}
	if times["balance"] > times["shard"]*9/10 {
		t.Errorf("%v", times)
	}
}
