package crawl

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/engine/visit"
)

// wantShares checks that all nodes fetched about the same number of pages.
func (c *crew) wantShares(t *testing.T) {
	t.Helper()
	shares, all := make([]int, len(c.nodes)), 0
	for _, by := range c.maze.asked {
		shares[by[0]]++
		all++
	}
	for i, n := range shares {
		if fair := all / len(c.nodes); n < fair/2 || n > 2*fair {
			t.Errorf("node %d has fetched %d of %d pages", i, n, all)
		}
	}
}

// TestNodesShareOneHost: several nodes fetch the pages of one host, each once.
func TestNodesShareOneHost(t *testing.T) {
	for _, lossy := range []int{0, 30} {
		t.Run(fmt.Sprintf("%d%% lost", lossy), func(t *testing.T) {
			m := &maze{hosts: 1, pages: 1500}
			crew := newCrew(t, 3, m, m.url(0), m.url(1), m.url(2))
			crew.slices, crew.lossy = item.NewSlices(30), lossy
			synctest.Test(t, crew.run)
			crew.wantAll(t, true)
			crew.wantShares(t)
		})
	}
}

func TestSlicesSurviveCrashes(t *testing.T) {
	for seed := range uint64(3) {
		survive(t, seed, 5)
	}
}

// TestClaimedSlicesAreFetchedOnce: slices of few hosts move between nodes.
func TestClaimedSlicesAreFetchedOnce(t *testing.T) {
	for _, c := range []struct{ nodes, lossy, moves int }{{3, 0, 0}, {3, 30, 0}, {2, 0, 200}} {
		t.Run(fmt.Sprintf("%d nodes, %d%% lost, %d moves", c.nodes, c.lossy, c.moves), func(t *testing.T) {
			m := &maze{hosts: 2, pages: 1500}
			crew := newCrew(t, c.nodes, m, m.url(0), m.url(1), m.url(2))
			crew.slices = item.NewSlices(20)
			newBackups(t, crew).lossy = c.lossy
			synctest.Test(t, func(t *testing.T) {
				defer crew.backups.inTime(crew)()
				var moving sync.WaitGroup
				moving.Go(func() { crew.backups.move(crew, c.moves) })
				crew.run(t)
				moving.Wait()
			})
			crew.wantClaims(t, true)
			crew.wantShares(t)
		})
	}
}

func TestClaimedSlicesSurviveCrashes(t *testing.T) {
	for seed := range uint64(3) {
		surviveClaiming(t, seed, 5)
	}
}

// robotsOf adds a robots.txt to each host of a maze.
func robotsOf(m *maze, text string) {
	answer := m.answer
	m.answer = func(url string, resp *page.Response) bool {
		if strings.HasSuffix(url, visit.RobotsPath) {
			resp.Payload = []byte(text)
			return true
		}
		return answer != nil && answer(url, resp)
	}
}

// TestSlicesObeyTheirHostsRules: each node requests a host's robots.txt once, whichever slice needs it first, and all
// slices obey it.
func TestSlicesObeyTheirHostsRules(t *testing.T) {
	for _, far := range []bool{false, true} { // it redirects to another host
		m := &maze{hosts: 1, pages: 400}
		robotsOf(m, "User-agent: *\nDisallow: /*3$\n")
		if answer := m.answer; far {
			m.answer = func(url string, resp *page.Response) bool {
				if url == "http://h0.test/robots.txt" {
					resp.Status, resp.Header = http.StatusFound, http.Header{"Location": {"http://far.test/robots.txt"}}
					return true
				}
				return answer(url, resp)
			}
		}
		crew := newCrew(t, 3, m, m.url(0), m.url(1), m.url(2))
		crew.cfg.IgnoreRobots = false
		crew.slices = item.NewSlices(30)
		synctest.Test(t, crew.run)
		all := []string{"http://h0.test/robots.txt"}
		if far {
			all = append(all, "http://far.test/robots.txt")
		}
		for _, url := range all {
			if by := m.asked[url]; len(by) != 3 {
				t.Errorf("redirected %v: %s is asked for by %v", far, url, by)
			}
			delete(m.asked, url)
		}
		crew.wantShares(t)
		if len(m.asked) < 200 {
			t.Errorf("redirected %v: only %d pages are fetched", far, len(m.asked))
		}
		for url, by := range m.asked {
			if len(by) > 1 || strings.HasSuffix(url, "3") {
				t.Errorf("redirected %v: %s is fetched by %v", far, url, by)
			}
		}
	}
}

