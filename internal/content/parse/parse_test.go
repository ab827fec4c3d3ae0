package parse

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
)

const testURL = "http://h.test/d/p.html"

// parse parses a page of type text/html at testURL.
func parse(t *testing.T, body string) *page.Page {
	t.Helper()
	return parseResponse(t, &page.Response{
		URL: testURL, Status: 200, Body: []byte(body),
		Header: http.Header{"Content-Type": {"text/html"}},
	})
}

func parseResponse(t *testing.T, resp *page.Response) *page.Page {
	t.Helper()
	var pg page.Page
	if err := New(Config{}).Parse(resp, &pg); err != nil {
		t.Fatal(err)
	}
	return &pg
}

// links returns a page's links as "kind url", those of its own host by their path only.
func links(pg *page.Page) string {
	var out []string
	for _, l := range pg.Links {
		out = append(out, l.Kind.String()+" "+strings.TrimPrefix(l.URL, "http://h.test"))
	}
	return strings.Join(out, ", ")
}

func TestElements(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"anchors", `<a href=x>1</a><area href="/y"><a name=z>no</a>`, "a /d/x, a /y"},
		{"an empty anchor is the page", `<a href>1</a>`, "a /d/p.html"},
		{"empty embeds are none", `<img src=""><script src></script><link rel=icon href=""><iframe src=""></iframe>`, ""},
		{"link types", `<link rel=stylesheet href=1><link rel="alternate STYLEsheet" href=2><link rel="shortcut icon" href=3>` +
			`<link rel=next href=4><link rel=preconnect href=5><link rel="dns-prefetch preconnect" href=6><link href=7>` +
			`<link rel=apple-touch-icon-precomposed href=8><link rel=canonical href=9>`,
			"style /d/1, style /d/2, resource /d/3, link /d/4, resource /d/8, canonical /d/9"},
		{"frames", `<frame src=1><iframe src=2><a href=no></iframe>`, "frame /d/1, frame /d/2"},
		{"images", `<img src=1 srcset="2 1x, 3 2x"><image src=4><input type=IMAGE src=5><input src=6><body background=7>`,
			"img /d/1, img /d/2, img /d/3, img /d/4, img /d/5, img /d/7"},
		{"media", `<video src=1 poster=2><source src=3><track src=4></video><audio src=5></audio><picture><source srcset=6></picture>`,
			"media /d/1, img /d/2, media /d/3, media /d/4, media /d/5, img /d/6"},
		{"old images and sounds", `<img src=1 lowsrc=2 dynsrc=3 longdesc=4><bgsound src=5><table background=6><tr background=7><td background=8>`,
			"img /d/1, img /d/2, media /d/3, cite /d/4, media /d/5, img /d/6, img /d/7, img /d/8"},
		{"citations", `<blockquote cite=1><q cite=2><ins cite=3><del cite=4><p cite=no><iframe longdesc=5></iframe>`,
			"cite /d/1, cite /d/2, cite /d/3, cite /d/4, cite /d/5"},
		{"pings", "<a href=1 ping=' 2\t3\n4 '><area href=5 ping=6><a ping=no>",
			"a /d/1, ping /d/2, ping /d/3, ping /d/4, a /d/5, ping /d/6"},
		{"manifests", `<html manifest=1><link rel=manifest href=2>`, "resource /d/1, resource /d/2"},
		{"a preloaded image", `<link rel=preload as=image href=1 imagesrcset="2 1x, 3 2x"><link rel=preload imagesrcset=4>`,
			"resource /d/1, img /d/2, img /d/3, img /d/4"},
		{"forms", `<form action=/1></form><form action="/2?a=b#c" method=GET><button>x</button><input type=submit></form>` +
			`<form method=post action=/no></form><form method=dialog action=/no></form><form action=/no><input name=q></form>` +
			`<form action=/no><select></select></form><form action=/no><textarea></textarea></form><form action=/no><button name=x></form>` +
			`<form action=/no><input type=hidden name=a value=b></form><form><p></form><form action=/3><form action=/no></form><input></form>` +
			`<input><form action=4>`, "form /1, form /2, form /3, form /d/4"},
		{"forms in attributes", `<iframe srcdoc="<form action=1></form><form action=2></form>"></iframe>`,
			"form /d/1, form /d/2"},
		{"pages in attributes", `<iframe srcdoc="<a href=1><base href=/x/><a href='2?a&amp;amp;b'><title>no</title>` +
			`<iframe srcdoc='<a href=3><a href=&amp;quot;4&amp;quot;>'></iframe>"></iframe><a href=5>`,
			"a /x/1, a /x/2?a&b, a /x/3, a /x/4, a /d/5"},
		{"styles", `<p style="background: url(1)"><b style='color: red'><div STYLE="x:url( &quot;2&quot; )"><a href=3 style="x:url('4')">` +
			`<style>@import "5"; @import url(6); a{b:url(7)} /* url(no) */</style><svg><style>p{x:url(8)}</style><style> <![CDATA[p{x:url(9)}]]></style><path style="fill:url(#no)"/></svg>`,
			"css /d/1, css /d/2, a /d/3, css /d/4, style /d/5, style /d/6, css /d/7, css /d/8, css /d/9"},
		{"properties", `<meta property=og:url content=1><meta property="og:image" content=2><meta name=twitter:image content=3>` +
			`<meta property=og:image:width content=600><meta property=og:title content=no><meta property=article:author content=Nobody>` +
			`<meta property=article:author content=http://h.test/4><meta property=og:video:secure_url content=5>`,
			"meta /d/1, img /d/2, img /d/3, meta /4, media /d/5"},
		{"objects", `<embed src=1><object data=2></object>`, "object /d/1, object /d/2"},
		{"scripts", `<script src=1><a href=no></script><script>"<a href=no>"</script>`, "script /d/1"},
		{"svg", `<svg><a xlink:href=1 /><a href=2 xlink:href=3></a><image href=4 /><script href=5 /><a href=6></a></svg><a href=7>`,
			"a /d/1, a /d/2, img /d/4, script /d/5, a /d/6, a /d/7"},
		{"more of svg", `<svg><use href=1#a /><use xlink:href="#no"/><image xlink:href=2 /><feImage href=3 /><use href=4 xlink:href=no /></svg><use href=no>`,
			"img /d/1, img /d/2, img /d/3, img /d/4"},
		{"what scripts load", `<img src=1 data-src=2.png data-srcset="3.png 1x, 4.png 2x"><div data-bg="/5.png" data-original='/no {}'></div>` +
			`<iframe data-src=/6></iframe><p data-lazy-src=7.png data-full-src=8.png data-src=no><img data-lazy-srcset="9.png 1x">`,
			"img /d/1, img /d/2.png, img /d/3.png, img /d/4.png, img /5.png, frame /6, img /d/8.png, img /d/7.png, img /d/9.png"},
		{"a background that scripts load", `<div data-bg="url(1.png)"></div><p data-bg="url(&quot;/2.png&quot;)">`, "css /d/1.png, css /2.png"},
		{"modules", `<script type=importmap>{"imports":{"./no":"./1.js","a\/":"/no/"},"scopes":{"/no":{"b":"\/2.js"}},"integrity":{"/no":"no"}}</script>` +
			"<script type=module>import a,{b as c} from './3.js';import'/4.js';\nexport*from \"http://o.test/5.js\";export{x}\nfrom './6.js'\n" +
			"// import './no'\nf('./no'); import(`./no`); import('./no'); let s='from'+'./no', from='./no'; import 'bare'</script><script>import './no'</script>",
			"script /d/1.js, script /2.js, script /d/3.js, script /4.js, script http://o.test/5.js, script /d/6.js"},
		{"frameset", `<frameset><frame src=1><noframes><base href=/no/><a href=2><h1>no</h1></noframes></frameset><a href=3>`,
			"frame /d/1, a /d/2, a /d/3"},
		{"a base in a template", `<template><template></template><base href=/no/></template><a href=1><base href=/b/>`, "a /b/1"},
		{"escapes in names of style sheets", `<style>a{b:\75 rl(1);c:\75rl("2")}</style>`, "css /d/1, css /d/2"},
		{"meta refresh", `<meta http-equiv=Refresh content="5; URL='n'"><meta http-equiv=refresh content=5>`, "refresh /d/n"},
		{"noscript and template are markup", `<noscript><a href=1></noscript><template><a href=2></template>`,
			"a /d/1, a /d/2"},
		{"other schemes are no links", `<a href=javascript:x><a href=mailto:a@b><a href=" DATA:,x"><a href="java&#10;script:x"><a href=ftp://h/>`, ""},
		{"once per URL and kind", `<a href=x><a href=./x#f><img src=x><a href=x>`, "a /d/x, img /d/x"},
		{"canonical form", `<a href="HTTP://H.test:80/a/../b?#f">`, "a /b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			pg := parse(t, c.body)
			if got := links(pg); got != c.want || pg.Dropped != 0 {
				t.Errorf("%s\n got %s (%d dropped)\nwant %s", c.body, got, pg.Dropped, c.want)
			}
		})
	}
}

