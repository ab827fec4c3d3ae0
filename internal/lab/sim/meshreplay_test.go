package sim

import (
	"testing"
	"time"

	"kumo/internal/lab/testmain"
)

// TestOldMessagesOfAMesh sends a tenth of all messages of nodes a second time, up to ten minutes later, also to
// processes that were started since, while nodes come and leave: no page is fetched again because of that, none is lost,
// no host is asked by two nodes at a time, and the crawl ends.
func TestOldMessagesOfAMesh(t *testing.T) {
	seeds := uint64(testmain.Rounds(3, 20))
	pages, twice, replayed := 0, 0, 0
	for seed := uint64(1); seed <= seeds; seed++ {
		cfg := smallMesh()
		cfg.FaultEvery, cfg.Loss, cfg.Busy, cfg.FaultDelay, cfg.Replay = -1, -1, false, time.Minute, 0.1
		w := newMeshWorld(cfg.withDefaults(), seed)
		w.comeAndGo()
		pages, replayed = pages+w.figures.Pages, replayed+w.figures.Replayed
		for _, n := range w.figures.Duplicates {
			twice += n
		}
		if len(w.violations) > 0 || w.figures.Overlapping > 0 || w.figures.TooEarly > 0 || w.figures.Replayed == 0 {
			t.Errorf("seed %d: %v; %v", seed, w.violations, w.figures)
		}
	}
	if t.Logf("%d messages replayed, %d of %d pages are fetched twice", replayed, twice, pages); twice > 2 {
		t.Error("that is too many")
	}
}

// TestOldMessagesAndFaults does so while nodes die, come back, lose their disks and are cut off, and where their records
// go to a place.
func TestOldMessagesAndFaults(t *testing.T) {
	cfg := smallMesh()
	cfg.Replay, cfg.Storage = 0.1, true
	sum, failed, why := SoakMesh(t.Context(), cfg, meshFirst(), meshSeeds()/8)
	t.Log(sum)
	if failed > 0 {
		t.Errorf("seed %d: %v", failed, why)
	}
}

// TestClocksOfAMeshLeap sets the clock of a node ahead by an hour or a day, every 15 seconds, while nobody else fails:
// no host is asked by two nodes at a time or too soon, nothing is lost, and the crawl ends.
func TestClocksOfAMeshLeap(t *testing.T) {
	for _, leap := range []time.Duration{time.Hour, 24 * time.Hour} {
		cfg := smallMesh()
		cfg.FaultEvery, cfg.Loss, cfg.Busy, cfg.ClockLeap, cfg.Storage = -1, -1, false, leap, true
		for seed := uint64(1); seed <= uint64(testmain.Rounds(1, 10)); seed++ {
			f, violations := RunMesh(cfg, seed)
			t.Logf("%v, seed %d: %v; %d leaps", leap, seed, f, f.Leaps)
			if len(violations) > 0 || f.Overlapping > 0 || f.TooEarly > 0 || f.Leaps == 0 {
				t.Errorf("%v, seed %d: %v", leap, seed, violations)
			}
		}
	}
}
