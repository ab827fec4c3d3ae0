package crawl

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/base/vfs"
	"kumo/internal/base/vfs/vfstest"
	"kumo/internal/content/policy"
	"kumo/internal/lab/testmain"
)

const recrawlEvery = time.Minute

// newRecrawl returns a mesh that visits each page every minute.
func newRecrawl(t *testing.T, nodes int, m *maze) *crew {
	c := newCrew(t, nodes, m, m.url(0), m.url(1), m.url(2))
	newMesh(c)
	c.cfg.Recrawl = policy.Recrawl{Continuous: true,
		Intervals: []policy.Interval{{Every: recrawlEvery, Min: recrawlEvery, Max: recrawlEvery}}}
	return c
}

// runFor runs a crawl that does not end by itself. Nodes that restart after d end, too.
func (c *crew) runFor(t *testing.T, d time.Duration) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for wait := d; ; wait = 100 * time.Millisecond {
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				return
			}
			for _, n := range c.nodes {
				if e := n.engine.Load(); e != nil {
					e.Finish()
				}
			}
		}
	}()
	c.run(t)
}

// wantVisits checks that each page is visited again and again until the end, each time late by at most slack, and
// returns how many visits came too early.
func wantVisits(t *testing.T, c *crew, end time.Time, slack time.Duration) (early, all int) {
	t.Helper()
	var seeds []string
	for _, u := range c.seeds {
		seeds = append(seeds, u.String())
	}
	for url := range c.maze.closure(seeds) {
		times := c.maze.times[url]
		if len(times) == 0 {
			t.Errorf("%s is never visited", url)
			continue
		}
		for i, at := range append(times[1:], end) {
			all++
			gap := at.Sub(times[i])
			if gap > recrawlEvery+slack {
				t.Errorf("%s: %v without a visit, until %v", url, gap, at)
			}
			if gap < recrawlEvery-time.Second && at != end {
				early++
			}
		}
	}
	return early, all
}

// TestAMeshVisitsPagesAgain checks that without faults each page is visited once each time it is due.
func TestAMeshVisitsPagesAgain(t *testing.T) {
	m := &maze{hosts: 20, pages: 300}
	c := newRecrawl(t, 4, m)
	c.mesh.quiet = 30 * time.Second
	var end time.Time
	synctest.Test(t, func(t *testing.T) {
		c.runFor(t, 6*time.Minute)
		end = time.Now()
	})
	early, all := wantVisits(t, c, end, 10*time.Second)
	t.Logf("%d visits to %d pages", all, len(m.asked))
	if early > 0 {
		t.Errorf("%d visits came before they were due", early)
	}
}

// TestAMeshVisitsPagesOfLostNodesAgain crashes nodes at any byte that their engines or histories write. One of them does
// not come back.
func TestAMeshVisitsPagesOfLostNodesAgain(t *testing.T) {
	testmain.Slow(t)
	for seed, last := testmain.Seeds(2, 10); seed < last; seed++ {
		m := &maze{hosts: 20, pages: 200 + int(seed)}
		c := newRecrawl(t, 4, m)
		c.dice = rand.New(rand.NewPCG(seed, 5))
		c.mesh.quiet = 30 * time.Second
		var began, end time.Time
		const lasts = 12 * time.Minute
		c.mortal = func(n *crewNode) *vfstest.Faulty {
			disk := vfstest.NewFaulty(vfs.OS)
			if n.id == 3 && n.lives > 1 {
				time.Sleep(time.Until(began.Add(lasts - time.Second)))
			}
			if n.lives < 3 {
				disk.DieAfter(int64(64<<10 + n.chance(256<<10)))
			}
			return disk
		}
		synctest.Test(t, func(t *testing.T) {
			began = time.Now()
			c.runFor(t, lasts)
			end = time.Now()
		})
		early, all := wantVisits(t, c, end, 2*time.Minute)
		lives := 0
		for _, n := range c.nodes {
			lives += n.lives
		}
		t.Logf("seed %d: %d visits to %d pages in %d lives, %d before they were due", seed, all, len(m.asked), lives, early)
		if lives <= len(c.nodes) {
			t.Errorf("seed %d: no node has crashed", seed)
		}
		if early > all/10 {
			t.Errorf("seed %d: %d of %d visits came before they were due", seed, early, all)
		}
	}
}
