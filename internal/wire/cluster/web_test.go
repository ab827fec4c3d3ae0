package cluster

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"kumo/internal/synthweb"
	"kumo/internal/verify"
	"kumo/internal/weburl"
	"kumo/internal/wire"
)

func serve(t *testing.T, cfg synthweb.Config) *synthweb.Server {
	t.Helper()
	s, err := synthweb.Serve(t.Context(), synthweb.New(cfg), synthweb.ServeOptions{DNS: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// jobFor is a quick crawl of all that the server has.
func jobFor(s *synthweb.Server) *wire.Job {
	j := &wire.Job{Name: "test", Scope: weburl.ScopeAny}
	j.Crawl.Depth = -1
	j.Fetch.AllowPrivate, j.Fetch.DNSServer = true, s.DNS()
	j.Fetch.ConnectTimeout, j.Fetch.Timeout = 5*time.Second, 5*time.Second // a loaded machine takes its time
	j.Frontier.RetryWait = 10 * time.Millisecond
	return j
}

// wantWhole checks a score: all fetched, nothing twice, nothing forbidden.
func wantWhole(t *testing.T, s *synthweb.Server) synthweb.Score {
	t.Helper()
	score := s.Score()
	if !score.Perfect() {
		t.Errorf("the servers saw:\n%s", score)
	}
	return score
}

func wantVerified(t *testing.T, dir string) {
	t.Helper()
	_, err := wire.Verify(t.Context(), dir, verify.Config{Temp: t.TempDir(),
		Fault: func(f verify.Fault) { t.Errorf("%s: %s", f.Check, &f) }})
	if err != nil {
		t.Fatal(err)
	}
}

// pagesIn is how many pages a node's folder has.
func pagesIn(t *testing.T, dir string) int {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "pages.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(data, []byte("\n"))
}
