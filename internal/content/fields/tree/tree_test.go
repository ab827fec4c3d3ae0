package tree

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"
)

// outline formats a tree's elements and texts without white space.
func outline(n *html.Node) string {
	var b strings.Builder
	var walk func(*html.Node)
	text := ""
	walk = func(n *html.Node) {
		if n.Type != html.TextNode && n.Type != html.CommentNode {
			if s := strings.Join(strings.Fields(text), " "); s != "" {
				fmt.Fprintf(&b, "%q", s)
			}
			text = ""
		}
		switch n.Type {
		case html.TextNode:
			text += n.Data
		case html.ElementNode:
			b.WriteString("<" + n.Data)
			for _, a := range n.Attr {
				fmt.Fprintf(&b, " %s=%q", a.Key, a.Val)
			}
			b.WriteString(">")
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c)
		}
		if n.Type == html.ElementNode {
			if s := strings.Join(strings.Fields(text), " "); s != "" {
				fmt.Fprintf(&b, "%q", s)
			}
			text = ""
			b.WriteString("</>")
		}
	}
	walk(n)
	return b.String()
}

// TestTree compares trees with those of a library that implements the whole standard.
func TestTree(t *testing.T) {
	for _, page := range []string{
		"", "text", "<p>a<p>b", "<title>a &amp; b</title><h1 class=x>c",
		"<!DOCTYPE html><html lang=de><head><meta charset=utf-8></head><body class='a b'><p>x</p></body></html> ",
		"<ul><li>a<li>b<ul><li>c</ul><li>d</ul>", "<dl><dt>a<dd>b<dt>c<dd>d</dl>", "<table><tr><td>a<td>b<tr><th>c</table>d",
		"<table><thead><tr><th>a</thead><tr><td><table><tr><td>x</table><td>y</table>", "<select><option>a<option>b</select>",
		"<div><span>a</div>b</span>c", "<script>if (a < b) { '<p>' }</script><p>x", "<body><textarea> a <b> &lt;</textarea>c",
		"<p>a<div>b</div>c</p>", "<a href='?a=1&amp;b=2&copy=3' title=\"&quot;\">x</a>", "<h1>a<h2>b</h2>c",
		"<img src=a><br/>b<hr>c",
		"<svg><path d='x'/><g><circle/></g></svg><p>x", "<!-- <p> --><p>a<!--b-->c<!-->d-->", "<p>a</p ></p", "a<b",
		"<p =x y==z>a", "<P CLASS=A>b</P>",
		"<div a=1 a=2>x</div>", "<button>a<button>b</button>", "<p>1 < 2 && 3 > 2</p>", "<head><noscript></noscript></head>x",
		"<ruby>a<rt>b<rt>c</ruby>",
		"<html><body><p>a</body></html><p>b", "<head><title>a</title></head>\n<body>x", "<p>&nbsp;&euro;&#8364;&bogus;</p>",
		"<head profile=x><title>a</title></head>b",
		"<style>a{}</style><link rel=x><p>y",
		"<form><div><input name=a><label>b</form>", "<details><summary>a</summary><p>b</details>",
		"<p><b>x</b> y <i>z</i></p>",
		"<table><caption>c</caption><colgroup><col><col></colgroup><tbody><tr><td>x</tbody></table>",
		"<table><tr><td><p>a</table><p>b",
		"<article><h2><a href=x>y</a></h2><p>z</article>",
	} {
		doc, err := html.ParseWithOptions(strings.NewReader(page), html.ParseOptionEnableScripting(false))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := outline(New(0).Parse(page, false).Node(0)), outline(doc); got != want {
			t.Errorf("%s\n got %s\nwant %s", page, got, want)
		}
	}
}

