package sim

import (
	"slices"
	"strings"
	"testing"
	"time"

	"kumo/internal/cluster/strategy"
)

func meshConfig(nodes int) Config {
	cfg := Config{Nodes: nodes, Seeds: 4}.withDefaults()
	cfg.Use("mesh")
	return cfg
}

// TestSoakOfAMesh runs a mesh as the other strategies are run: twice the same, and nothing is as it must not be.
func TestSoakOfAMesh(t *testing.T) {
	cfg := meshConfig(8)
	first := Soak(t.Context(), cfg, nil)
	if again := Soak(t.Context(), cfg, nil); again.String() != first.String() {
		t.Errorf("two soaks: %v; %v", first, again)
	}
	if first.Seeds != 4 || first.Faults == 0 || first.Requests == 0 || first.Lost > 0 || len(first.Failed) > 0 {
		t.Errorf("%v: %v", first, first.Failed)
	}
	for _, formed := range []bool{false, true} {
		cfg.FaultEvery, cfg.Formed = -1, formed
		if r := Soak(t.Context(), cfg, nil); r.Duplicates > 0 || r.Slips > 0 || r.Faults > 0 || len(r.Failed) > 0 {
			t.Errorf("without faults, formed %v: %v: %v", formed, r, r.Failed)
		}
	}
}

// TestAMeshOfFiftyComesToRest runs seeds in which nodes that were cut off had become backups of hosts that are far from
// them: when the network was whole again, they gave these to the closest nodes that they knew, which refused them, and
// the crawl never came to rest.
func TestAMeshOfFiftyComesToRest(t *testing.T) {
	for _, seed := range []uint64{41, 57} {
		if f, violations := Run(meshConfig(50), seed); len(violations) > 0 {
			t.Errorf("seed %d: %v: %v", seed, f, violations)
		}
	}
}

// TestStoryOfAMesh has the faults of a run, and what became of one host.
func TestStoryOfAMesh(t *testing.T) {
	_, f := Story(meshConfig(8), 3, 0)
	for _, want := range []string{"FAULT: ", " asks for h0.example/0", "the faults end"} {
		if !slices.ContainsFunc(f.Story, func(line string) bool { return strings.Contains(line, want) }) {
			t.Errorf("the story has no %q", want)
		}
	}
	if slices.ContainsFunc(f.Story, func(line string) bool { return strings.Contains(line, "h1.example") }) {
		t.Error("the story is about another host, too")
	}
}

// TestTheJudgeOfSoakedMeshesFinds breaks a crawl that is at rest, in each way that is judged then.
func TestTheJudgeOfSoakedMeshesFinds(t *testing.T) {
	ask := func(w *meshWorld, p *meshProcess) { w.request(p, at(0, 0), time.Second) }
	for _, c := range []struct {
		name, want string
		breaks     func(w *meshWorld, owner, other *meshProcess)
	}{
		{"nothing", "", func(*meshWorld, *meshProcess, *meshProcess) {}},
		{"another node holds a host", "is held by", func(w *meshWorld, _, other *meshProcess) {
			other.n.disk.engine[0] = &meshEngine{}
		}},
		{"two nodes take a host for theirs until they know better", "", func(w *meshWorld, owner, other *meshProcess) {
			other.view = owner.view
			if len(w.ownerConflicts()) == 0 {
				t.Error("two nodes take a host for theirs: nobody finds it")
			}
		}},
		{"the end is found too early", "when it was not", func(w *meshWorld, _, _ *meshProcess) { w.figures.EarlyEnds++ }},
		{"two nodes ask at once", "where a request of", func(w *meshWorld, owner, other *meshProcess) {
			ask(w, owner)
			ask(w, other)
		}},
		{"two nodes ask at once while cut", "", func(w *meshWorld, owner, other *meshProcess) {
			ask(w, owner)
			w.net.partitions = append(w.net.partitions, &partition{})
			ask(w, other)
			w.net.partitions = nil
		}},
		{"a node that stood still asks", "", func(w *meshWorld, owner, other *meshProcess) {
			ask(w, owner)
			other.paused = true
			other.resume()
			ask(w, other)
		}},
		{"two nodes ask, late enough", "", func(w *meshWorld, owner, other *meshProcess) {
			ask(w, owner)
			w.runUntil(w.k.now + time.Minute)
			ask(w, other)
		}},
	} {
		cfg := meshConfig(6)
		cfg.FaultEvery = -1
		w := newMeshWorld(cfg.mesh(), 1)
		w.run()
		owns := func(p *meshProcess) bool { return p.view.Ours(w.web.hosts[0].name) }
		owner := w.live[slices.IndexFunc(w.live, owns)]
		other := w.live[slices.IndexFunc(w.live, func(p *meshProcess) bool { return !owns(p) })]
		c.breaks(w, owner, other)
		w.checkOwners()
		w.checkEnd()
		var what string
		if len(w.violations) > 0 {
			what = w.violations[0].Message
		}
		if (c.want == "") != (what == "") || !strings.Contains(what, c.want) {
			t.Errorf("%s: %v, want %q", c.name, w.violations, c.want)
		}
	}
	w := newMeshWorld(meshConfig(1).mesh(), 1)
	w.join()
	if w.checkEnd(); len(w.violations) != 1 {
		t.Errorf("a crawl that has not begun: %v", w.violations)
	}
}

// TestNamesOfStrategies has every name known to Use.
func TestNamesOfStrategies(t *testing.T) {
	for _, name := range Strategies() {
		cfg := Config{}
		cfg.Use(name)
		if (cfg.Strategy == nil) != cfg.centerless || cfg.centerless && cfg.Slot != nil {
			t.Errorf("%s: %+v", name, cfg)
		}
		if cfg.Strategy != nil && cfg.Strategy(strategy.Node("n0~1")) == nil {
			t.Errorf("%s is none", name)
		}
	}
}
