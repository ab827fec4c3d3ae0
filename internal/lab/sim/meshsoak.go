package sim

import (
	"fmt"
	"slices"
	"time"

	"kumo/internal/cluster/strategy"
)

// mesh returns the mesh crawl that a Config describes.
func (c Config) mesh() MeshConfig {
	m := MeshConfig{Nodes: c.Nodes, Hosts: c.Hosts, Pages: c.Pages, Delay: c.Delay, Busy: true, JudgeDelay: true,
		Paper: c.paper, Loss: c.Loss, Replay: c.Loss, Matrix: c.Matrix, Bandwidth: c.Bandwidth, Spread: c.Spread,
		SeedFirst: !c.Formed, FaultDelay: c.FaultDelay, FaultEvery: c.FaultEvery, FaultTime: c.FaultTime,
		RestLimit: c.RestLimit}
	m.MinLatency = c.Latency / 10
	m.MaxLatency = m.MinLatency + c.Latency*7/5
	return m.withDefaults()
}

func runMesh(cfg Config, seed uint64, focus int32, telling bool) *meshWorld {
	m := cfg.mesh()
	m.ShareCookies = seed%2 == 0
	w := newMeshWorld(m, seed)
	w.focus, w.storyEnabled = focus, telling
	w.run()
	w.checkEnd()
	w.checkOwners()
	return w
}

// endTimeout is how long nodes at rest may take until one detects the end of the crawl.
const endTimeout = 2 * time.Minute

// checkEnd checks that nodes detect the end of a crawl at rest, and not before. Early detection is allowed after a
// partition: one part cannot know of the other's work.
func (w *meshWorld) checkEnd() {
	if w.figures.EarlyEnds > 0 && w.lastHeal == 0 {
		w.violate("a node has detected the end of the crawl too early")
	}
	if _, found := w.findEnd(); !found && w.pendingWork(1) == "" {
		w.violate("no node has detected the end of the crawl")
	}
}

// findEnd runs until a node detects the end of the crawl, and returns how long that took.
func (w *meshWorld) findEnd() (took time.Duration, found bool) {
	w.endsFound = nil
	begin := w.k.now
	for len(w.endsFound) == 0 && w.k.now < begin+endTimeout {
		w.runUntil(w.k.now + time.Second)
	}
	return w.k.now - begin, len(w.endsFound) > 0
}

// checkOwners checks that at rest exactly one node owns each fetched host, and that no other node holds it. Nodes get
// some time to agree, as with other strategies.
func (w *meshWorld) checkOwners() {
	for end := w.k.now + maxIdle; len(w.ownerConflicts()) > 0 && w.k.now < end; {
		w.runUntil(w.k.now + 5*time.Second)
	}
	for _, f := range w.ownerConflicts() {
		w.violateHost(f.host, "%s", f.text)
	}
}

// ownerConflicts returns the fetched hosts that do not have exactly one owner, or that others hold.
func (w *meshWorld) ownerConflicts() (found []problem) {
	for h, site := range w.web.hosts {
		if w.coverage[h].fetched == 0 {
			continue
		}
		var owners, holders []strategy.Node
		for _, p := range w.live {
			if p.view.Until().After(p.now()) && p.view.Ours(site.name) {
				owners = append(owners, p.n.name)
			}
			if p.n.disk.engine[int32(h)] != nil {
				holders = append(holders, p.n.name)
			}
		}
		alone := len(holders) == 0 || slices.Equal(owners, holders)
		if len(owners) != 1 || !alone {
			found = append(found, problem{int32(h), fmt.Sprintf("%s is owned by %v, and held by %v", site.name,
				owners, holders)})
		}
	}
	return found
}

// soakFigures converts a run's figures to those of other strategies. Epochs and leases do not exist here.
func (w *meshWorld) soakFigures() Figures {
	f := w.figures
	g := Figures{Virtual: f.Virtual, Events: f.Events, Faults: f.Faults, Requests: f.Requests,
		Slips: f.Overlapping + f.TooEarly,
		Lost:  f.Lost, Moved: f.MovedHosts, Stall: w.longestStall}
	for _, n := range f.Duplicates {
		g.Duplicates += n
	}
	return g
}
