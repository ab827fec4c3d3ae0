package parse

import (
	"bytes"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"
	htmlcharset "golang.org/x/net/html/charset"

	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
)

// An oracle finds links in the tree of a complete HTML parser.
type oracle struct {
	base  weburl.URL
	based bool
	links []string
}

// oracleLinks returns the set of a page's links as "kind url".
func oracleLinks(t testing.TB, body []byte, contentType string) []string {
	t.Helper()
	r, err := htmlcharset.NewReader(bytes.NewReader(body), contentType)
	if err != nil {
		t.Fatal(err)
	}
	root, err := html.ParseWithOptions(r, html.ParseOptionEnableScripting(false))
	if err != nil {
		t.Fatal(err)
	}
	o := &oracle{}
	if o.base, err = weburl.Parse(testURL); err != nil {
		t.Fatal(err)
	}
	for n := range root.Descendants() {
		o.findBase(n)
	}
	for n := range root.Descendants() {
		o.element(n)
	}
	slices.Sort(o.links)
	return slices.Compact(o.links)
}

func (o *oracle) findBase(n *html.Node) {
	href, ok := get(n, "href")
	if n.Type != html.ElementNode || n.Namespace != "" || n.Data != "base" || !ok || o.based {
		return
	}
	o.based = true
	if base, err := o.base.Resolve(href); err == nil && base.Scheme() != "data" && base.Scheme() != "javascript" {
		o.base = base
	}
}

func get(n *html.Node, name string) (string, bool) {
	for _, a := range n.Attr {
		if a.Key == name && a.Namespace == "" || a.Namespace+":"+a.Key == name {
			return a.Val, true
		}
	}
	return "", false
}

func (o *oracle) add(kind page.Kind, ref string) {
	if out, err := o.base.AppendCanonical(nil, []byte(ref)); err == nil {
		o.links = append(o.links, kind.String()+" "+string(out))
	}
}

func (o *oracle) addAttr(n *html.Node, name string, kind page.Kind) {
	if ref, ok := get(n, name); ok && (ref != "" || kind == page.Anchor) {
		o.add(kind, ref)
	}
}

// sources are the attributes with plain URLs.
var sources = map[string][]struct {
	attr string
	kind page.Kind
}{
	"a": {{"href", page.Anchor}}, "area": {{"href", page.Anchor}},
	"img":    {{"src", page.Image}, {"lowsrc", page.Image}, {"dynsrc", page.Media}, {"longdesc", page.Cite}},
	"script": {{"src", page.Script}},
	"frame":  {{"src", page.Frame}, {"longdesc", page.Cite}}, "iframe": {{"src", page.Frame}, {"longdesc", page.Cite}},
	"source": {{"src", page.Media}}, "audio": {{"src", page.Media}}, "track": {{"src", page.Media}},
	"video": {{"src", page.Media}, {"poster", page.Image}},
	"embed": {{"src", page.Object}}, "object": {{"data", page.Object}}, "body": {{"background", page.Image}},
	"table": {{"background", page.Image}}, "tr": {{"background", page.Image}}, "td": {{"background", page.Image}},
	"th": {{"background", page.Image}}, "tbody": {{"background", page.Image}}, "thead": {{"background", page.Image}},
	"tfoot": {{"background", page.Image}}, "bgsound": {{"src", page.Media}}, "html": {{"manifest", page.Resource}},
	"blockquote": {{"cite", page.Cite}}, "q": {{"cite", page.Cite}}, "ins": {{"cite", page.Cite}},
	"del": {{"cite", page.Cite}},
}

