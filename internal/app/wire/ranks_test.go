package wire

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"kumo/internal/base/weburl"

	"kumo/internal/app/inspect"
	"kumo/internal/app/job"
	"kumo/internal/content/policy"
	"kumo/internal/engine/crawl"
	"kumo/internal/lab/jobtest"
	"kumo/internal/lab/synthweb"
	"kumo/internal/lab/testmain"
	"kumo/internal/state/rank"
	"kumo/internal/state/rank/linklog"
)

// A popularWeb has some pages with many links to them, on any host: half of all links point to pages drawn from a power
// law, the others to random pages of the same host.
type popularWeb struct {
	hosts, pages int
	popular      []int     // pages by descending popularity
	below        []float64 // for each of these, the cumulative probability of pages at least as popular
}

func newPopularWeb(seed uint64, hosts, pages int) *popularWeb {
	w := &popularWeb{hosts: hosts, pages: pages, popular: rand.New(rand.NewPCG(seed, 0)).Perm(pages)}
	sum := 0.
	for i := range pages {
		sum += 1 / float64(i+3)
		w.below = append(w.below, sum)
	}
	return w
}

func (w *popularWeb) links(page int) (to []int) {
	dice := rand.New(rand.NewPCG(uint64(page), 1))
	for i := range 12 {
		if i%2 == 0 {
			at, _ := slices.BinarySearch(w.below, dice.Float64()*w.below[w.pages-1])
			to = append(to, w.popular[at])
		} else {
			to = append(to, dice.IntN(w.pages/w.hosts)*w.hosts+page%w.hosts)
		}
	}
	return to
}

// serve serves the web. Page n is /n of host n modulo their number.
func (w *popularWeb) serve(t *testing.T) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		_, port, _ := strings.Cut(r.Host, ":")
		page, err := strconv.Atoi(r.URL.Path[1:])
		if err != nil {
			http.NotFound(out, r)
			return
		}
		out.Header().Set("Content-Type", "text/html")
		for _, to := range w.links(page) {
			fmt.Fprintf(out, "<a href=http://h%d.test:%s/%d>x</a>\n", to%w.hosts, port, to)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// TestPageRankFindsWhatMatters: a crawl that may fetch a tenth of a web finds more of its 500 most important pages by
// PageRank than in the order found, or in any other order.
func TestPageRankFindsWhatMatters(t *testing.T) {
	testmain.Slow(t)
	t.Parallel()
	const pages, top = 4000, 500
	web := newPopularWeb(1, 40, pages)
	s := web.serve(t)
	order := func(t *testing.T, name string, limit int64) *job.Job {
		j := &job.Job{Dir: t.TempDir(), Name: "test", Scope: weburl.ScopeAny, Order: name,
			Seeds: []string{"http://h0.test" + s.URL[strings.LastIndexByte(s.URL, ':'):] + "/0"}}
		j.Crawl.Depth, j.Crawl.Pages, j.Frontier.Hosts, j.Crawl.IgnoreRobots = -1, limit, 4, true
		if limit > 0 {
			j.Crawl.Rate = 150 // so that ranks are computed several times
		}
		j.Fetch.Resolve = []string{"*:*:127.0.0.1"}
		if err := run(t, t.Context(), j); err != nil && !errors.Is(err, policy.ErrLimit) {
			t.Fatal(err)
		}
		return j
	}
	important := map[string]bool{}
	for one, err := range look(t, order(t, job.PageRank, 0)).Top(t.Context(), top, false) {
		if err != nil {
			t.Fatal(err)
		}
		important[one.URL] = true
	}
	if len(important) != top {
		t.Fatalf("%d URLs are the top", len(important))
	}
	var mu sync.Mutex
	found := map[string]int{}
	t.Run("orders", func(t *testing.T) {
		for _, name := range job.Orders() {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				n := 0
				for _, l := range lines(t, order(t, name, pages/10).Dir, "pages.jsonl") {
					if important[l["url"].(string)] {
						n++
					}
				}
				mu.Lock()
				defer mu.Unlock()
				found[name] = n
			})
		}
	})
	t.Logf("of the top %d: %v", top, found)
	if found[job.PageRank] <= found[job.Breadth] || found[job.PageRank] <= found[job.Random] {
		t.Errorf("of the top %d: %v", top, found)
	}
}

