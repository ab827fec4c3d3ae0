package fulltext

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"kumo/internal/archive/sink"
	"kumo/internal/base/cputime"
	"kumo/internal/base/vfs"
)

var markup = regexp.MustCompile(`(?s)<script.*?</script>|<style.*?</style>|<[^>]*>`)

// htmlDocs returns the texts of HTML files below KUMO_BENCH_HTML, by default those of the machine's documentation.
func htmlDocs(b *testing.B) (docs []Doc, size int) {
	dir := os.Getenv("KUMO_BENCH_HTML")
	if dir == "" {
		dir = "/usr/share/doc"
	}
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".html" || !e.Type().IsRegular() {
			return nil //nolint:nilerr // what can be read will do
		}
		data, err := os.ReadFile(name)
		text := markup.ReplaceAllString(string(data), " ")
		docs = append(docs, Doc{URL: "http://a.test" + name, Status: 200, Time: day, Lang: "en", Type: "text/html",
			Title: name,
			Text:  text[:min(len(text), sink.MaxText)]})
		size += len(docs[len(docs)-1].Text)
		return err
	})
	if err != nil || len(docs) == 0 {
		b.Skipf("there is no HTML below %s: %v", dir, err)
	}
	return docs, size
}

func folderSize(b *testing.B, dir string) (n int64) {
	names, err := vfs.OS.List(dir)
	for _, name := range names {
		size, _ := vfs.OS.Size(filepath.Join(dir, name))
		n += size
	}
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// BenchmarkPut puts all documents once, in batches of 250.
func BenchmarkPut(b *testing.B) {
	docs, size := htmlDocs(b)
	for b.Loop() {
		dir := b.TempDir()
		x, err := Open(vfs.OS, dir)
		spent := cputime.Of(func() {
			for batch := range slices.Chunk(docs, 250) {
				if err == nil {
					err = x.Put(b.Context(), batch)
				}
			}
		})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(spent.Seconds()*1000/float64(len(docs)), "cpu-ms/doc")
		b.ReportMetric(float64(size)/float64(len(docs))/1024, "KB/doc")
		b.ReportMetric(float64(folderSize(b, dir))/float64(size), "index/text")
	}
}

// BenchmarkSearch searches for two words at a time in the index in KUMO_BENCH_INDEX, or in a new index.
func BenchmarkSearch(b *testing.B) {
	dir := os.Getenv("KUMO_BENCH_INDEX")
	if dir == "" {
		docs, _ := htmlDocs(b)
		dir = b.TempDir()
		x, err := Open(vfs.OS, dir)
		for batch := range slices.Chunk(docs, 250) {
			if err == nil {
				err = x.Put(b.Context(), batch)
			}
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	terms := someTerms(b, dir)
	for _, form := range []string{"%s", "%s %s", `"%s %s"`, "%s -%s lang:en"} {
		b.Run(form, func(b *testing.B) {
			var took []time.Duration
			i := 0
			for b.Loop() {
				first, second := terms[i*7%len(terms)], terms[i*13%len(terms)]
				i++
				text := fmt.Sprintf(form, first, second)
				if form == "%s" {
					text = first
				}
				q, err := Parse(text)
				if err != nil {
					b.Fatal(err)
				}
				begin := time.Now()
				r, err := OpenReader(vfs.OS, dir)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := r.Search(b.Context(), q, 0, 10); err != nil {
					b.Fatal(err)
				}
				r.Close()
				took = append(took, time.Since(begin))
			}
			slices.Sort(took)
			b.ReportMetric(took[len(took)/2].Seconds()*1000, "p50-ms")
			b.ReportMetric(took[len(took)*99/100].Seconds()*1000, "p99-ms")
		})
	}
}

// someTerms returns frequent and rare words.
func someTerms(b *testing.B, dir string) (all []string) {
	r, err := OpenReader(vfs.OS, dir)
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	n := 0
	for _, s := range r.segments {
		err := s.each("a", func(e entry) bool {
			if n++; e.term > "z" {
				return false
			}
			if e.df > s.info.Docs/100 || n%500 == 0 {
				all = append(all, e.term)
			}
			return true
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	return all
}