func (o *oracle) element(n *html.Node) {
	if n.Type != html.ElementNode || n.Namespace == "math" {
		return
	}
	if n.Namespace == "svg" {
		o.svg(n)
		return
	}
	o.styles(n)
	for _, s := range sources[n.Data] {
		o.addAttr(n, s.attr, s.kind)
	}
	switch n.Data {
	case "a", "area":
		pings, _ := get(n, "ping")
		if _, ok := get(n, "href"); !ok {
			break
		}
		for _, ping := range strings.Fields(pings) {
			o.add(page.Ping, ping)
		}
	case "img", "source":
		set, _ := get(n, "srcset")
		for c := range candidates([]byte(set)) {
			o.add(page.Image, string(c.url))
		}
	case "form":
		o.form(n)
	case "input":
		if typ, _ := get(n, "type"); strings.EqualFold(typ, "image") {
			o.addAttr(n, "src", page.Image)
		}
	case "link":
		rel, _ := get(n, "rel")
		if kind, ok := relKind([]byte(rel), page.Alternate); ok {
			o.addAttr(n, "href", kind)
		}
	case "meta":
		equiv, _ := get(n, "http-equiv")
		content, _ := get(n, "content")
		if _, ref, ok := parseRefresh([]byte(content)); ok && len(ref) > 0 && strings.EqualFold(equiv, "refresh") {
			o.add(page.Refresh, string(ref))
		}
	}
}

// form adds a form that is submitted by GET without fields.
func (o *oracle) form(n *html.Node) {
	method, _ := get(n, "method")
	action, _ := get(n, "action")
	fields := false
	for d := range n.Descendants() {
		_, named := get(d, "name")
		typ, _ := get(d, "type")
		switch d.Data {
		case "button":
			fields = fields || named
		case "input":
			fields = fields || named || !slices.Contains([]string{"submit", "button", "reset"}, strings.ToLower(typ))
		case "select", "textarea":
			fields = true
		}
	}
	action, _, _ = strings.Cut(strings.TrimSpace(action), "#")
	if action, _, _ = strings.Cut(action, "?"); action != "" && !fields && !slices.Contains([]string{"post", "dialog"},
		strings.ToLower(method)) {
		o.add(page.Form, action)
	}
}

// styles adds the references in the style attribute and in a style element's text.
func (o *oracle) styles(n *html.Node) {
	css, _ := get(n, "style")
	if n.Data == "style" && n.Namespace == "" && n.FirstChild != nil {
		css += "\n}" + n.FirstChild.Data
	}
	for ref, kind := range cssReferences([]byte(css)) {
		if ref := string(unescapeCSS(ref)); ref != "" && ref[0] != '#' {
			o.add(kind, ref)
		}
	}
}

func (o *oracle) svg(n *html.Node) {
	o.styles(n)
	kind, ok := map[string]page.Kind{"a": page.Anchor, "image": page.Image, "use": page.Image, "feImage": page.Image,
		"script": page.Script}[n.Data]
	if !ok {
		return
	}
	href := "href"
	if _, ok := get(n, href); !ok {
		href = "xlink:href"
	}
	if ref, _ := get(n, href); kind == page.Image && strings.HasPrefix(strings.TrimSpace(ref), "#") {
		return
	}
	o.addAttr(n, href, kind)
}

// differences returns the links that only one of the two readers finds.
func differences(t testing.TB, body []byte, contentType string) string {
	t.Helper()
	var pg page.Page
	resp := &page.Response{URL: testURL, Status: 200, Body: body, Header: http.Header{"Content-Type": {contentType}}}
	if err := New(Config{MaxLinks: 1 << 20}).Parse(resp, &pg); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range pg.Links {
		got = append(got, l.Kind.String()+" "+l.URL)
	}
	slices.Sort(got)
	return cmp.Diff(oracleLinks(t, body, contentType), got)
}

