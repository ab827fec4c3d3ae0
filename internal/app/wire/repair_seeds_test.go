package wire

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kumo/internal/base/advice"
	"kumo/internal/content/policy"
	"kumo/internal/lab/testmain"
)

// TestRepairOfSeeds damages the file of scope seeds of crawls with a file of seeds that is partly or completely read.
// After a repair the crawl can be completed; if seeds are lost, the file must be supplied again.
func TestRepairOfSeeds(t *testing.T) {
	testmain.Slow(t)
	t.Parallel()
	const n = 300
	roots := filepath.Join("state", "roots")
	damages := map[string]func(t *testing.T, name string){
		"lost": func(t *testing.T, name string) {
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
		},
		"cut": func(t *testing.T, name string) { edit(t, name, func(b []byte) []byte { return b[:len(b)/2+1] }) },
		"a byte": func(t *testing.T, name string) {
			edit(t, name,
				func(b []byte) []byte { b[len(b)/2] ^= 4; return b })
		},
		"the last byte": func(t *testing.T, name string) {
			edit(t, name,
				func(b []byte) []byte { b[len(b)-1] ^= 1; return b })
		},
	}
	for what, limit := range map[string]int64{"stopped": 50, "done": 0} {
		s, j := manySeeds(t, n)
		j.Crawl.Pages = limit
		if err := run(t, t.Context(), j); err != nil && !errors.Is(err, policy.ErrLimit) {
			t.Fatal(err)
		}
		j.Crawl.Pages = 0
		p := &patient{job: j, files: contentsOf(t, j.Dir)}
		for how, damage := range damages {
			t.Run(what+", "+how, func(t *testing.T) {
				j := p.copied(t)
				damage(t, filepath.Join(j.Dir, roots))
				if err := runOnly(t, j); err == nil || !strings.Contains(advice.Of(err), "kumo repair") {
					t.Errorf("the start: %v", err)
				}
				if _, err := testRepair(t, j, false); err != nil {
					t.Fatal(err)
				}
				wantVerified(t, j.Dir)
				without := *j
				without.File = nil
				if err := runOnly(t, &without); err == nil || !strings.Contains(err.Error(), "--input-file") {
					t.Errorf("without the list: %v", err)
				}
				mustRun(t, j)
				if got := len(lines(t, j.Dir, "pages.jsonl")); got != 2*n {
					t.Errorf("%d pages, want %d", got, 2*n)
				}
			})
		}
		t.Run(what+", all but the roots", func(t *testing.T) {
			j := p.copied(t)
			p.lose(t, j.Dir, []string{"state/journal", "state/seen", "state/frontier", "state/digests"})
			s.forget()
			if _, err := testRepair(t, j, false); err != nil {
				t.Fatal(err)
			}
			wantVerified(t, j.Dir)
			mustRun(t, j)
			if got := len(lines(t, j.Dir, "pages.jsonl")); got != 2*n {
				t.Errorf("%d pages, want %d", got, 2*n)
			}
		})
	}
}

func edit(t *testing.T, name string, change func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	write(t, name, string(change(b)))
}
