package sim

import (
	"testing"
	"time"

	"kumo/internal/cluster/member/mesh"
	"kumo/internal/lab/testmain"
)

// TestHostsMoveUnseen lets load move between nodes of unequal speed, while nodes join and leave during a crawl without
// message loss. Servers must see the same requests as without that, except for rare repeats, and no delay cut short.
func TestHostsMoveUnseen(t *testing.T) {
	seeds := uint64(testmain.Rounds(5, 40))
	var sum MeshFigures
	for seed := uint64(1); seed <= seeds; seed++ {
		cfg := smallMesh()
		cfg.FaultEvery, cfg.Loss, cfg.FaultDelay = -1, -1, time.Minute
		cfg.Rates = []MeshRate{{Fetch: 2}, {Fetch: 0.1}, {Fetch: 1}, {Fetch: 0.1}, {Fetch: 2}, {Fetch: 0.2}, {Fetch: 1},
			{Fetch: 0.1}}
		w := newMeshWorld(cfg.withDefaults(), seed)
		w.comeAndGo()
		sum.add(w.figures)
		if len(w.violations) > 0 || w.figures.Overlapping > 0 || w.figures.TooEarly > 0 {
			t.Errorf("seed %d: %v; %v", seed, w.violations, w.figures)
		}
	}
	twice := 0
	for _, n := range sum.Duplicates {
		twice += n
	}
	t.Log(sum)
	if sum.MovedHosts < int(seeds)*20 || twice > int(seeds)/2 {
		t.Errorf("%d hosts have moved, %d pages are fetched twice", sum.MovedHosts, twice)
	}
}

// TestLinksPostponeAHostThatIsHeld: the timing of another node holds from the arrival of its links, as in a real node.
func TestLinksPostponeAHostThatIsHeld(t *testing.T) {
	w := newMeshWorld(MeshConfig{Hosts: 1, FaultEvery: -1, Loss: -1}.withDefaults(), 1)
	p := w.join().proc
	w.runUntil(time.Minute)
	dispatch := func(page int, wait time.Duration) {
		link := mesh.Link{Hash: hashOf(meshKey{at(0, page), 0}), Item: itemData}
		p.enqueue(mesh.Enqueue{Host: w.web.hosts[0].name, Links: []mesh.Link{link}, Timing: mesh.Timing{Wait: wait}})
	}
	dispatch(0, 2*time.Second)
	dispatch(0, 9*time.Second)
	if w.runUntil(w.k.now + 8*time.Second); w.figures.Requests != 0 {
		t.Error("the host is requested too early")
	}
	if w.runUntil(w.k.now + 2*time.Second); w.figures.Requests == 0 {
		t.Error("the host is not requested")
	}
	dispatch(1, 0)
	if next := p.hosts.of(0).next; next <= w.k.now {
		t.Errorf("links without a wait have shortened the delay: %v", next-w.k.now)
	}
}
