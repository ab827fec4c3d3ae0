package wire

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"kumo/internal/app/job"
	"kumo/internal/app/verify"
	"kumo/internal/base/vfs"
)

// A copy of a crawl's folder simulates a kill. The completed files are readable without the state.
func TestTheFilesOfAKilledCrawlAreCompleted(t *testing.T) {
	t.Parallel()
	var j *job.Job
	killed := filepath.Join(t.TempDir(), "killed")
	var once sync.Once
	s := newSite(t, map[string]http.HandlerFunc{
		"h.test/": html(`<a href="/second">a</a>`),
		"h.test/second": func(w http.ResponseWriter, r *http.Request) {
			once.Do(func() {
				awaitJournal(t, j.Dir, "/second")
				if err := os.CopyFS(killed, os.DirFS(j.Dir)); err != nil {
					t.Error(err)
				}
			})
			html("second")(w, r)
		}})
	j = s.job(t, "h.test/")
	mustRun(t, j)
	files := func(pattern string) []string {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(killed, pattern))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if open := files("warc/*.open"); len(open) == 0 {
		t.Fatal("the copy has no open WARC file")
	}
	const torn = `{"url":"http://h.test/to`
	pages := filepath.Join(killed, "pages.jsonl")
	f, err := os.OpenFile(pages, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(torn); err != nil {
		t.Fatal(err)
	}
	f.Close()
	for range 2 {
		if err := CompleteFiles(killed); err != nil {
			t.Fatal(err)
		}
		if open, complete := files("warc/*.open"), files("warc/*.warc.gz"); len(open) > 0 || len(complete) != 1 {
			t.Errorf("open files %q, complete files %q, want one complete file", open, complete)
		}
		if text, err := os.ReadFile(pages); err != nil || strings.Contains(string(text), torn) ||
			strings.Count(string(text), "\n") != 1 {
			t.Errorf("pages.jsonl is %q, %v, want one line", text, err)
		}
		r, err := VerifyFiles(t.Context(), killed, verify.Config{Disk: vfs.OS, Incomplete: true,
			Fault: func(f verify.Fault) { t.Errorf("%s: %s", f.Check, &f) }})
		if err != nil || r.Faults > 0 {
			t.Errorf("%d faults, %v", r.Faults, err)
		}
		wantVerified(t, killed)
	}
}
