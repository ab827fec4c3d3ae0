package sim

import (
	"testing"
	"time"

	"kumo/internal/cluster/member/mesh"
	"kumo/internal/cluster/member/peer"
	"kumo/internal/lab/testmain"
)

// brokenMeshes are nodes with a fault each.
var brokenMeshes = map[string]func(c *MeshConfig){
	"claims are dropped before they are recorded": func(c *MeshConfig) {
		c.parts.replace = func(p *meshProcess, a peer.Action) bool {
			r, ok := a.(mesh.Record)
			if !ok || r.Links[0].State == mesh.Done || p.w.k.rng.IntN(20) > 0 {
				return false
			}
			p.deliver(mesh.Recorded{ID: r.ID, Before: make([]mesh.State, len(r.Links))})
			return true
		}
	},
	"nobody has fetched again what a lost node had": func(c *MeshConfig) {
		c.Storage = true
		c.parts.replace = func(p *meshProcess, a peer.Action) bool {
			if l, ok := a.(mesh.Lost); ok {
				p.deliver(mesh.Refetched{Node: l.Node})
				return true
			}
			return false
		}
	},
	"lists of pages at risk are not kept": func(c *MeshConfig) {
		c.Storage = true
		c.parts.replace = func(p *meshProcess, a peer.Action) bool {
			if l, ok := a.(mesh.WriteRisk); ok {
				p.deliver(mesh.RiskWritten{ID: l.ID})
				return true
			}
			return false
		}
	},
	"what is claimed is known to nobody else": func(c *MeshConfig) { c.Backups = 1 },
	"links are claimed before anybody has them": func(c *MeshConfig) {
		c.parts.replace = func(p *meshProcess, a peer.Action) bool {
			if r, ok := a.(mesh.Record); ok && r.Links[0].State == mesh.Dispatched {
				before := p.n.disk.history[p.w.web.byName[r.Host]]
				states := make([]mesh.State, len(r.Links))
				for i, k := range r.Links {
					if before != nil {
						states[i] = before.state(keyOf(k.Hash).bit())
					}
				}
				p.deliver(mesh.Recorded{ID: r.ID, Before: states, Open: len(r.Links)})
				p.after(10*time.Second, func() { p.execute(r) })
				return true
			}
			return false
		}
	},
	"as many nodes lose their disks at once as a host has backups": func(c *MeshConfig) { c.WipesAtOnce = 3 },
	"what a node knows it drops and gives to nobody": func(c *MeshConfig) {
		c.parts.replace = func(p *meshProcess, a peer.Action) bool {
			if r, ok := a.(mesh.Read); ok && r.All {
				p.deliver(mesh.Known{ID: r.ID})
				return true
			}
			return false
		}
	},
	"the engine says that it has links, and does not": func(c *MeshConfig) {
		c.parts.replace = func(p *meshProcess, a peer.Action) bool {
			if r, ok := a.(mesh.Enqueue); ok && p.w.k.rng.IntN(20) == 0 {
				done := make([]bool, len(r.Links))
				for i := range done {
					done[i] = true
				}
				p.deliver(mesh.Enqueued{ID: r.ID, Done: done})
				return true
			}
			return false
		}
	},
	"pages are said before their links are claimed": func(c *MeshConfig) { c.parts.finishEarly = true },
}

// foundFrom is a seed of a run that finds a fault, for faults that the first seeds do not find.
var foundFrom = map[string]int{
	"pages are said before their links are claimed":                43,
	"what is claimed is known to nobody else":                      11,
	"as many nodes lose their disks at once as a host has backups": 6,
	"what a node knows it drops and gives to nobody":               5,
}

// TestTheJudgeOfMeshesFinds runs what must lose something.
func TestTheJudgeOfMeshesFinds(t *testing.T) {
	for what, breaks := range brokenMeshes {
		cfg := smallMesh()
		cfg.WipeInterval = 0
		breaks(&cfg)
		first := testmain.Rounds(max(foundFrom[what], 1), 1)
		sum, failed, why := SoakMesh(t.Context(), cfg, uint64(first), 400)
		if failed == 0 {
			t.Errorf("%s: nobody finds it: %v", what, sum)
			continue
		}
		t.Logf("%s: seed %d: %s", what, failed, why[0])
	}
}