// Pages composed at random from pieces of markup, complete and broken. pieces are the parts of odd pages; each {} is a
// reference.
var pieces = []string{
	`<a href="{}">`, `<A HREF='{}'>x</A>`, `<a href={}>`, `<a href = {} >`, `<a/href="{}"/>`, `<a href={} href=no>`,
	`<area href="{}">`,
	`<a title=">" href="{}">`, `<a title='"' href="{}">`, `<a x=y"z href={}>`, `<a "x" href={}>`, `<a = href={}>`,
	`<a href="{}"x>`,
	`<a href="?a=1&amp;b={}&copy=2&copy;3&not">`, `<a href="&#x2F;{}&#47;&#x80;">`, "<a href='\n {}\t '>",
	`<a href="{}` + "\xC3\xA9" + `">`,
	`<img src={} alt=">">`, `<img srcset="{} 1x, {} 2x">`, `<image src={}>`, `<script src={}></script>`,
	`<link rel=next href={}>`,
	`<link rel=stylesheet href={}>`, `<iframe src={}></iframe>`, `<video src={} poster={}></video>`,
	`<object data={}></object>`,
	`<input type=image src={}>`, `<meta http-equiv=refresh content="1;url={}">`, `<embed src={}>`,
	`<base href="/base/{}/">`,
	`<!-- <a href={}> -->`, `<!--><a href={}>-->`, `<!---><a href={}>-->`, `<!-- --!><a href={}>`, `<!----!><a href={}>`,
	`<!x <a href={}>>`,
	`<?x <a href={}>`, `</ <a href={}>>`, `</><a href={}>`, `<![CDATA[<a href={}>]]>`, `<!DOCTYPE html>`, `< a href={}>`,
	`<>`, `&lt;a href={}>`,
	`<script>"<a href={}>"</script>`, `<script><!-- <a href={}> <script> </script> <a href={}> --></script>`,
	`<script><!-- </script>`,
	`<script><!--></script>`, `<style><a href={}></style>`, `<title><a href={}></title>`,
	`<textarea><a href={}></textarea>`,
	`<xmp><a href={}></xmp >`, `<noembed><a href={}></noembed>`, `<iframe><a href={}></iframe/>`,
	`<style></styl><a href={}></STYLE x=">">`,
	`<template><a href={}></template>`, `<noscript><a href={}></noscript>`,
	`<noscript><style><a href={}></noscript></style>`, `<svg><a xlink:href={}></a></svg>`,
	`<svg><a href={} /><image href={} /></svg>`,
	`<svg><title><a href={}></a></title></svg>`, `<svg><style><a href={}></a></style></svg>`,
	`<svg><![CDATA[<a href={}>]]></svg>`,
	`<svg><foreignObject><p><a href={}></a></p></foreignObject><a href={} /></svg>`, `<svg><script href={} /></svg>`,
	`<svg/>`,
	`<p style="x:url({})">`, `<a href={} style='x:url("{}")'>`, `<style>@import "{}"; a{x:url({})}</style>`,
	`<blockquote cite={}>`,
	`<table background={}>`, `<table><tr><td background={}></table>`,
	`<svg><use href={}#x /><use xlink:href="#{}"/></svg>`, `<a href={} ping="{} {}">`,
	`</p style="x:url({})">`, `<ins cite={}>`, `<img src={} longdesc={} lowsrc={}>`, `<svg><g style="x:url({})"></svg>`,
	`<math><mi><a href={}></a></mi><mo>x</mo></math>`, `<svg><path><p>`, `<math><mn>1</mn></math>`,
	`<svg><g><img src={}>`,
	`<p>`, `</p>`, `<div>`, `</div>`, `<b>`, `</b>`, `</a>`, `<table><tr><td>`, `</table>`, `<ul><li>`, `</ul>`, ` text `,
	"\n", "\x00", `=`, `"`,
}

// oddMarkup returns random markup for a seed.
func oddMarkup(seed uint64) string {
	random := rand.New(rand.NewPCG(seed, 1))
	var body strings.Builder
	for n := range 1 + random.IntN(25) {
		piece := pieces[random.IntN(len(pieces))]
		body.WriteString(strings.ReplaceAll(piece, "{}", string(rune('a'+n))))
	}
	text := body.String()
	if random.IntN(4) == 0 {
		text = text[:1+random.IntN(len(text))]
	}
	return text
}

func TestOracle(t *testing.T) {
	for seed := range uint64(2000) {
		text := oddMarkup(seed)
		if diff := differences(t, []byte(text), "text/html; charset=utf-8"); diff != "" {
			t.Fatalf("seed %d: %s\n%s", seed, text, diff)
		}
	}
}

// Real pages: all files in the directory KUMO_TEST_HTML.
func TestOracleFiles(t *testing.T) {
	dir := os.Getenv("KUMO_TEST_HTML")
	if dir == "" {
		t.Skip("KUMO_TEST_HTML does not name a folder of pages")
	}
	pages, wrong := 0, 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".html") {
			return err
		}
		body, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		pages++
		if diff := differences(t, body, "text/html"); diff != "" {
			wrong++
			t.Errorf("%s\n%s", path, diff)
		}
		return nil
	})
	t.Logf("%d pages, %d with other links", pages, wrong)
	if err != nil {
		t.Fatal(err)
	}
}
