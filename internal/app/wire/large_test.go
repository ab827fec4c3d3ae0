package wire

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"kumo/internal/base/stats"
)

// TestALargeSitemapIsReadWhole: with little memory, the body is read from disk, and its URLs are admitted in many
// batches.
func TestALargeSitemapIsReadWhole(t *testing.T) {
	t.Parallel()
	const entries = 40_000
	pad := strings.Repeat("p", 300) // 15 MB
	s := newSite(t, map[string]http.HandlerFunc{
		"a.test/":           html("x"),
		"a.test/robots.txt": func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "Sitemap: /sitemap.xml\n") },
		"a.test/sitemap.xml": func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "<urlset>")
			for i := range entries {
				fmt.Fprintf(w, "<url><loc>/%d</loc><x>%s</x></url>\n", i, pad)
			}
		},
	})
	j := s.job(t, "a.test/")
	j.Memory, j.Crawl.Depth, j.Crawl.Exclude = 1<<20, -1, nil
	j.Crawl.Pages = 2 // the seed and the sitemap
	c, err := Open(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var report *stats.Report
	if report, err = c.Run(t.Context()); report == nil {
		t.Fatal(err)
	}
	if n := report.Known + report.PendingDedup; n != entries+2 { // some are undecided until the next merge
		t.Errorf("%d URLs are known, want %d (%v)", n, entries+2, err)
	}
}
