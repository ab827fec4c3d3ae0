package crawl

import (
	"fmt"
	"testing"
	"time"

	"kumo/internal/base/stats"
	"kumo/internal/content/policy"
	"kumo/internal/state/seen"
)

// TestPagesOfHostsOfEarlierRuns: if there were too many hosts to count pages by host, they are counted in the URL
// database.
func TestPagesOfHostsOfEarlierRuns(t *testing.T) {
	e := onDisk(t, t.TempDir())
	e.cfg.PagesPerHost = 3
	e.limits.quota = policy.NewQuota(policy.Limits{Pages: e.cfg.Pages, PerHost: e.cfg.PagesPerHost}, 0)
	visit := func(url string, status int) {
		e.known.db.Offer([]seen.URL{{URL: url, State: seen.Known}}, nil)
		e.known.db.UpdateMeta(url, seen.Meta{Fetched: time.Unix(1e9, 0), Status: status})
	}
	for i := range 2 {
		visit(fmt.Sprint("http://a.example/", i), 200)
		visit(fmt.Sprint("https://a.example/", i), 404)
		visit(fmt.Sprint("https://a.example:8080/", i), 200)
		visit(fmt.Sprint("https://b.example/", i), 0)
		if err := e.Checkpoints.checkpoint(t.Context()); err != nil { // URLs are then on disk and in memory
			t.Fatal(err)
		}
		visit("http://a.example/0", 200) // visited again
	}
	e.known.db.Offer([]seen.URL{{URL: "http://b.example/", State: seen.Known}}, nil)
	for i := range 1 << 16 {
		e.abandons.stats.Visited(stats.Visit{Host: fmt.Sprint(i), Status: 200})
	}
	pages := map[string]int64{"a.example": 4, "a.example:8080": 2, "b.example": 0}
	for _, counted := range []bool{false, true} {
		if counted {
			if err := e.limits.loadHostCounts(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for host, want := range pages {
			if n, err := e.limits.hostPages(host); n != want || err != nil {
				t.Errorf("counted %v: %s has %d pages, want %d; %v", counted, host, n, want, err)
			}
		}
	}
	if e.limits.quota.Acquire("a.example", "") != policy.HostIsFull || e.limits.quota.Acquire("b.example",
		"") != policy.Granted {
		t.Error("the limit does not hold")
	}
}
