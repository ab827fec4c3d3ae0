package nodes

import (
	"fmt"
	"testing"
	"time"

	"kumo/internal/app/job"
	"kumo/internal/base/settings"
	"kumo/internal/lab/jobtest"
	"kumo/internal/lab/synthweb"
	"kumo/internal/lab/testmain"
)

// slice divides each host into slices.
func (c *cluster) slice(n int, delay time.Duration) {
	c.tune = func(j *job.Job) {
		j.Frontier.Slices, j.Frontier.PerHost, j.Frontier.Delay = n, n, delay
		j.Settings = append(j.Settings, settings.Setting{Key: job.SlicesKey, Values: []string{fmt.Sprint(n)}})
	}
}

// Three nodes fetch one site; by a hash, each gets about a third.
func TestThreeNodesShareASite(t *testing.T) { underEach(t, threeNodesShareASite) }

func threeNodesShareASite(t *testing.T, strategy string) {
	cfg := synthweb.Clean(21, 1, 500)
	cfg.Latency = 5 * time.Millisecond
	web := jobtest.Serve(t, cfg)
	c := newCluster(t, web)
	c.strategy = strategy
	c.slice(96, 0)
	a, b, d := c.start("a"), c.start("b"), c.start("d")
	c.members(3)
	c.begin()
	c.ends(nil, a, b, d)
	score := jobtest.WantPerfect(t, web)
	if most := score.MostInFlight.Value; most < 2 || most > 96 {
		t.Errorf("%d requests at once to the site", most)
	}
	total := 0
	for _, r := range []*running{a, b, d} {
		n := pagesIn(t, r.dir)
		// The control unit considers more than a hash.
		if fair := score.Truth / 3; n == 0 || strategy == "shard" && (n < fair/2 || n > 2*fair) {
			t.Errorf("%s has fetched %d of %d pages", r.Name, n, score.Truth)
		}
		total += n
		wantVerified(t, r.dir)
	}
	if total != score.Truth {
		t.Errorf("%d pages are in the nodes' files, want %d", total, score.Truth)
	}
}

// A node with a part of a site dies, with or without its folder, and another one leaves. All pages are fetched; those
// not yet replicated possibly twice.
func TestASharedSiteSurvivesItsNodes(t *testing.T) {
	testmain.Slow(t)
	underEach(t, aSharedSiteSurvivesItsNodes)
}

func aSharedSiteSurvivesItsNodes(t *testing.T, strategy string) {
	web := jobtest.Serve(t, synthweb.Clean(22, 2, 1600))
	c := newCluster(t, web)
	c.lease = shortLease
	c.strategy = strategy
	c.slice(16, 10*time.Millisecond)
	a, b, d := c.start("a"), c.start("b"), c.start("d")
	c.members(3)
	c.midway(200)
	b.kill()
	b = c.start("b")
	c.further(500)
	b.kill()
	was := c.dir
	c.dir = t.TempDir() // its data is lost
	b = c.start("b")
	c.dir = was
	c.further(1000)
	d.Leave()
	c.eventually("it has left", func() bool { return !d.Member() })
	c.goOn(b)
	c.ends(nil, a, b)
	score := web.Score()
	if score.Missing != 0 || score.Forbidden != 0 || score.MostInFlight.Value > 16 {
		t.Errorf("the servers saw:\n%s", score)
	}
	if score.Repeats > 200 {
		t.Errorf("%d pages were fetched again", score.Repeats)
	}
	wantVerified(t, a.dir)
}