// TestSlicesShareACrawlDelay: a host's delay applies to requests of all its slices, on average: each slice waits for a
// multiple of it. This includes slices that were unknown when the robots.txt was fetched.
func TestSlicesShareACrawlDelay(t *testing.T) {
	const cut = 8
	m := &maze{hosts: 1, pages: 300}
	crew := newCrew(t, 2, m, m.url(0))
	crew.cfg.IgnoreRobots = false
	crew.slices = item.NewSlices(cut)
	var mu sync.Mutex // guards last
	last := map[string]time.Time{}
	m.answer = func(url string, _ *page.Response) bool {
		mu.Lock()
		defer mu.Unlock()
		slice := crew.slices.Of(url)
		if since := time.Since(last[slice]); since < 2*cut*time.Second {
			t.Errorf("%s is fetched %v after another page of %s", url, since, slice)
		}
		last[slice] = time.Now()
		return false
	}
	robotsOf(m, "User-agent: *\nCrawl-delay: 2\n")
	synctest.Test(t, crew.run)
	if len(m.asked) < 100 || len(last) != cut {
		t.Errorf("%d pages of %d slices are fetched", len(m.asked), len(last))
	}
}

// TestSlicesAreGivenUpWithTheirOrigin: the URLs of all slices of an abandoned origin are left for the next run.
func TestSlicesAreGivenUpWithTheirOrigin(t *testing.T) {
	x := newTradeOf(t, 1, false, 4)
	n := x.nodes[0]
	for slice := range x.owner {
		x.owner[slice] = 0
	}
	for range 50 {
		n.find()
	}
	found := len(x.urls)
	if err := n.e.abandons.abandonOrigin("http://h1.test", visit.Abandonment{Failure: page.Refused, Why: "refused"}); err != nil {
		t.Fatal(err)
	}
	for slice := range x.slices.All("h1.test") {
		if i, _ := n.e.frontier.Host(slice); i.Pending > 0 {
			t.Errorf("%d URLs wait in %s", i.Pending, slice)
		}
	}
	if i, _ := n.e.frontier.Host("h2.test#1"); i.Pending == 0 {
		t.Error("those of another host do not wait either")
	}
	given := 0
	for _, f := range x.urls {
		if item.HostOfSlice(f.host) == "h1.test" {
			given++
		}
	}
	shelved := 0
	if err := n.e.abandons.abandoned.EachCurrent(func(item.Item) error { shelved++; return nil }); err != nil ||
		shelved != given {
		t.Errorf("%d URLs of %d are kept for the next run, %v", shelved, given, err)
	}
	waits, err := waitingAt(n.e.frontier, n.e.abandons.abandoned)
	if err != nil || len(waits) != found {
		t.Errorf("%d URLs wait, not %d, %v", len(waits), found, err)
	}
}

// TestAHostsPagesAreCountedWithItsSlices: a limit of a host's pages applies to all its slices together.
func TestAHostsPagesAreCountedWithItsSlices(t *testing.T) {
	m := &maze{hosts: 1, pages: 300}
	crew := newCrew(t, 1, m, m.url(0), m.url(1), m.url(2))
	crew.slices, crew.cfg.PagesPerHost = item.NewSlices(8), 50
	synctest.Test(t, crew.run)
	if len(m.asked) != 50 {
		t.Errorf("%d pages are fetched", len(m.asked))
	}
	if pages := crew.nodes[0].pages; !maps.Equal(pages, map[string]int64{"h0.test": 50}) {
		t.Errorf("pages by host: %v", pages)
	}
}