// look opens a view of a crawl that is not running.
func look(t *testing.T, j *job.Job) *inspect.View {
	t.Helper()
	v, err := Inspect(t.Context(), j.Dir, func() (*job.Job, error) {
		return &job.Job{Dir: j.Dir, Order: j.Order, Crawl: crawl.Config{Depth: -1}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	return v
}

// TestLinksThatAreLostAreNotMissed: a crawl that has lost its links continues with a warning, and ranks URLs by new
// ones.
func TestLinksThatAreLostAreNotMissed(t *testing.T) {
	t.Parallel()
	cfg := synthweb.Clean(2, 4, 120)
	cfg.MedianSize = 1 << 10
	for _, file := range []string{linklog.KeysFile, linklog.LinksFile, "key", ""} {
		t.Run("without "+file, func(t *testing.T) {
			s := jobtest.Serve(t, cfg)
			j := jobtest.For(s, t.TempDir())
			j.Order, j.Crawl.Pages = job.PageRank, 60
			if err := run(t, t.Context(), j); !errors.Is(err, policy.ErrLimit) {
				t.Fatal(err)
			}
			dir := filepath.Join(j.Dir, filepath.FromSlash(crawl.RankDir))
			if err := os.RemoveAll(filepath.Join(dir, file)); err != nil {
				t.Fatal(err)
			}
			var said []string
			j.Warn = func(err error) { said = append(said, err.Error()) }
			j.Crawl.Pages = 0
			if err := run(t, t.Context(), j); err != nil {
				t.Fatal(err)
			}
			jobtest.WantPerfect(t, s)
			if len(said) != 1 || !strings.Contains(said[0], "ranked") {
				t.Errorf("said %q", said)
			}
		})
	}
}

// TestLinksOfEarlierBuild: a link log of an earlier build, which had no checksums, is replaced with a warning that says
// so.
func TestLinksOfEarlierBuild(t *testing.T) {
	t.Parallel()
	cfg := synthweb.Clean(2, 4, 120)
	cfg.MedianSize = 1 << 10
	s := jobtest.Serve(t, cfg)
	j := jobtest.For(s, t.TempDir())
	j.Order, j.Crawl.Pages = job.PageRank, 60
	if err := run(t, t.Context(), j); !errors.Is(err, policy.ErrLimit) {
		t.Fatal(err)
	}
	name := filepath.Join(j.Dir, filepath.FromSlash(crawl.RankDir), linklog.LinksFile)
	links, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	// No byte of these records begins checksums.
	if err := os.WriteFile(name, bytes.Repeat([]byte{4, 1, 1}, len(links)/3+1), 0o666); err != nil {
		t.Fatal(err)
	}
	var warned []string
	j.Warn = func(err error) { warned = append(warned, err.Error()) }
	j.Crawl.Pages = 0
	if err := run(t, t.Context(), j); err != nil {
		t.Fatal(err)
	}
	jobtest.WantPerfect(t, s)
	if len(warned) != 1 || !strings.Contains(warned[0], "earlier build") {
		t.Errorf("warnings %q, want one that names the earlier build", warned)
	}
}

// TestTheOrderMayChange: a crawl continues with another order, and with its existing links.
func TestTheOrderMayChange(t *testing.T) {
	t.Parallel()
	cfg := synthweb.Clean(3, 6, 200)
	cfg.MedianSize = 1 << 10
	s := jobtest.Serve(t, cfg)
	j := jobtest.For(s, t.TempDir())
	for i, name := range []string{job.ByDepth, job.InDegree, job.PageRank, job.Random, job.OPIC, job.Breadth} {
		j.Order, j.Crawl.Pages = name, int64(30*(i+1))
		if err := run(t, t.Context(), j); !errors.Is(err, policy.ErrLimit) {
			t.Fatal(name, err)
		}
	}
	j.Crawl.Pages = 0
	if err := run(t, t.Context(), j); err != nil {
		t.Fatal(err)
	}
	jobtest.WantPerfect(t, s)
}

// TestPlacesAreOfTheRanksOfNow: in a crawl that is not running, the most important URL of a host's queue comes first.
func TestPlacesAreOfTheRanksOfNow(t *testing.T) {
	t.Parallel()
	cfg := synthweb.Clean(3, 1, 400)
	cfg.MedianSize = 1 << 10
	s := jobtest.Serve(t, cfg)
	j := jobtest.For(s, t.TempDir())
	j.Order, j.Crawl.Pages = job.PageRank, 60
	if err := run(t, t.Context(), j); !errors.Is(err, policy.ErrLimit) {
		t.Fatal(err)
	}
	before, last, judged := rank.Place(-1), 0, 0
	for one, err := range look(t, j).Top(t.Context(), 1000, false) {
		if err != nil {
			t.Fatal(err)
		}
		if one.Fetched || judged == 20 {
			continue
		}
		x, err := look(t, j).Explain(t.Context(), one.URL)
		if err != nil {
			t.Fatal(err)
		}
		place := rank.PlaceOf(one.Importance)
		if place > before && x.Place < last {
			t.Errorf("%s, of importance %v, is at place %d, and one of more at %d", one.URL, one.Importance, x.Place,
				last)
		}
		before, last, judged = place, x.Place, judged+1
	}
	if judged != 20 {
		t.Errorf("%d URLs wait", judged)
	}
}
