package sim

import (
	"testing"
	"time"
)

// Nodes join a crawl and lend each other hosts, and none dies. If they share cookies, each host gets one request without
// its cookie; otherwise one from each node that fetches it.
func TestMeshCookies(t *testing.T) {
	for _, share := range []bool{true, false} {
		cfg := MeshConfig{Nodes: 8, Hosts: 40, Pages: 12, Busy: true, Loss: -1, SeedFirst: true, Spread: time.Minute,
			FaultEvery: -1, FaultTime: time.Minute, ShareCookies: share}
		w := newMeshWorld(cfg.withDefaults(), 1)
		w.run()
		for _, v := range w.violations {
			t.Error(v)
		}
		hosts := 0
		for h := range w.web.hosts {
			if w.coverage[h].fetched != 0 {
				hosts++
			}
		}
		again := w.figures.Sessions - hosts
		t.Logf("shared: %v: %d hosts, %d moved for balance, %d requests without a cookie", share, hosts,
			w.figures.MovedHosts, w.figures.Sessions)
		if (again == 0) != share || w.figures.MovedHosts == 0 {
			t.Errorf("shared: %v: %d hosts get another request without a cookie, and %d have moved", share, again,
				w.figures.MovedHosts)
		}
	}
}
