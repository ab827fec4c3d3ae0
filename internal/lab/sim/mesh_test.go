package sim

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strconv"
	"testing"
	"time"

	"kumo/internal/cluster/member/mesh"
	"kumo/internal/lab/testmain"
)

const manySeeds = 80 // for a mesh with faults; each run except .ci/long uses other seeds

// meshSeeds returns the number of seeds for the test of faults, from KUMO_TEST_MESH_SEEDS. meshFirst returns the first,
// from KUMO_TEST_MESH_FIRST.
func meshSeeds() int {
	if n, err := strconv.Atoi(os.Getenv("KUMO_TEST_MESH_SEEDS")); err == nil {
		return n
	}
	return testmain.Rounds(8, manySeeds)
}

func meshFirst() uint64 {
	if n, err := strconv.ParseUint(os.Getenv("KUMO_TEST_MESH_FIRST"), 10, 64); err == nil {
		return max(n, 1)
	}
	first, _ := testmain.Seeds(min(uint64(meshSeeds()), manySeeds), manySeeds)
	return first + 1
}

// smallMesh is a mesh of a few nodes with many faults: all but one of a host's backups may lose their disks at once.
func smallMesh() MeshConfig {
	return MeshConfig{Nodes: 8, Hosts: 40, Pages: 12, Delay: 4 * time.Second, FaultTime: 3 * time.Minute, Busy: true,
		WipesAtOnce: 2}
}

// RunMesh runs a crawl and returns its violations.
func RunMesh(cfg MeshConfig, seed uint64) (MeshFigures, []Violation) {
	w := newMeshWorld(cfg.withDefaults(), seed)
	w.run()
	return w.figures, w.violations
}

// SoakMesh runs seeds one after another until one fails.
func SoakMesh(ctx context.Context, cfg MeshConfig, first uint64, seeds int) (sum MeshFigures, failed uint64,
	why []Violation) {
	for seed := first; seed < first+uint64(seeds) && ctx.Err() == nil; seed++ {
		f, violations := RunMesh(cfg, seed)
		sum.add(f)
		if len(violations) > 0 {
			return sum, seed, violations
		}
	}
	return sum, 0, nil
}

func (f *MeshFigures) add(g MeshFigures) {
	f.Virtual += g.Virtual
	f.Events += g.Events
	f.Faults += g.Faults
	f.Joined += g.Joined
	f.Wiped += g.Wiped
	f.NodeTime += g.NodeTime
	f.Pages += g.Pages
	f.Lost += g.Lost
	f.Requests += g.Requests
	for i, n := range g.Duplicates {
		f.Duplicates[i] += n
	}
	f.Overlapping += g.Overlapping
	f.TooEarly += g.TooEarly
	f.EarlyEnds += g.EarlyEnds
	for i := range g.Messages {
		f.Messages[i] += g.Messages[i]
		f.Bytes[i] += g.Bytes[i]
	}
	f.WithoutRecord += g.WithoutRecord
	f.Refetches += g.Refetches
	f.Recorded += g.Recorded
	f.MovedHosts += g.MovedHosts
	f.Moves = f.Moves.Add(g.Moves)
	f.Processor += g.Processor
	f.Replayed += g.Replayed
	f.Leaps += g.Leaps
	f.LookUps.LookUps += g.LookUps.LookUps
	f.LookUps.Asked += g.LookUps.Asked
	f.LookUps.Hops += g.LookUps.Hops
}

func (f MeshFigures) String() string {
	ratio := func(a, b int) float64 { return float64(a) / float64(max(b, 1)) }
	again := 0
	for _, n := range f.Duplicates {
		again += n
	}
	seconds := max(f.NodeTime.Seconds(), 1)
	bytes := f.Bytes[OverlayMessage] + f.Bytes[MeshMessage] + f.Bytes[LinksMessage]
	return fmt.Sprintf("pages %d, lost %d, fetched twice %d (%.0f a million: death %d, links %d, marks %d, split %d, "+
		"other %d), slips %d, too soon %d; moved %d hosts; faults %d, joined %d, wiped %d; messages a page: %.1f mesh, %.1f links, %.1f "+
		"overlay; a node a second: %.2f messages of the overlay, %.0f bytes in all; look-ups %d, of %.1f questions and %.2f "+
		"hops; %v, %d events",
		f.Pages, f.Lost, again, 1e6*ratio(again, f.Requests), f.Duplicates[causeDeath], f.Duplicates[causeUnclaimed],
		f.Duplicates[causeLostMark],
		f.Duplicates[causePartition], f.Duplicates[causeOther], f.Overlapping, f.TooEarly, f.MovedHosts, f.Faults, f.Joined, f.Wiped,
		ratio(f.Messages[MeshMessage], f.Pages),
		ratio(f.Messages[LinksMessage], f.Pages), ratio(f.Messages[OverlayMessage], f.Pages),
		float64(f.Messages[OverlayMessage])/seconds, float64(bytes)/seconds, f.LookUps.LookUps,
		ratio(int(f.LookUps.Asked), int(f.LookUps.LookUps)), ratio(int(f.LookUps.Hops), int(f.LookUps.LookUps)),
		f.Virtual.Round(time.Second), f.Events)
}

