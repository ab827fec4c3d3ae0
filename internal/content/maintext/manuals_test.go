package maintext

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"kumo/internal/content/fields/tree"
	"kumo/internal/lab/sitepages"
)

// A manual is the HTML documentation in a package of Debian.
type manual struct {
	name, pages string
	isMain      func(n *html.Node) bool // the element with the text
	isMenu      func(n *html.Node) bool // elements in it that are not text
}

func hasClass(n *html.Node, names ...string) bool {
	for _, name := range names {
		if hasWord(attr(n, "class"), name) {
			return true
		}
	}
	return false
}

var debianManuals = []manual{
	{"python3-doc", "python3*-doc/html/*/*.html",
		func(n *html.Node) bool { return attr(n, "role") == "main" },
		func(n *html.Node) bool { return hasClass(n, "headerlink", "contents") }},
	{"git-doc", "git/html/*.html",
		func(n *html.Node) bool { return attr(n, "id") == "content" },
		func(*html.Node) bool { return false }},
	{"postgresql-doc-15", "postgresql-doc-*/html/*.html",
		func(n *html.Node) bool { return n.DataAtom == atom.Body },
		func(n *html.Node) bool { return hasClass(n, "navheader", "navfooter") }},
}

// maxManual bounds the pages of a manual that are read.
const maxManual = 250

// TestManuals compares main texts of manuals with the text of the element that contains it: nearly all rows of tables
// and items of lists are content. KUMO_TEST_DOC replaces /usr/share/doc, which has the packages' files.
func TestManuals(t *testing.T) {
	dir := os.Getenv("KUMO_TEST_DOC")
	if dir == "" {
		dir = "/usr/share/doc"
	}
	for _, m := range debianManuals {
		t.Run(m.name, func(t *testing.T) {
			names, err := filepath.Glob(filepath.Join(dir, m.pages))
			if err != nil {
				t.Fatal(err)
			}
			if len(names) == 0 {
				t.Skipf("SKIPPED: no %s; install the Debian package %s, or set KUMO_TEST_DOC",
					filepath.Join(dir, m.pages), m.name)
			}
			testManual(t, &m, names)
		})
	}
}

func testManual(t *testing.T, m *manual, names []string) {
	parser := tree.New(0)
	step := (len(names) + maxManual - 1) / maxManual
	pages, empty, f1 := 0, 0, 0.0
	var parts rate
	for i := 0; i < len(names); i += step {
		body, err := os.ReadFile(names[i])
		if err != nil {
			t.Fatal(err)
		}
		doc := parser.Parse(string(body), false)
		want, rows := textOfManual(doc, m)
		if want == "" {
			continue // an alias of another page
		}
		got, err := Extract(body, "https://example.org/a")
		if err != nil {
			t.Fatal(err)
		}
		text := dense(got.Text)
		pages++
		empty += one(text == "")
		score := sitepages.ScoreOf(got.Text, want, got.Headline)
		f1 += score.F1
		missing := 0
		for _, row := range rows {
			found := strings.Contains(text, row)
			parts.all++
			parts.found += one(found)
			if !found {
				if missing++; missing < 3 {
					t.Logf("%s: missing %.80q", filepath.Base(names[i]), row)
				}
			}
		}
		if score.F1 < 0.95 {
			t.Logf("%s: precision %.3f, recall %.3f", filepath.Base(names[i]), score.Precision, score.Recall)
		}
	}
	t.Logf("%d pages, %d without text; F1 of words %.4f; rows and items %s", pages, empty, f1/float64(pages), parts)
	if empty > 0 || share(parts) < 0.99 || f1/float64(pages) < 0.985 {
		t.Errorf("%d of %d pages have no text; F1 %.4f, rows and items %s", empty, pages, f1/float64(pages), parts)
	}
}

// textOfManual returns the text of a manual's page, and that of its rows and items without white space.
func textOfManual(doc *tree.Tree, m *manual) (text string, rows []string) {
	var b strings.Builder
	end, menu := 0, 0
	for i := range doc.Nodes() {
		n := doc.Node(i)
		switch {
		case n.Type == html.ElementNode && m.isMain(n):
			end = max(end, doc.End(i))
		case i >= end || i < menu:
		case n.Type == html.TextNode && n.Parent.DataAtom != atom.Script && n.Parent.DataAtom != atom.Style:
			b.WriteString(n.Data)
		case m.isMenu(n):
			menu = doc.End(i)
		case n.DataAtom == atom.Tr || n.DataAtom == atom.Li:
			if row := dense(doc.Text(i)); row != "" && len(row) <= 400 {
				rows = append(rows, row)
			}
		}
		if n.Type == html.ElementNode && styleOf(n.DataAtom) != inline {
			b.WriteByte('\n')
		}
	}
	return strings.TrimSpace(b.String()), rows
}

// dense removes white space, and the signs of links of headings to themselves.
func dense(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || r == '¶' || unicode.IsControl(r) {
			return -1
		}
		return r
	}, s)
}
