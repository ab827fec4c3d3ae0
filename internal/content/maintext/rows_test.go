package maintext

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/net/html/atom"

	"kumo/internal/content/fields/tree"
)

// TestRows counts the rows and items in the main part of the pages in the folder KUMO_TEST_HTML that are in the main
// text: nearly all of documentation are content.
func TestRows(t *testing.T) {
	dir := os.Getenv("KUMO_TEST_HTML")
	if dir == "" {
		t.Skip("KUMO_TEST_HTML does not name a folder with HTML files")
	}
	squeezed := func(s string) string {
		return strings.Map(func(r rune) rune {
			if unicode.IsSpace(r) || r == '¶' || unicode.IsControl(r) {
				return -1
			}
			return r
		}, s)
	}
	parser := tree.New(0)
	pages, all, kept, empty := 0, 0, 0, 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".html" {
			return err
		}
		page, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		got, _ := Extract(page, "https://example.org/a")
		text := squeezed(got.Text)
		pages++
		if text == "" {
			empty++
			t.Logf("no text: %s", path)
		}
		doc := parser.Parse(string(page), false)
		missing := 0
		end := 0
		for i := range doc.Nodes() {
			n := doc.Node(i)
			if n.DataAtom == atom.Main || attr(n, "role") == "main" {
				end = doc.End(i)
			}
			if i >= end || n.DataAtom != atom.Tr && n.DataAtom != atom.Li {
				continue
			}
			want := squeezed(doc.Text(i))
			if want == "" || len(want) > 400 {
				continue
			}
			all++
			if strings.Contains(text, want) {
				kept++
			} else if missing++; missing < 3 {
				t.Logf("%s: %.80q", filepath.Base(path), want)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d pages, %d without text; %d of %d rows and items", pages, empty, kept, all)
	if all > 0 && 100*kept < 99*all {
		t.Errorf("%d of %d rows and items are in the texts", kept, all)
	}
}