func TestAMeshAtRestFetchesAllOnce(t *testing.T) {
	for _, nodes := range []int{1, 2, 10, 40} {
		cfg := smallMesh()
		cfg.Nodes, cfg.Hosts, cfg.FaultEvery, cfg.Loss, cfg.Busy, cfg.FaultDelay = nodes, 4*nodes, -1, -1, false, time.Minute
		f, violations := RunMesh(cfg, 1)
		t.Logf("%d nodes: %v", nodes, f)
		if len(violations) > 0 || f.Requests != f.Pages || f.Overlapping > 0 {
			t.Errorf("%d nodes: %v", nodes, violations)
		}
	}
}

// comeAndGo runs a crawl while nodes join and leave, one after another.
func (w *meshWorld) comeAndGo() {
	for i := range 8 {
		w.k.after(w.cfg.Spread+w.cfg.FaultDelay+time.Duration(i+1)*15*time.Second, func() {
			if i%2 == 0 {
				w.join()
			} else {
				w.live[w.k.rng.IntN(len(w.live))].leave()
			}
		})
	}
	w.run()
}

// TestNodesComeAndGoUnseen lets nodes join and leave, one after another, during a crawl without message loss. Servers
// must see the same requests as without that, except for rare repeats.
func TestNodesComeAndGoUnseen(t *testing.T) {
	seeds := uint64(testmain.Rounds(5, 40))
	pages, twice := 0, 0
	for seed := uint64(1); seed <= seeds; seed++ {
		cfg := smallMesh()
		cfg.FaultEvery, cfg.Loss, cfg.Busy, cfg.FaultDelay = -1, -1, false, time.Minute
		w := newMeshWorld(cfg.withDefaults(), seed)
		w.comeAndGo()
		pages += w.figures.Pages
		for _, n := range w.figures.Duplicates {
			twice += n
		}
		if len(w.violations) > 0 || w.figures.Overlapping > 0 || w.figures.TooEarly > 0 {
			t.Errorf("seed %d: %v; %v", seed, w.violations, w.figures)
		}
	}
	if t.Logf("%d of %d pages are fetched twice", twice, pages); twice > 2 {
		t.Error("that is too many")
	}
}

// TestSlowHostsAreAskedByOne lets nodes join and leave while hosts answer more slowly than the nodes' timeout. A host's
// next owner must still wait for the previous one's answer.
func TestSlowHostsAreAskedByOne(t *testing.T) {
	seeds := uint64(testmain.Rounds(3, 20))
	for seed := uint64(1); seed <= seeds; seed++ {
		cfg := smallMesh()
		cfg.FaultEvery, cfg.Loss, cfg.Busy, cfg.FaultDelay, cfg.SlowAnswer = -1, -1, false, time.Minute, 40*time.Second
		w := newMeshWorld(cfg.withDefaults(), seed)
		w.comeAndGo()
		if len(w.violations) > 0 || w.figures.Overlapping > 0 || w.figures.TooEarly > 0 {
			t.Errorf("seed %d: %v; %v", seed, w.violations, w.figures)
		}
	}
}

// TestNothingIsLostInAMesh runs a crawl while nodes join, die, come back, lose their disks, leave, pause and are
// isolated.
func TestNothingIsLostInAMesh(t *testing.T) {
	seeds := meshSeeds()
	for _, c := range []struct {
		seeds int
		every time.Duration // faults
		paper bool
	}{{seeds, 8 * time.Second, false}, {seeds / 8, 3 * time.Second, false}, {seeds / 4, 8 * time.Second, true}} {
		cfg := smallMesh()
		cfg.FaultEvery, cfg.Paper = c.every, c.paper
		sum, failed, why := SoakMesh(t.Context(), cfg, meshFirst(), c.seeds)
		t.Logf("a fault every %v, %d seeds, mesh/paper %v: %v; %+v", c.every, c.seeds, c.paper, sum, sum.Moves)
		if failed > 0 {
			t.Errorf("a fault every %v, mesh/paper %v, seed %d: %v", c.every, c.paper, failed, why)
		}
		if c.paper && c.seeds > 0 && (sum.Moves.Whole == 0 || sum.Moves.Kept == 0) {
			t.Errorf("no list has moved or stayed as a whole: %+v", sum.Moves)
		}
	}
}

