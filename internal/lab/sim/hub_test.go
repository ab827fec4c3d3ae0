package sim

import (
	"cmp"
	"os"
	"strconv"
	"strings"
	"testing"

	"kumo/internal/lab/testmain"
)

// TestBalance soaks the split by predicted times with machines of different and changing speeds: KUMO_TEST_SEEDS runs,
// or a few. KUMO_TEST_STRATEGY selects another splitter.
func TestBalance(t *testing.T) {
	seeds, _ := strconv.Atoi(os.Getenv("KUMO_TEST_SEEDS"))
	first, _ := strconv.ParseUint(os.Getenv("KUMO_TEST_FIRST"), 10, 64)
	cfg := small()
	name := cmp.Or(os.Getenv("KUMO_TEST_STRATEGY"), "balance")
	cfg.Use(name)
	cfg.Seeds, cfg.FirstSeed = cmp.Or(seeds, testmain.Rounds(10, 20)), first
	if host, err := strconv.Atoi(os.Getenv("KUMO_TEST_HOST")); err == nil {
		_, f := Story(cfg, first, host)
		t.Log(strings.Join(f.Story, "\n"))
		return
	}
	r := Soak(t.Context(), cfg, nil)
	t.Log(r)
	if moves := name == "balance"; moves != (r.Moved > 0) {
		t.Errorf("%s: %d hosts have moved from one node to another", name, r.Moved)
	}
	for i, f := range r.Failed {
		if t.Errorf("seed %d: %v", f.Seed, f.Violations[:min(len(f.Violations), 5)]); i == 0 {
			t.Log(strings.Join(f.Story, "\n"))
		}
	}
}

// TestHub soaks the control unit's strategy with nodes that reach different parts of the web: KUMO_TEST_SEEDS runs, or
// a few.
func TestHub(t *testing.T) {
	seeds, _ := strconv.Atoi(os.Getenv("KUMO_TEST_SEEDS"))
	first, _ := strconv.ParseUint(os.Getenv("KUMO_TEST_FIRST"), 10, 64)
	cfg := small()
	cfg.Use(cmp.Or(os.Getenv("KUMO_TEST_STRATEGY"), "hub"))
	cfg.Unreachable, cfg.Seeds, cfg.FirstSeed = 0.3, cmp.Or(seeds, testmain.Rounds(10, 20)), first
	if os.Getenv("KUMO_TEST_CALM") != "" {
		cfg.FaultEvery = -1
	}
	if host, err := strconv.Atoi(os.Getenv("KUMO_TEST_HOST")); err == nil {
		_, f := Story(cfg, first, host)
		t.Log(strings.Join(f.Story, "\n"))
		return
	}
	r := Soak(t.Context(), cfg, nil)
	t.Log(r)
	for i, f := range r.Failed {
		if t.Errorf("seed %d: %v", f.Seed, f.Violations[:min(len(f.Violations), 5)]); i == 0 {
			t.Log(strings.Join(f.Story, "\n"))
		}
	}
}