// The links of each page that count are named 1, 2, ... in order; the surrounding markup hides the others.
func TestTokens(t *testing.T) {
	for _, body := range []string{
		`<!-- <a href=no> --><a href=1><!--><a href=2><!---><a href=3>--><!-- --!><a href=4><!-- <a href=no>`,
		`<!----!><a href=1><!---!><a href=no>--><!--!><a href=no>--><a href=2>`,
		`<! <a href=no><a href=1><? <a href=no><a href=2></ <a href=no><a href=3></><a href=4><!DOCTYPE "><a href=5>`,
		`<![CDATA[<a href=no>]]><a href=1><svg><![CDATA[<a href=no>]]><a href=2></svg><![CDATA[ > <a href=3>]]>`,
		`<A HREF=1><a HrEf='2'><a href = "3" ><a/href='4'/><a href=5>`,
		`<a x='href=no>' href=1><a x=">"href=2><a "href=no" href=3><a =href=no href=4><a href=5 href=no>`,
		`<a href=1><a href=no`,
		`<a href=1><a href="no>`,
		"<a\thref=1><a\nhref=2><a\fhref=3><a\rhref=4><ab href=no><a< href=no>< a href=no>",
		`<title><a href=no></title ><a href=1><textarea></textare><a href=no></TEXTAREA/x="<a href=no>"><a href=2>`,
		`<style></style ><xmp><a href=no></xmp><noembed><a href=no></noembed><a href=1>`,
		`<a href=1><plaintext></plaintext><a href=no>`,
		`<script><!-- <script> </script> <a href=no> --></script><a href=1>`,
		`<script><!-- </script><a href=1><script><!--><script></script><a href=2><script><!-- <scripts> </script><a href=3>`,
		`<script>a<!-- <script> --> </script><a href=1><script></script/><a href=2><script></scripty><a href=no></script>`,
		`<svg><style><a href=1></style></svg><svg><title><style><a href=no></style></title></svg><a href=2>`,
		`<svg><path><p><style><a href=no></style><a href=1>`,
		`<svg><path/></p><style><a href=no></style><a href=1>`,
		`<math><mi><textarea><a href=no></textarea></mi><a href=no></math><a href=1>`,
		`<math><annotation-xml encoding="TEXT/html"><a href=1></annotation-xml><annotation-xml><a href=no></math><a href=2>`,
		`<svg><font><script/><a href=1></font><font color=red><script/><a href=no></script><a href=2>`,
	} {
		var want []string
		for i := range strings.Count(strings.ToLower(body), "href") - strings.Count(body, "href=no") - strings.Count(body,
			`href="no`) {
			want = append(want, fmt.Sprintf("a /d/%d", i+1))
		}
		if got := links(parse(t, body)); got != strings.Join(want, ", ") {
			t.Errorf("%s\n got %s", body, got)
		}
	}
}

