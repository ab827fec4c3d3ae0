// Package jobtest provides test webs and the jobs that crawl them.
package jobtest

import (
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
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// For returns a job that crawls everything on the server quickly, in dir.
func For(s *synthweb.Server, dir string) *job.Job {
	j := &job.Job{Dir: dir, Name: "test", Seeds: s.SeedURLs(), Scope: weburl.ScopeAny}
	j.Crawl.Depth = -1
	j.Fetch.AllowPrivate, j.Fetch.DNSServer = true, s.DNS()
	j.Fetch.ConnectTimeout, j.Fetch.Timeout = 5*time.Second, 5*time.Second // a loaded machine may be slow
	j.Frontier.RetryWait = 10 * time.Millisecond
	return j
}

// WantPerfect checks a score: everything fetched, nothing twice, nothing forbidden. It returns the score.
func WantPerfect(t testing.TB, s *synthweb.Server) synthweb.Score {
	t.Helper()
	score := s.Score()
	if !score.Perfect() {
		t.Errorf("the servers saw:\n%s", score)
	}
	return score
}
