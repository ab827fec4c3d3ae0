package sim

import (
	"flag"
	"os"
	"runtime/pprof"
	"strconv"
	"testing"
	"time"
)

// meshSeeds is how many seeds the tests of faults run, and the first of them.
var (
	meshSeeds = flag.Int("mesh.seeds", 200, "seeds of the test of faults without a centre")
	meshFirst = flag.Uint64("mesh.seed", 1, "the first of them")
)

// smallMesh is a few nodes on which much goes wrong.
func smallMesh() MeshConfig {
	return MeshConfig{Nodes: 8, Hosts: 40, Pages: 12, Delay: 4 * time.Second, Turmoil: 3 * time.Minute, Busy: true}
}

func TestAMeshAtRestFetchesAllOnce(t *testing.T) {
	for _, nodes := range []int{1, 2, 10, 40} {
		cfg := smallMesh()
		cfg.Nodes, cfg.Hosts, cfg.FaultEvery, cfg.Loss, cfg.Busy, cfg.Quiet = nodes, 4*nodes, -1, -1, false, time.Minute
		f, violations := RunMesh(cfg, 1)
		t.Logf("%d nodes: %v", nodes, f)
		if len(violations) > 0 || f.Requests != f.Pages || f.Slips > 0 {
			t.Errorf("%d nodes: %v", nodes, violations)
		}
	}
}

// TestNothingIsLostInAMesh lets nodes come, die, come back, lose their disks, leave, sleep and be cut off while a crawl
// goes on.
func TestNothingIsLostInAMesh(t *testing.T) {
	seeds := *meshSeeds
	if testing.Short() {
		seeds = min(seeds, 10)
	}
	sum, failed, why := SoakMesh(t.Context(), smallMesh(), *meshFirst, seeds)
	t.Logf("%d seeds: %v", seeds, sum)
	if failed > 0 {
		t.Errorf("seed %d: %v", failed, why)
	}
}

// TestAMeshOfManyNodes has so many nodes as KUMO_MESH_NODES says, which come and go for KUMO_MESH_TIME.
func TestAMeshOfManyNodes(t *testing.T) {
	nodes, _ := strconv.Atoi(os.Getenv("KUMO_MESH_NODES"))
	last, _ := time.ParseDuration(os.Getenv("KUMO_MESH_TIME"))
	if nodes == 0 {
		t.Skip("KUMO_MESH_NODES says how many nodes")
	}
	if name := os.Getenv("KUMO_MESH_PROFILE"); name != "" {
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
	cfg := MeshConfig{Nodes: nodes, Hosts: 4 * nodes, Turmoil: last, Stay: 20 * time.Minute, Spread: 2 * time.Minute,
		Delay: last / 20}
	f, violations := RunMesh(cfg, 1)
	t.Log(f)
	if len(violations) > 0 {
		t.Error(violations[0])
	}
}