func TestCharacterReferences(t *testing.T) {
	for in, want := range map[string]string{
		"a&amp;b":                          "a&b",
		"?a&copy=1&copy":                   "?a&copy=1©",
		"&copyx&notit;&notin;&not;":        "&copyx&notit;∉¬",
		"&semi;&bogus;&;&":                 ";&bogus;&;&",
		"&#65;&#x42&#X43;&#x;&#;&#":        "ABC&#x;&#;&#",
		"&#0;&#x80;&#xD800;&#99999999999;": "\uFFFD€\uFFFD\uFFFD",
		"&NotEqualTilde;":                  "≂̸",
		"&amp":                             "&",
		"&ampx;&amp=&amp.":                 "&ampx;&amp=&.",
		"&AMP;&lt;&quot;":                  `&<"`,
	} {
		if got := string(appendUnescaped(nil, []byte(in), strings.IndexByte(in, '&'))); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

func TestTitle(t *testing.T) {
	long := strings.Repeat("é", 600)
	for _, c := range []struct{ body, want string }{
		{"<title> \n a  b\t</title><title>c</title>", "a b"},
		{"<svg><title>no</title></svg><title>yes</title>", "yes"},
		{"<title>1 &lt 2 &notit; &amp;amp; <b></title>", "1 < 2 ¬it; &amp; <b>"},
		{"<title>cut off", "cut off"},
		{"<title></title><title>later</title>", ""},
		{"<title>" + long + "</title>", long[:1024]},
		{"<title>x" + long + "</title>", "x" + long[:1022]},
		{"<title>a\x00b</title>", "a\uFFFDb"},
	} {
		if got := parse(t, c.body).Title; got != c.want {
			t.Errorf("%s\n got %q\nwant %q", c.body, got, c.want)
		}
	}
}

func TestBase(t *testing.T) {
	for _, c := range []struct{ body, base, want string }{
		{`<a href=1><base href=/x/><base href=/y/><a href=2>`, "http://h.test/x/", "a /x/1, a /x/2"},
		{`<base target=t><base href=b/><a href=1>`, "http://h.test/d/b/", "a /d/b/1"},
		{`<base href=javascript:1><base href=/y/><a href=1>`, testURL, "a /d/1"},
		{`<base href="http://["><a href=1>`, testURL, "a /d/1"},
		{`<svg><base href=/x/></svg><a href=1>`, testURL, "a /d/1"},
		{`<a href="http://["><base href="/x/"><a href=1>`, "http://h.test/x/", "a /x/1"},
	} {
		pg := parse(t, c.body)
		if links(pg) != c.want || pg.Base != c.base {
			t.Errorf("%s: got %s against %s", c.body, links(pg), pg.Base)
		}
	}
}

func TestHeaders(t *testing.T) {
	for _, c := range []struct {
		status int
		header http.Header
		want   string
	}{
		{302, http.Header{"Location": {"../x#f"}}, "redirect /x"},
		{301, http.Header{"Location": {"/caf\xc3\xa9"}}, "redirect /caf%C3%A9"},
		{200, http.Header{"Location": {"/x"}}, ""},
		{200, http.Header{"Refresh": {"0;url=/x"}}, "refresh /x"},
		{200, http.Header{"Link": {`<1>; rel="next"; title="a, <no>; b", <2>;rel=canonical,<3>; REL=prev; rel=stylesheet`}},
			"header /d/1, canonical /d/2, header /d/3"},
		{200, http.Header{"Link": {`<1>; rel=canonical; anchor="#a"`, `<2>; rel=preconnect`, `<3>; rel=preload; as=font`,
			`<4`, `5`}},
			"header /d/1, resource /d/3"},
		{200, http.Header{"Link": {`<1>; title="a\"b;rel=x"; rel="p\q"  , <2>; rel`, `, <3> ;rel = x`}},
			"header /d/1, header /d/3"},
	} {
		pg := parseResponse(t, &page.Response{URL: testURL, Status: c.status, Header: c.header, Body: []byte{1, 2, 3}})
		if links(pg) != c.want {
			t.Errorf("%v: got %s, want %s", c.header, links(pg), c.want)
		}
	}
}

func TestTypes(t *testing.T) {
	const body = `<!DOCTYPE html><title>t</title><a href=1><script/><a href=2><![CDATA[<a href=no>]]></script>`
	for _, c := range []struct{ contentType, mediaType, charset, want string }{
		{"text/html; charset=ISO-8859-1", "text/html", "windows-1252", "a /d/1"},
		{"Text/HTML;charset=bogus", "text/html", "utf-8", "a /d/1"},
		{"application/xhtml+xml", "application/xhtml+xml", "utf-8", "a /d/1, a /d/2"},
		{"", "", "utf-8", "a /d/1"},
		{"nonsense", "", "utf-8", "a /d/1"},
		{"text/plain", "text/plain", "", ""},
		{"image/png", "image/png", "", ""},
	} {
		pg := parseResponse(t, &page.Response{URL: testURL, Status: 200, Body: []byte(body),
			Header: http.Header{"Content-Type": {c.contentType}}})
		if pg.Type != c.mediaType || pg.Charset != c.charset || links(pg) != c.want {
			t.Errorf("%s: got %s, %s, %s", c.contentType, pg.Type, pg.Charset, links(pg))
		}
	}
}

// In XHTML, the namespace identifies a name, whatever its prefix.
func TestPrefixes(t *testing.T) {
	for body, want := range map[string]string{
		`<h:html xmlns:h="http://www.w3.org/1999/xhtml"><h:title>t</h:title><h:a href="1"/><h:img src='2'/></h:html>`: "a /d/1, img /d/2",
		`<a href="1"/><x:a xmlns:x="http://example.com/" href="no"/><a href="2"/>`:                                    "a /d/1, a /d/2",
		`<s:svg xmlns:s = "http://www.w3.org/2000/svg" xmlns:l="http://www.w3.org/1999/xlink"><s:a l:href="1"/>` +
			`<s:image l:href="2"/></s:svg><a l:href="no" href="3"/>`: "a /d/1, img /d/2, a /d/3",
		`<xmlns:><a xmlns: href="1"/><a xmlns:=no href="2"/>`:                                  "a /d/1, a /d/2",
		`<a xmlns:h="http://www.w3.org/1999/xhtml" href="1"/><h:><h:/></h:><h:a href="2"/><h:`: "a /d/1, a /d/2",
	} {
		pg := parseResponse(t, &page.Response{URL: testURL, Status: 200, Body: []byte("<?xml version='1.0'?>" + body),
			Header: http.Header{"Content-Type": {"application/xhtml+xml"}}})
		if links(pg) != want {
			t.Errorf("%s\n got %s", body, links(pg))
		}
	}
}

// Parse overwrites all fields of a reused page.
func TestReuse(t *testing.T) {
	p := New(Config{})
	var pg page.Page
	first := &page.Response{URL: testURL, Status: 200, Header: http.Header{"Content-Type": {"text/html; charset=koi8-r"}},
		Body: []byte(`<base href=/b/><title>t</title><link rel=canonical href=c><a href=1 rel="nofollow ugc"><a href="http://[">`)}
	second := &page.Response{URL: "http://other.test/", Status: 404, Header: http.Header{"Content-Type": {"image/png"}}}
	for range 2 {
		if err := p.Parse(first, &pg); err != nil {
			t.Fatal(err)
		}
		want := page.Page{Type: "text/html", Charset: "koi8-r", Title: "t", Base: "http://h.test/b/",
			Canonical: "http://h.test/b/c",
			Links: []page.Link{
				{URL: "http://h.test/b/c", Kind: page.Canonical, Rel: "canonical"},
				{URL: "http://h.test/b/1", Kind: page.Anchor, Rel: "nofollow ugc", NoFollow: true, UGC: true},
			}, Dropped: 1, Sniffed: "text/html", CharsetSource: "header"}
		if diff := cmp.Diff(want, pg); diff != "" {
			t.Error(diff)
		}
		if err := p.Parse(second, &pg); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(page.Page{Type: "image/png", Base: "http://other.test/", Links: []page.Link{},
			Sniffed: "image/png"}, pg); diff != "" {
			t.Error(diff)
		}
	}
}

func TestBadURL(t *testing.T) {
	err := New(Config{}).Parse(&page.Response{URL: "/relative"}, new(page.Page))
	if !errors.Is(err, weburl.ErrRelative) {
		t.Errorf("got %v", err)
	}
}

func TestNoAllocationPerLink(t *testing.T) {
	measure := func(links int) float64 {
		var body strings.Builder
		for i := range links {
			fmt.Fprintf(&body, `<a rel=nofollow href="/x?a=%d&amp;b=&#38;"><img srcset="i%d 1x, j%d 2x"><link rel="Next Up" href="l%d">`, i, i, i, i)
		}
		resp := &page.Response{URL: testURL, Body: []byte(body.String()), Header: http.Header{"Content-Type": {"text/html"}}}
		p, pg := New(Config{}), new(page.Page)
		return testing.AllocsPerRun(10, func() {
			if err := p.Parse(resp, pg); err != nil {
				t.Fatal(err)
			}
		})
	}
	if few, many := measure(10), measure(1000); many > few {
		t.Errorf("10 links take %v allocations, 1000 take %v", few, many)
	}
}

// Names are compared eight bytes at a time; similar texts must not match.
func TestNames(t *testing.T) {
	for body, want := range map[string]string{
		"<A HREF=1>":                             "a /d/1",
		"<a href=1":                              "",
		"<a href=1 >":                            "a /d/1",
		"<a\x00 href=1>":                         "",
		"<a \x00href=1>":                         "",
		"<a href\x00=1>":                         "",
		"<\x00a href=1>":                         "",
		"<A href@=1 hre=2 ref=3>":                "",
		"<ahref=1>":                              "",
		"<link rel=next HREF='1'>":               "link /d/1",
		"<svg><h\x11><link rel=next href=1>":     "",
		"<svg><h1><link rel=next href=1>":        "link /d/1",
		"<BLOCKQUOTE CITE=1>":                    "cite /d/1",
		"<blockquotes cite=1><blockquot cite=2>": "",
		"<q cite=1><q\xe3 cite=2>":               "cite /d/1",
		"<video poster=1 posterx=2>":             "img /d/1",
	} {
		if got := links(parse(t, body)); got != want {
			t.Errorf("%q: got %q, want %q", body, got, want)
		}
	}
}

// svg inside MathML and math inside SVG are elements of the enclosing namespace.
func TestNamespaces(t *testing.T) {
	for body, want := range map[string]string{
		"<math><svg><a href=1></svg><image href=2></math><image src=3>":                           "img /d/3",
		"<math><annotation-xml><svg><image href=1></svg></annotation-xml></math>":                 "img /d/1",
		"<math><annotation-xml encoding=text/html><a href=1><svg><image href=2></svg></math>":     "a /d/1, img /d/2",
		"<svg><math><image href=1></math><image href=2></svg>":                                    "img /d/1, img /d/2",
		"<svg><foreignObject><math><svg></svg><iframe src=1></iframe></math><iframe src=2></svg>": "frame /d/2",
	} {
		if got := links(parse(t, body)); got != want {
			t.Errorf("%s: got %q, want %q", body, got, want)
		}
	}
}
