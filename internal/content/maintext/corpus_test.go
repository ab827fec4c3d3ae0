package maintext

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kumo/internal/content/fields/tree"
	"kumo/internal/lab/sitepages"
)

// TestCorpus compares the main texts of the pages in the folder KUMO_TEST_READABILITY with those that a person chose.
// It has the form of Readability's test set: a folder for each page with source.html and expected.html.
func TestCorpus(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(os.Getenv("KUMO_TEST_READABILITY"), "*", "source.html"))
	if err != nil || len(files) == 0 {
		t.Skip("KUMO_TEST_READABILITY does not name a folder with pages")
	}
	parser := tree.New(0)
	var sum, precision, recall float64
	empty := 0
	for _, file := range files {
		page, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		expected, err := os.ReadFile(filepath.Join(filepath.Dir(file), "expected.html"))
		if err != nil {
			t.Fatal(err)
		}
		var want strings.Builder
		doc := parser.Parse(string(expected), false)
		for i := range doc.Nodes() {
			if n := doc.Node(i); doc.Name(i) == "" {
				want.WriteString(n.Data + " ")
			}
		}
		got, _ := Extract(page, "https://example.org/a/page")
		score := sitepages.ScoreOf(got.Text, want.String(), "")
		p, r, f := score.Precision, score.Recall, score.F1
		if got.Text == "" {
			empty++
		}
		sum, precision, recall = sum+f, precision+p, recall+r
		t.Logf("%.3f precision %.3f recall %.3f %s", f, p, r, filepath.Base(filepath.Dir(file)))
	}
	n := float64(len(files))
	t.Logf("%d pages: F1 %.3f, precision %.3f, recall %.3f, empty %d", len(files), sum/n, precision/n, recall/n, empty)
}
