package choices

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/gzip"

	"kumo/internal/lab/synthweb"
)

const (
	corpusBytes = 8 << 20   // total size of the pages
	longestPage = 256 << 10 // longer pages are skipped
)

// corpus returns more pages than fit into a processor's caches.
func corpus(b *testing.B) [][]byte {
	b.Helper()
	all := pages()
	if len(all) == 0 {
		b.Fatal("no pages")
	}
	return all
}

var pages = sync.OnceValue(func() (all [][]byte) {
	left := corpusBytes
	take := func(page []byte) bool {
		if len(page) > 0 && len(page) <= longestPage {
			all, left = append(all, page), left-len(page)
		}
		return left > 0
	}
	if dir := os.Getenv("KUMO_TEST_HTML"); dir != "" {
		readPages(dir, take)
		return all
	}
	web := synthweb.New(synthweb.Clean(1, 100, 1000))
	for url := range web.Truth(synthweb.TruthOptions{}).All(80) {
		a, err := web.Page(url)
		if err == nil && strings.HasPrefix(a.Header.Get("Content-Type"), "text/html") && !take(a.Body) {
			break
		}
	}
	return all
})

// readPages reads one page of each folder, then another of each, so that all generators of pages have the same weight.
func readPages(dir string, take func([]byte) bool) {
	byFolder := map[string][]string{}
	var folders []string
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error { // unreadable files are skipped
		if err == nil && !d.IsDir() && strings.Contains(filepath.Ext(path), ".htm") {
			folder := filepath.Dir(path)
			if byFolder[folder] == nil {
				folders = append(folders, folder)
			}
			byFolder[folder] = append(byFolder[folder], path)
		}
		return nil
	})
	for i, more := 0, true; more; i++ {
		more = false
		for _, folder := range folders {
			if i >= len(byFolder[folder]) {
				continue
			}
			more = true
			if page, err := os.ReadFile(byFolder[folder][i]); err == nil && !take(page) {
				return
			}
		}
	}
}

// gzipped compresses a page as most servers do.
func gzipped(b *testing.B, page []byte) []byte {
	b.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, err := z.Write(page)
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		b.Fatal(err)
	}
	return out.Bytes()
}

// testdata reads a file of the conformance data.
func testdata(t testing.TB, path ...string) string {
	t.Helper()
	dir := os.Getenv("KUMO_TEST_DATA")
	if dir == "" {
		t.Skip("KUMO_TEST_DATA does not name the folder of conformance data")
	}
	return filepath.Join(append([]string{dir}, path...)...)
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