// TestTheEndOfAMeshIsFound checks that a node detects the end of the crawl, neither early nor late.
func TestTheEndOfAMeshIsFound(t *testing.T) {
	first, seeds := meshFirst(), testmain.Rounds(3, 20)
	if os.Getenv("KUMO_TEST_MESH_SEEDS") != "" {
		seeds = meshSeeds()
	}
	for _, every := range []time.Duration{20 * time.Second, 3 * time.Second} { // faults
		for seed := first; seed < first+uint64(seeds); seed++ {
			cfg := smallMesh()
			cfg.NoCuts, cfg.FaultEvery, cfg.FaultTime = true, every, 2*time.Minute
			w := newMeshWorld(cfg.withDefaults(), seed)
			w.run()
			if len(w.violations) > 0 || w.figures.EarlyEnds > 0 {
				t.Errorf("a fault every %v, seed %d: %v; the end was found %d times too early", every, seed, w.violations,
					w.figures.EarlyEnds)
			}
			if took, found := w.findEnd(); !found || took > time.Minute {
				t.Errorf("a fault every %v, seed %d: the end is found after %v", every, seed, took)
			}
		}
	}
}

// TestAMeshKnowsItsRecord changes the crawl's record on several nodes while others are away, and sums up the tallies of
// all.
func TestAMeshKnowsItsRecord(t *testing.T) {
	w := newMeshWorld(MeshConfig{Nodes: 30}.withDefaults(), 5)
	for range 30 {
		w.join()
		w.runUntil(w.k.now + time.Second)
	}
	away := w.live[7].n
	away.proc.end()
	w.runUntil(w.k.now + 15*time.Second)
	w.live[3].deliver(mesh.Change{Data: []byte("one")})
	w.runUntil(w.k.now + 10*time.Second)
	w.live[20].deliver(mesh.Change{Data: []byte("two")})
	for i := range 40 {
		w.live[i%20].deliver(mesh.Add{Data: fmt.Appendf(nil, "list %d", i)})
	}
	w.runUntil(w.k.now + time.Second)
	away.start()
	w.runUntil(w.k.now + 2*time.Minute)
	for _, p := range w.live {
		if string(p.n.disk.record.Data) != "two" {
			t.Errorf("%s has %q", p.n.name, p.n.disk.record.Data)
		}
		if len(p.n.disk.chunks) != 40 {
			t.Errorf("%s has %d lists", p.n.name, len(p.n.disk.chunks))
		}
	}
	w.live[9].deliver(mesh.Gather{Tag: 1})
	w.runUntil(w.k.now + 30*time.Second)
	if len(w.gathered) != 1 || w.gathered[0].Nodes != 30 || w.gathered[0].Idle != 30 || w.gathered[0].Missing != 0 {
		t.Errorf("gathered %+v", w.gathered)
	}
}

// TestAMeshOfManyNodes runs a crawl with nodes that stay for 20 minutes on average, and with 5 % message loss. It uses
// latencies measured between PlanetLab sites if available. KUMO_TEST_MESH_NODES sets the number of nodes,
// KUMO_TEST_MESH_TIME the length of the churn.
func TestAMeshOfManyNodes(t *testing.T) {
	nodes, last := testmain.Rounds(60, 300), 5*time.Minute
	many := os.Getenv("KUMO_TEST_MESH_NODES") != ""
	if many {
		nodes, _ = strconv.Atoi(os.Getenv("KUMO_TEST_MESH_NODES"))
		last, _ = time.ParseDuration(os.Getenv("KUMO_TEST_MESH_TIME"))
	}
	if name := os.Getenv("KUMO_TEST_MESH_PROFILE"); name != "" {
		file, err := os.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if err := pprof.StartCPUProfile(file); err != nil {
			t.Fatal(err)
		}
		defer pprof.StopCPUProfile()
	}
	cfg := MeshConfig{Nodes: nodes, Hosts: 4 * nodes, Pages: 8, FaultTime: last, MeanStay: 20 * time.Minute,
		Spread: 2 * time.Minute, Delay: last / 30}
	cfg.Overlay.Notice, cfg.Overlay.Check = 30*time.Second, 10*time.Minute
	if dir := os.Getenv("KUMO_TEST_DATA"); dir != "" {
		var err error
		if cfg.Matrix, err = ReadMatrix(filepath.Join(dir, "latency", "PlanetLabData_1")); err != nil {
			t.Fatal(err)
		}
	}
	w := newMeshWorld(cfg.withDefaults(), 1)
	if many {
		var progress func()
		progress = func() {
			f := w.currentFigures()
			f.Virtual, f.Events = w.k.now, w.k.eventCount
			fmt.Fprintln(os.Stderr, w.k.now, f) // well before the test's timeout
			w.k.after(2*time.Minute, progress)
		}
		w.k.after(2*time.Minute, progress)
	}
	w.run()
	f := w.figures
	t.Log(f)
	if len(w.violations) > 0 {
		t.Error(w.violations[0])
	}
	if took, found := w.findEnd(); !found {
		t.Errorf("nobody has found the end after %v", took)
	} else {
		t.Logf("at rest at %v; the end is found %v later", (w.k.now - took).Round(time.Second), took)
	}
	again := 0
	for _, n := range f.Duplicates {
		again += n
	}
	if again > f.Requests/100 {
		t.Errorf("%d of %d requests were for pages that had been fetched", again, f.Requests)
	}
}
