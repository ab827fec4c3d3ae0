package jobtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kumo/internal/lab/synthweb"
)

// A failer records a failure instead of failing.
type failer struct {
	testing.TB
	said string
}

func (f *failer) Helper() {}

func (f *failer) Errorf(_ string, args ...any) {
	for _, a := range args {
		switch a := a.(type) {
		case string:
			f.said += a
		case synthweb.Score:
			f.said += a.String()
		}
	}
}

// TestWantPerfectExplainsMissingPages: the failure contains the skips of the hosts with missing pages, of all folders.
func TestWantPerfectExplainsMissingPages(t *testing.T) {
	s := Serve(t, synthweb.Clean(1, 1, 3))
	seed := s.SeedURLs()[0]
	dirs := []string{t.TempDir(), t.TempDir()}
	for _, dir := range dirs {
		For(s, dir)
	}
	skipped := `{"url":"` + seed + `lost","reason":"tries"}` + "\n" + `{"url":"http://other.example/","reason":"scope"}` + "\n"
	if err := os.WriteFile(filepath.Join(dirs[1], "skipped.jsonl"), []byte(skipped), 0o666); err != nil {
		t.Fatal(err)
	}
	f := &failer{TB: t}
	WantPerfect(f, s)
	if !strings.Contains(f.said, seed+`lost","reason":"tries"`) || strings.Contains(f.said, "other.example") {
		t.Errorf("failure %q, want the skips of %s", f.said, seed)
	}
}
