package sim

import (
	"slices"
	"testing"
	"time"
)

// TestLostRecordsAreFetchedAgain lets much go wrong with a crawl whose nodes bring their records to a place: nodes are
// lost with their disks, pages that they had fetched and not brought there among them. In the end there is a record of
// each page.
func TestLostRecordsAreFetchedAgain(t *testing.T) {
	var sum MeshFigures
	for seed := meshFirst(); seed < meshFirst()+uint64(meshSeeds()/5); seed++ {
		cfg := smallMesh()
		cfg.Storage = true
		f, violations := RunMesh(cfg, seed)
		if len(violations) > 0 {
			t.Fatalf("seed %d: %v\n%v", seed, violations, f)
		}
		sum.add(f)
	}
	t.Logf("%d pages offered again, by each who kept them; %v", sum.Refetches, sum)
	if sum.Wiped > 0 && sum.Refetches == 0 {
		t.Error("nothing was at risk")
	}
}

// TestALostNodeIsMissed ends one node for good, disk and all, while the others go on: before it counts as lost nothing
// of it is fetched again, and the crawl does not end; then just what is not in its place is.
func TestALostNodeIsMissed(t *testing.T) {
	for seed := meshFirst(); seed < meshFirst()+5; seed++ {
		w := quietPlace(seed, 8, 40*time.Second)
		lost := w.live[3]
		gone := lost.n
		lost.end()
		gone.wipe()
		var bare []url
		for u, all := range w.records {
			if !slices.ContainsFunc(all, func(r recordLocation) bool { return r.by != gone || gone.uploaded[r.file] }) {
				bare = append(bare, u)
			}
		}
		w.runUntil(w.k.now + w.cfg.LostAfter/2)
		if w.figures.Refetches > 0 {
			t.Errorf("seed %d: a node that is missed for half the time counts as lost", seed)
		}
		w.runUntil(w.k.now + 10*time.Minute)
		if w.checkRecords(); w.figures.WithoutRecord > 0 || w.figures.Lost > 0 || len(w.violations) > 0 {
			t.Errorf("seed %d: %v", seed, w.violations)
		}
		twice := 0
		for _, n := range w.figures.Duplicates {
			twice += n
		}
		// text it had not said to be done is dispatched again as ever; two or three pages were under way
		if n := w.figures.Refetches; n == 0 || n > 3*len(bare) || twice < len(bare) || twice > len(bare)+5 {
			t.Errorf("seed %d: %d pages were offered again by three, of %d whose records are lost; %d were fetched twice", seed,
				n,
				len(bare), twice)
		}
		if len(w.endsFound) == 0 || w.figures.EarlyEnds > 0 {
			t.Errorf("seed %d: the crawl's end was found %d times, %d times too early", seed, len(w.endsFound), w.figures.EarlyEnds)
		}
	}
}

// TestWhoComesBackIsNotLost ends a node for a while, and keeps its disk: nothing is fetched again that it has said.
func TestWhoComesBackIsNotLost(t *testing.T) {
	for seed := meshFirst(); seed < meshFirst()+5; seed++ {
		w := quietPlace(seed, 8, 40*time.Second)
		away := w.live[3]
		n := away.n
		away.end()
		w.k.after(w.cfg.LostAfter*3/4, func() { n.start() })
		w.runUntil(w.k.now + 10*time.Minute)
		if w.checkRecords(); w.figures.Refetches > 0 || len(w.violations) > 0 {
			t.Errorf("seed %d: %d pages were offered again, %v", seed, w.figures.Refetches, w.violations)
		}
	}
}

// quietPlace is a mesh with a place that has crawled for so long, and where nothing goes wrong.
func quietPlace(seed uint64, nodes int, crawling time.Duration) *meshWorld {
	cfg := smallMesh()
	cfg.Nodes, cfg.Pages, cfg.FaultEvery, cfg.Loss, cfg.Busy, cfg.Storage = nodes, 24, -1, -1, false, true
	cfg.FaultDelay = time.Minute
	w := newMeshWorld(cfg.withDefaults(), seed)
	for i := range cfg.Nodes {
		w.k.after(time.Duration(i)*w.cfg.Spread/time.Duration(cfg.Nodes), func() { w.join() })
	}
	w.runUntil(w.cfg.Spread + w.cfg.FaultDelay)
	w.seed()
	w.runUntil(w.k.now + crawling)
	return w
}
