package maintext

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kumo/internal/base/cputime"
)

const benchBytes = 8 << 20 // of all pages

// BenchmarkPages extracts the main text of the HTML files in the folder KUMO_TEST_HTML, of every folder in it the same
// number. An operation is one pass over them; it reports the CPU time of a page.
func BenchmarkPages(b *testing.B) {
	dir := os.Getenv("KUMO_TEST_HTML")
	if dir == "" {
		b.Skip("KUMO_TEST_HTML does not name a folder with HTML files")
	}
	pages := pagesIn(b, dir)
	bytes := 0
	for _, p := range pages {
		bytes += len(p)
	}
	for name, markdown := range map[string]*string{"text": nil, "markdown": new(string)} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(bytes))
			b.ReportAllocs()
			n := 0
			var took time.Duration
			for b.Loop() {
				took += cputime.Of(func() {
					for _, p := range pages {
						_, _ = read(p, "https://example.org/module.html", now, markdown)
					}
				})
				n += len(pages)
			}
			b.ReportMetric(float64(took.Microseconds())/float64(n), "cpu-µs/page")
		})
	}
}

// pagesIn reads one file of each folder, then another of each, up to benchBytes.
func pagesIn(b *testing.B, dir string) (pages [][]byte) {
	folders := map[string][]string{}
	var names []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.Contains(filepath.Ext(path), ".htm") {
			folder := filepath.Dir(path)
			if folders[folder] == nil {
				names = append(names, folder)
			}
			folders[folder] = append(folders[folder], path)
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	left := benchBytes
	for i, more := 0, true; more; i++ {
		more = false
		for _, name := range names {
			if i >= len(folders[name]) || left <= 0 {
				continue
			}
			more = true
			page, err := os.ReadFile(folders[name][i])
			if err != nil {
				b.Fatal(err)
			}
			if len(page) <= 512<<10 {
				pages, left = append(pages, page), left-len(page)
			}
		}
	}
	return pages
}
