// Package jobtest provides test webs and the jobs that crawl them.
package jobtest

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kumo/internal/app/job"
	"kumo/internal/base/weburl"
	"kumo/internal/lab/synthweb"
)

// Serve serves a web until the test ends. Its pages are small unless cfg sets a size, because crawl tests depend on the
// number of pages.
func Serve(t testing.TB, cfg synthweb.Config) *synthweb.Server {
	t.Helper()
	if cfg.MedianSize == 0 {
		cfg.MedianSize = 3 << 10
	}
	s, err := synthweb.Serve(t.Context(), synthweb.New(cfg), synthweb.ServeOptions{DNS: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.Close()
		folders.Delete(s)
	})
	return s
}

// folders has the folders of the jobs for each server, from which a failure is explained: *folderList by server.
var folders sync.Map

type folderList struct {
	mu   sync.Mutex
	dirs []string
}

// For returns a job that crawls everything on the server quickly, in dir.
func For(s *synthweb.Server, dir string) *job.Job {
	entry, _ := folders.LoadOrStore(s, new(folderList))
	list := entry.(*folderList)
	list.mu.Lock()
	defer list.mu.Unlock()
	list.dirs = append(list.dirs, dir)
	j := &job.Job{Dir: dir, Name: "test", Seeds: s.SeedURLs(), Scope: weburl.ScopeAny}
	j.Crawl.Depth = -1
	j.Fetch.AllowPrivate, j.Fetch.DNSServer = true, s.DNS()
	j.Fetch.ConnectTimeout, j.Fetch.Timeout = 5*time.Second, 5*time.Second // a loaded machine may be slow
	j.Frontier.RetryWait = 10 * time.Millisecond
	return j
}

// WantPerfect checks a score: everything fetched, nothing twice, nothing forbidden. It returns the score. If pages are
// missing, the failure contains what the crawls of [For] recorded in skipped.jsonl for the hosts of some of them.
func WantPerfect(t testing.TB, s *synthweb.Server) synthweb.Score {
	t.Helper()
	return WantRepeats(t, s, 0)
}

// WantRepeats is WantPerfect for a crawl that was killed, which may have made up to most requests twice.
func WantRepeats(t testing.TB, s *synthweb.Server, most int64) synthweb.Score {
	t.Helper()
	score := s.Score()
	judged := score
	if score.Repeats+score.RepeatsOther <= most {
		judged.Repeats, judged.RepeatsOther = 0, 0
	}
	if !judged.Perfect() {
		t.Errorf("the servers saw:\n%s%s", score, skips(s, score.Examples["missing"]))
	}
	return score
}

const maxSkips = 40 // lines in a failure

// skips returns lines of the crawls' skipped.jsonl files for the hosts of URLs.
func skips(s *synthweb.Server, urls []string) string {
	hosts := map[string]bool{}
	for _, u := range urls {
		hosts[hostOf(u)] = true
	}
	entry, ok := folders.Load(s)
	if !ok || len(hosts) == 0 {
		return ""
	}
	list := entry.(*folderList)
	list.mu.Lock()
	defer list.mu.Unlock()
	slices.Sort(list.dirs)
	var b strings.Builder
	n := 0
	for _, dir := range slices.Compact(list.dirs) {
		data, err := os.ReadFile(filepath.Join(dir, "skipped.jsonl"))
		if err != nil {
			fmt.Fprintf(&b, "skips: %v\n", err)
		}
		for line := range strings.Lines(string(data)) {
			var skip struct{ URL string }
			if json.Unmarshal([]byte(line), &skip) == nil && hosts[hostOf(skip.URL)] && n < maxSkips {
				fmt.Fprintf(&b, "%s: %s\n", filepath.Base(dir), strings.TrimSpace(line))
				n++
			}
		}
	}
	return b.String()
}

// hostOf returns the host of a URL without its port, which scores do not contain; "" if it is invalid.
func hostOf(page string) string {
	u, err := url.Parse(page)
	if err != nil {
		return ""
	}
	return u.Hostname()
}