func TestXML(t *testing.T) {
	tree := New(0).Parse(`<?xml version="1.0"?><!DOCTYPE rss><rss><channel><item><pubDate>a</pubDate><link>b</link>`+
		`<x:y Z="1"/><description><![CDATA[<b>&amp;]]></description></item></channel></rss>`, true)
	want := `<rss><channel><item><pubDate>"a"</><link>"b"</><x:y Z="1"></><description>"<b>&amp;"</></></></>`
	if got := outline(tree.Node(0)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestSelectors compares the results with those of cascadia alone.
func TestSelectors(t *testing.T) {
	selectors := []string{"p", "div p", "div > p", "p + p", "p ~ div", ".a .b", "div.a > .b + p", "#x", "[t]",
		"[t='1, 2']", "p, div", "div div div",
		"p:first-child", "div:has(p)", "p:not(.a)", "li:nth-child(2n + 1)", "*", "div *", ".a ~ .b .c", "div > div > p, .c",
		"p:contains('a > b')", "body > *",
		"html", ":not(p):not(div)", "div:nth-last-child(2) > p", "p:only-child", "[class~=a][class~=b]"}
	random := rand.New(rand.NewPCG(1, 2))
	for range 30 {
		page := randomPage(random, 60)
		tree := New(0).Parse(page, false)
		for _, text := range selectors {
			s, err := Compile(text)
			if err != nil {
				t.Fatal(text, err)
			}
			var got, want []*html.Node
			for _, i := range tree.Find(s, 0, 10_000) {
				got = append(got, tree.Node(i))
			}
			group, err := cascadia.ParseGroup(text)
			if err != nil {
				t.Fatal(text, err)
			}
			want = cascadia.QueryAll(tree.Node(0), group)
			if !slices.Equal(got, want) {
				t.Fatalf("%s in %s: %d found, %d wanted", text, page, len(got), len(want))
			}
		}
	}
}

func randomPage(random *rand.Rand, n int) string {
	var b strings.Builder
	depth := 0
	for range n {
		switch random.IntN(4) {
		case 0, 1:
			fmt.Fprintf(&b, "<div class='%c %c' t='1, 2' id=%c>", 'a'+random.IntN(4), 'a'+random.IntN(4), 'w'+random.IntN(4))
			depth++
		case 2:
			fmt.Fprintf(&b, "<p class=%c>a > b</p>", 'a'+random.IntN(3))
		default:
			if depth > 0 {
				b.WriteString("</div>")
				depth--
			}
		}
	}
	return b.String()
}

func TestWithin(t *testing.T) {
	tree := New(0).Parse("<ul><li>a<ul><li>b</ul><li>c</ul><p>d<p>e", false)
	ul := tree.Find(compiled(t, "ul"), 0, 1)[0]
	for _, c := range []struct{ selector, want string }{
		{"li", "a b|b|c"}, {"> li", "a b|c"}, {":scope > li", "a b|c"}, {"ul li", "b"}, {"+ p", "d"}, {"~ p", "d|e"},
		{"> li > ul > li", "b"}, {":scope li", "a b|b|c"},
		{"li::text", "a|b|c"},
	} {
		var got []string
		s := compiled(t, c.selector)
		for _, i := range tree.Find(s, ul, 9) {
			if s.Take.Own {
				got = append(got, tree.OwnText(i))
			} else {
				got = append(got, tree.Text(i))
			}
		}
		if strings.Join(got, "|") != c.want {
			t.Errorf("%s: %q, want %q", c.selector, got, c.want)
		}
	}
}

// TestNames searches for names with characters other than plain letters.
func TestNames(t *testing.T) {
	tree := New(0).Parse("<p id=größe class='x straße'>a<p id=a:b class=a.b>b<P CLASS=Xy ID=Q>c", false)
	for selector, want := range map[string]string{"#größe": "a", ".straße": "a", `#a\:b`: "b", `.a\.b`: "b", "P.Xy": "c",
		"#Q": "c", ".xy": "", "#gr": "", ".gr": "",
		"[class~='straße']": "a", "p.x.straße": "a", "P#größe.x": "a"} {
		got := ""
		for _, i := range tree.Find(compiled(t, selector), 0, 9) {
			got += tree.Text(i)
		}
		if got != want {
			t.Errorf("%s: %q, want %q", selector, got, want)
		}
	}
}

func compiled(t testing.TB, text string) *Selector {
	t.Helper()
	s, err := Compile(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestBadSelectors(t *testing.T) {
	for _, text := range []string{"", " ", ",", "a,", ",a", "a >", "a > > b", "a[", "a:bogus", "a::before", "a::attr()",
		"div:has(a b)", "p:not(a > b)",
		strings.Repeat("a ", 40), strings.Repeat("a", 3000), "..a", "\\"} {
		if s, err := Compile(text); err == nil {
			t.Errorf("%q is taken: %+v", text, s)
		}
	}
}

// TestHostile parses pages that try to take much time or memory.
func TestHostile(t *testing.T) {
	for name, page := range map[string]string{
		"nested": strings.Repeat("<div>", 10_000) + "<h1 class=x>deep</h1>" + strings.Repeat("</div>", 10_000) +
			"<h2>after</h2>",
		"siblings":   strings.Repeat("<li>", 60_000),
		"inline":     strings.Repeat("<b><i><p>", 20_000),
		"links":      strings.Repeat("<a>", 200_000),
		"tables":     strings.Repeat("<table><tr><td>", 2_000),
		"open quote": strings.Repeat("<a b='", 50_000),
		"raw":        strings.Repeat("<title><", 50_000) + strings.Repeat("</titl", 50_000),
		"attributes": "<p " + strings.Repeat("a b c=d ", 50_000) + strings.Repeat("x", 100_000) + ">y",
		"svg":        strings.Repeat("<svg><p>", 30_000),
		"ends":       strings.Repeat("<p>", 500) + strings.Repeat("</b>", 100_000),
		"brackets":   strings.Repeat("<", 100_000),
		"comments":   strings.Repeat("<!--", 50_000),
		"broken":     "\xff\xfe<p\xff>\x00</p>",
	} {
		t.Run(name, func(t *testing.T) {
			p := New(0)
			tree := p.Parse(page, false)
			for _, s := range []string{"div div div div div p", "li:nth-child(3)", "li ~ li ~ b", "b:has(zz)", "p:contains('q')",
				"h1.x, h2"} {
				tree.Find(compiled(t, s), 0, 1000)
			}
			if tree.Nodes() > MaxNodes {
				t.Errorf("%d nodes", tree.Nodes())
			}
			if name == "nested" {
				tree = p.Parse(page, false)
				found := tree.Find(compiled(t, "h1.x, h2"), 0, 9)
				if len(found) != 2 || tree.Text(found[0]) != "deep" || tree.Text(found[1]) != "after" {
					t.Errorf("%v", found)
				}
			}
		})
	}
}

func FuzzTree(f *testing.F) {
	f.Add("<table><tr><td>a<p>b</table>", "td > p, a:not(.b)", false)
	f.Add("<a:b C='d'/><![CDATA[x]]>", "*::attr(c)", true)
	f.Fuzz(func(t *testing.T, page, selector string, xml bool) {
		tree := New(2000).Parse(page, xml)
		for i := range tree.nodes { // the descendants of an element are a contiguous range
			at := tree.at[i]
			if int(at.end) <= i || int(at.end) > len(tree.nodes) || i > 0 &&
				(int(at.parent) >= i || at.end > tree.at[at.parent].end) {
				t.Fatalf("node %d: %+v", i, at)
			}
		}
		s, err := Compile(selector)
		if err != nil {
			return
		}
		for _, i := range tree.Find(s, 0, 100) {
			_, _, _ = tree.Text(i), tree.HTML(i), tree.OwnText(i)
		}
	})
}

func BenchmarkTree(b *testing.B) {
	page := randomPage(rand.New(rand.NewPCG(1, 2)), 1500)
	b.SetBytes(int64(len(page)))
	b.ReportAllocs()
	p := New(0)
	for b.Loop() {
		p.Parse(page, false)
	}
}
