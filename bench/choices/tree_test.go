package choices

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/andybalholm/cascadia"
	"github.com/antchfx/htmlquery"
	"golang.org/x/net/html"

	"kumo/internal/content/fields/tree"
)

// outline writes a tree's elements and texts, but for white space, the order of attributes, and capitals and namespaces
// in SVG.
func outline(root *html.Node) string {
	var b strings.Builder
	var text strings.Builder
	flush := func() {
		if s := strings.Join(strings.Fields(text.String()), " "); s != "" {
			fmt.Fprintf(&b, "%q", s)
		}
		text.Reset()
	}
	var walk func(*html.Node)
	walk = func(n *html.Node) {
		switch n.Type {
		case html.TextNode:
			text.WriteString(n.Data)
		case html.ElementNode:
			flush()
			var attrs []string
			for _, a := range n.Attr {
				key := a.Key
				if a.Namespace != "" {
					key = a.Namespace + ":" + key
				}
				attrs = append(attrs, fmt.Sprintf(" %s=%q", strings.ToLower(key), a.Val))
			}
			slices.Sort(attrs)
			b.WriteString("<" + strings.ToLower(n.Data) + strings.Join(attrs, "") + ">")
		}
		for c := range n.ChildNodes() {
			walk(c)
		}
		if n.Type == html.ElementNode {
			flush()
			b.WriteString("</>")
		}
	}
	walk(root)
	return b.String()
}

func standard(page string) (*html.Node, error) {
	return html.ParseWithOptions(strings.NewReader(page), html.ParseOptionEnableScripting(false))
}

// TestTree counts the pages, and the cases of the standard's own tests, of which kumo's tree and x/net's differ.
// KUMO_TEST_TREES names the folder of the cases (tree-construction of html5lib-tests, which golang.org/x/net/html has).
func TestTree(t *testing.T) {
	count := func(name string, all []string) {
		differ, failed := 0, 0
		p := tree.New(0)
		for _, page := range all {
			want, err := standard(page)
			if err != nil {
				failed++
				continue
			}
			if outline(p.Parse(page, false).Node(0)) != outline(want) {
				differ++
			}
		}
		t.Logf("%s: %d, of which the trees of %d differ and x/net refuses %d", name, len(all), differ, failed)
	}
	var all []string
	for _, page := range pages() {
		all = append(all, string(page))
	}
	count("pages", all)
	files, err := filepath.Glob(filepath.Join(os.Getenv("KUMO_TEST_TREES"), "*.dat"))
	if err != nil || len(files) == 0 {
		t.Skip("KUMO_TEST_TREES does not name the folder of the standard's cases")
	}
	var cases []string
	for _, file := range files {
		for _, c := range strings.Split("\n"+string(readFile(t, file)), "\n#data\n")[1:] {
			data, _, _ := strings.Cut(c, "\n#errors")
			if !strings.Contains(c, "\n#document-fragment") {
				cases = append(cases, data)
			}
		}
	}
	count("cases", cases)
}

// hostileTrees are pages that are made to cost much.
var hostileTrees = map[string]string{
	"nested":               strings.Repeat("<div>", 10_000) + "<h1 class=x>deep</h1>",
	"nested 500":           strings.Repeat(strings.Repeat("<div>", 500)+strings.Repeat("</div>", 500), 40),
	"siblings":             strings.Repeat("<li>", 60_000),
	"formatting reopened":  "<p>" + numbered("<b a=%d>", 400) + strings.Repeat("<p>x", 20_000),
	"links reopened":       strings.Repeat("<a><p>", 60_000),
	"attributes":           "<p " + numbered("a%d=1 ", 30_000) + ">y",
	"formatting and attrs": strings.Repeat("<b "+numbered("a%d=1 ", 1000)+">", 400),
	"tables":               strings.Repeat("<table><tr><td>", 2_000),
	"ends":                 strings.Repeat("<p>", 500) + strings.Repeat("</b>", 100_000),
}

func numbered(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// TestHostileTrees measures the time and memory of parsing, and of a few selectors and an XPath expression.
func TestHostileTrees(t *testing.T) {
	const limit = 20 * time.Second
	selectors := []string{"div div div p", "li ~ li ~ b", "b:has(zz)"}
	measure := func(t *testing.T, what string, f func()) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		begin, done := cpu(), make(chan struct{})
		go func() { f(); close(done) }()
		select {
		case <-done:
			runtime.ReadMemStats(&after)
			t.Logf("%-40s %6d ms %6d MB", what, (cpu() - begin).Milliseconds(), (after.TotalAlloc-before.TotalAlloc)>>20)
		case <-time.After(limit):
			t.Logf("%-40s not done after %s; no further", what, limit)
			t.SkipNow()
		}
	}
	for name, page := range hostileTrees {
		t.Run(name, func(t *testing.T) {
			var doc *html.Node
			var err error
			var own *tree.Tree
			measure(t, "kumo's tree", func() { own = tree.New(0).Parse(page, false) })
			for _, s := range selectors {
				compiled, err := tree.Compile(s)
				if err != nil {
					t.Fatal(err)
				}
				measure(t, "kumo "+s, func() { own.ResetSteps(); own.Find(compiled, 0, 1000) })
			}
			measure(t, "x/net's tree", func() { doc, err = standard(page) })
			if err != nil {
				t.Logf("x/net: %v", err)
				return
			}
			for _, s := range selectors {
				measure(t, "cascadia "+s, func() { cascadia.QueryAll(doc, cascadia.MustCompile(s)) })
			}
			measure(t, "htmlquery //div//div//b", func() { htmlquery.Find(doc, "//div//div//b") })
		})
	}
}

// BenchmarkTree makes trees of pages, and looks for links in them.
func BenchmarkTree(b *testing.B) {
	all := corpus(b)
	p := tree.New(0)
	find, err := tree.Compile("li > a[href]")
	if err != nil {
		b.Fatal(err)
	}
	matcher := cascadia.MustCompile("li > a[href]")
	byTurns(b, "page", len(all),
		&contender{name: "kumo", run: func() error {
			for _, page := range all {
				p.Parse(string(page), false)
			}
			return nil
		}},
		&contender{name: "x/net", run: func() error {
			for _, page := range all {
				if _, err := html.Parse(bytes.NewReader(page)); err != nil {
					return err
				}
			}
			return nil
		}},
		&contender{name: "x/net, its tokens alone", run: func() error {
			for _, page := range all {
				for z := html.NewTokenizer(bytes.NewReader(page)); z.Next() != html.ErrorToken; {
					z.Token()
				}
			}
			return nil
		}},
		&contender{name: "kumo, a selector", run: func() error {
			for _, page := range all {
				p.Parse(string(page), false).Find(find, 0, 10_000)
			}
			return nil
		}},
		&contender{name: "x/net, a selector by cascadia", run: func() error {
			for _, page := range all {
				doc, err := html.Parse(bytes.NewReader(page))
				if err != nil {
					return err
				}
				cascadia.QueryAll(doc, matcher)
			}
			return nil
		}},
		&contender{name: "x/net, an XPath expression by htmlquery", run: func() error {
			for _, page := range all {
				doc, err := html.Parse(bytes.NewReader(page))
				if err != nil {
					return err
				}
				htmlquery.Find(doc, "//li/a[@href]")
			}
			return nil
		}},
	)
}
