package wire

import (
	"fmt"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"kumo/internal/crawl"
	"kumo/internal/job"
	"kumo/internal/synthweb"
	"kumo/internal/traps"
	"kumo/internal/weburl"
)

// trapJob is a job that crawls a web with traps.
func trapJob(t *testing.T, seed uint64, pages int) (*job.Job, *synthweb.TrapWeb) {
	t.Helper()
	web := synthweb.NewTrapWeb(seed, pages)
	s := httptest.NewServer(web)
	t.Cleanup(s.Close)
	_, port, _ := strings.Cut(strings.TrimPrefix(s.URL, "http://"), ":")
	j := &job.Job{Dir: t.TempDir(), Name: "traps", Scope: weburl.ScopeDomain,
		Seeds: []string{"http://www." + synthweb.TrapDomain + ":" + port + "/"}}
	j.Crawl.Depth = -1
	j.Frontier.Hosts, j.Frontier.PerHost = 16, 4
	j.Fetch.AllowPrivate, j.Fetch.Resolve = true, []string{"*:*:127.0.0.1"}
	return j, web
}

// A crawl of a web whose traps have no end ends, has all honest pages, and says what it left out.
func TestTrapsEnd(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		seed  uint64
		pages int
		waste float64
	}{{1, 300, 0.5}, {1, 5000, 0.05}, {2, 5000, 0.05}, {3, 5000, 0.05}} {
		t.Run(fmt.Sprintf("seed %d, %d pages", c.seed, c.pages), func(t *testing.T) {
			if c.seed > 1 && os.Getenv("KUMO_TEST_TRAPS") == "" {
				t.Skip("takes half a minute; KUMO_TEST_TRAPS=1 has it run, as .ci/long web does")
			}
			t.Parallel()
			j, web := trapJob(t, c.seed, c.pages)
			mustRun(t, j)
			s := web.Score()
			t.Log(s)
			if s.Honest != c.pages || s.Waste() > c.waste {
				t.Errorf("%d of %d honest pages, %.1f %% in vain", s.Honest, c.pages, 100*s.Waste())
			}
			left := 0
			for _, line := range lines(t, j.Dir, "skipped.jsonl") {
				if line["rule"] == crawl.RuleTrap && traps.Pattern(fmt.Sprint(line["why"])) != "" {
					left++
				}
			}
			if left == 0 {
				t.Error("nothing stands in skipped.jsonl")
			}
		})
	}
}
