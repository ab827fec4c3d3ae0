package parse

import (
	"bytes"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"

	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
)

// local returns a relative reference for a URL on h.test, and keeps others absolute.
func local(to weburl.URL, kind page.Kind) (string, bool) {
	switch {
	case kind == page.Form || kind == page.Canonical || to.Hostname() != "h.test":
		return to.String(), true
	case to.Query() != "":
		return "L" + strings.TrimPrefix(to.Path(), "/") + "@" + strings.NewReplacer("=", "%3D", "&",
			"%26").Replace(to.Query()), true
	}
	return "L" + strings.TrimPrefix(to.String(), to.Origin()+"/"), true
}

func rewriteWith(t *testing.T, body, contentType, essence string, refer Refer) string {
	t.Helper()
	resp := &page.Response{URL: "http://h.test/d/p", Status: 200, Header: http.Header{"Content-Type": {contentType}},
		Body: []byte(body)}
	out, err := New(Config{}).Rewrite([]byte("before"), resp, essence, refer)
	if err != nil {
		t.Fatalf("%q: %v", body, err)
	}
	return strings.TrimPrefix(string(out), "before")
}

func TestRewriteHTML(t *testing.T) {
	for in, want := range map[string]string{
		`<a href=x>y</a>`:                `<a href=Ld/x>y</a>`,
		`<A  HREF = '/x#f' Title="a>b">`: `<A  HREF = 'Lx#f' Title="a>b">`,
		`<a href="x?a=1&amp;b=2">`:       `<a href="Ld/x@a%3D1%26b%3D2">`,
		`<a href="#here">`:               `<a href="#here">`,
		`<a href>`:                       `<a href>`,
		`<a href="mailto:a@b"> <a href="javascript:f('x')">`:     `<a href="mailto:a@b"> <a href="javascript:f('x')">`,
		`<a href="//o.test/it's?a=1&b">`:                         `<a href="http://o.test/it&#39;s?a=1&amp;b">`,
		`<a href=//o.test/?a=1>`:                                 `<a href="http://o.test/?a=1">`,
		`<a href="http://o.test/">`:                              `<a href="http://o.test/">`,
		`<img src=a.png srcset=" b.png 1x, /c.png,x,y 2x,d 3x">`: `<img src=Ld/a.png srcset=" Ld/b.png 1x, Lc.png%2Cx%2Cy 2x,Ld/d 3x">`,
		`<img srcset="data:image/png;base64,x 1x, b 2x">`:        `<img srcset="data:image/png;base64,x 1x, Ld/b 2x">`,
		`<img src="data:," data-src=/a.png data-srcset="b.png 1x"><div data-bg='c.png' data-original="no">`: `<img src="data:," data-src=La.png data-srcset="Ld/b.png 1x"><div data-bg='Ld/c.png' data-original="no">`,
		`<div data-bg="url('c.png')">`: `<div data-bg="url('Ld/c.png')">`,
		`<script type=importmap>{"imports":{"a":"./b.js","c":"\/d.js","e/":"/f/"}}</script>`:        `<script type=importmap>{"imports":{"a":"./Ld/b.js","c":"./Ld.js","e/":"/f/"}}</script>`,
		`<script type=module>import "./b.js?a=1"; f("./c.js")</script>`:                             `<script type=module>import "./Ld/b.js@a%3D1"; f("./c.js")</script>`,
		`<p style="a:url( 'x' );b:url(y)">`:                                                         `<p style="a:url( 'Ld/x' );b:url(Ld/y)">`,
		`<p style="a:url(&quot;x&quot;)">`:                                                          `<p style="a:url(&#34;Ld/x&#34;)">`,
		`<style>@import "a"; b{c:url(d\29 e)}</style>`:                                              `<style>@import "Ld/a"; b{c:url(Ld/d%29e)}</style>`,
		`<meta http-equiv=Refresh content="3; URL='x'">`:                                            `<meta http-equiv=Refresh content="3; URL='Ld/x'">`,
		`<meta http-equiv=refresh content=5>`:                                                       `<meta http-equiv=refresh content=5>`,
		`<form action="x"><input formaction=y><button formaction='//o.test/'>`:                      `<form action="http://h.test/d/x"><input formaction=http://h.test/d/y><button formaction='http://o.test/'>`,
		`<base href="/e/"><a href=x><a href="#f"><link rel=stylesheet href=s>`:                      `<base href=""><a href=Le/x><a href="Le/#f"><link rel=stylesheet href=Le/s>`,
		`<a href=x><base target=t href=/e/>`:                                                        `<a href=Le/x><base target=t href="">`,
		`<svg><a xlink:href="x"/><image href="y"/><use href="#z"/><style>p{a:url(b)}</style></svg>`: `<svg><a xlink:href="Ld/x"/><image href="Ld/y"/><use href="#z"/><style>p{a:url(Ld/b)}</style></svg>`,
		`<svg><style><![CDATA[p{a:url(b)}]]></style></svg>`:                                         `<svg><style><![CDATA[p{a:url(Ld/b)}]]></style></svg>`,
		`<script src="x" integrity="sha256-x" crossorigin async></script>`:                          `<script src="Ld/x"   async></script>`,
		`<script src="//o.test/x" integrity="sha256-x" crossorigin></script>`:                       `<script src="http://o.test/x" integrity="sha256-x" crossorigin></script>`,
		`<link rel=preconnect href=//o.test><link rel="canonical" href="x"><link rel=icon href=i>`:  `<link rel=preconnect href=""><link rel="canonical" href="http://h.test/d/x"><link rel=icon href=Ld/i>`,
		`<a href=x ping="/p">`: `<a href=Ld/x ping="">`,
		`<meta http-equiv="Content-Security-Policy" content="default-src 'self'">`:                                     `<meta http-equiv="Content-Security-Policy" content="">`,
		`<iframe srcdoc="<base href=/e/><img src=&quot;x&quot;>">`:                                                     `<iframe srcdoc="&lt;base href=&#34;&#34;&gt;&lt;img src=&#34;Le/x&#34;&gt;">`,
		`<!-- <a href=x> --><script>"<a href=x>"</script><textarea><a href=x></textarea>`:                              `<!-- <a href=x> --><script>"<a href=x>"</script><textarea><a href=x></textarea>`,
		"<a\nhref=x\tclass='b'\x00\xff></a\n>":                                                                         "<a\nhref=Ld/x\tclass='b'\x00\xff></a\n>",
		`<video src=v poster=p><source src=s srcset="q 1x"><track src=t></video><object data=o></object><embed src=e>`: `<video src=Ld/v poster=Ld/p><source src=Ld/s srcset="Ld/q 1x"><track src=Ld/t></video><object data=Ld/o></object><embed src=Ld/e>`,
		`<body background=b><table background='t'><td background="d">`:                                                 `<body background=Ld/b><table background='Ld/t'><td background="Ld/d">`,
		`<a href=x`: `<a href=x`,
	} {
		if got := rewriteWith(t, in, "text/html", "text/html", local); got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
		if got := rewriteWith(t, in, "text/html", "text/html", func(weburl.URL, page.Kind) (string, bool) {
			return "", false
		}); !strings.Contains(in, "base") &&
			!strings.Contains(in, "ping") && !strings.Contains(in, "preconnect") && !strings.Contains(in, "Policy") &&
			got != in {
			t.Errorf("without a word:\n got %s\nwant %s", got, in)
		}
	}
}

func TestRewriteStyles(t *testing.T) {
	for in, want := range map[string]string{
		`@import url("a.css") screen; /* url(no) */ b{c:url(d)}`:             `@import url("Ld/a.css") screen; /* url(no) */ b{c:url(Ld/d)}`,
		`@font-face{src:url(a.woff2) format("woff2"), url('//o.test/b(c)')}`: `@font-face{src:url(Ld/a.woff2) format("woff2"), url('http://o.test/b%28c%29')}`,
		`a{b:url(#x);c:url(data:x,y)}`:                                       `a{b:url(#x);c:url(data:x,y)}`,
	} {
		if got := rewriteWith(t, in, "text/css", "text/css", local); got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
	}
}

func TestRewriteModule(t *testing.T) {
	in := `import {a} from "../b.js?x=1"; export * from 'http://o.test/c.js'; import d from "bare"; let e = "./f.js"`
	want := `import {a} from "./Lb.js@x%3D1"; export * from 'http://o.test/c.js'; import d from "bare"; let e = "./f.js"`
	if got := rewriteWith(t, in, "text/javascript", "text/javascript", local); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestRewriteSVG(t *testing.T) {
	in := `<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"><image href="a.png"/><style>p{a:url(b)}</style><a href="//o.test/?a&amp;b"/></svg>`
	want := `<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"><image href="Ld/a.png"/><style>p{a:url(Ld/b)}</style><a href="http://o.test/?a&amp;b"/></svg>`
	if got := rewriteWith(t, in, "image/svg+xml", "image/svg+xml", local); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// A page keeps its charset, and declares it if only a header field did.
func TestRewriteCharsets(t *testing.T) {
	cyrillic, err := charmap.Windows1251.NewEncoder().String("<title>Привет</title><a href='/д?в=1'>мир</a>")
	if err != nil {
		t.Fatal(err)
	}
	const links = "<a href='L%D0%B4@%E2%3D1'>"
	title := cyrillic[:strings.Index(cyrillic, "<a")]
	end := cyrillic[strings.Index(cyrillic, "'>")+2:]
	plain := title + links + end
	wide, _ := unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM).NewEncoder().String("<a href=x>é</a>")
	wideTo, _ := unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM).NewEncoder().String("<a href=Ld/x>é</a>")
	for _, c := range []struct{ what, in, field, want string }{
		{"header", cyrillic, "text/html; charset=windows-1251", `<meta charset="windows-1251">` + plain},
		{"header and meta", "<meta charset=cp1251>" + cyrillic, "text/html; charset=windows-1251", "<meta charset=cp1251>" +
			plain},
		{"another meta", "<!doctype html> <!-- c --><html lang=ru>\n<head x=y><meta charset=utf-8>" + cyrillic,
			"text/html; charset=windows-1251",
			`<!doctype html> <!-- c --><html lang=ru>` + "\n" + `<head x=y><meta charset="windows-1251"><meta charset=utf-8>` +
				plain},
		{"doctype", "<!doctype html>" + cyrillic, "text/html; charset=windows-1251",
			`<!doctype html><meta charset="windows-1251">` + plain},
		{"meta alone", "<meta charset=windows-1251>" + cyrillic, "text/html", "<meta charset=windows-1251>" + plain},
		{"ASCII", "<p>x", "text/html; charset=utf-8", "<p>x"},
		{"UTF-16 with a mark", "\xff\xfe" + wide, "text/html", "\xff\xfe" + wideTo},
		{"UTF-16 by its header", wide, "text/html; charset=utf-16le", "\xff\xfe" + wideTo},
		{"UTF-8 with a mark", "\xef\xbb\xbf<a href=x>é", "text/html", "\xef\xbb\xbf<a href=Ld/x>é"},
	} {
		if got := rewriteWith(t, c.in, c.field, "text/html", local); got != c.want {
			t.Errorf("%s:\n got %q\nwant %q", c.what, got, c.want)
		}
	}
	const css = "a:before{content:'\xe9'}"
	if got := rewriteWith(t, css, "text/css; charset=latin1", "text/css", local); got != `@charset "windows-1252";`+css {
		t.Errorf("a style sheet: %q", got)
	}
}

// Rewrite offers all references that the parser finds and a browser follows, and no others.
func TestRewriteFindsWhatTheParserFinds(t *testing.T) {
	pages := [][]byte{[]byte(strings.Join([]string{
		`<html manifest=1><link rel=stylesheet href=2><style>a{b:url(3)}</style><body background=4 style="c:url(5)">`,
		`<a href=6><area href=7><img src=8 srcset="9 1x" lowsrc=10 dynsrc=11 longdesc=12><script src=13></script>`,
		`<iframe src=14 longdesc=15 srcdoc="<img src=16>"></iframe><input type=image src=17><source src=18 srcset=19>`,
		`<video src=20 poster=21></video><audio src=22></audio><track src=23><embed src=24><object data=25></object>`,
		`<table background=26><td background=27><q cite=28></q><svg><image href=29 /><use xlink:href=30 /><a href=31 /><script href=32 /></svg>`,
		`<meta http-equiv=refresh content="0;url=33"><form action=34></form>`}, ""))}
	for _, p := range wholePages {
		pages = append(pages, p.body)
	}
	for seed := range uint64(1000) {
		pages = append(pages, []byte(oddMarkup(seed)))
	}
	for i, body := range pages {
		resp := &page.Response{URL: "http://h.test/d/p", Status: 200, Header: http.Header{"Content-Type": {"text/html"}},
			Body: body}
		var pg page.Page
		if err := New(Config{}).Parse(resp, &pg); err != nil {
			t.Fatal(err)
		}
		offered := map[string]bool{}
		_, err := New(Config{}).Rewrite(nil, resp, "text/html", func(to weburl.URL, kind page.Kind) (string, bool) {
			offered[to.Canonical().String()] = true
			return "", false
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range pg.Links {
			self := strings.HasPrefix(l.URL, pg.Base) && l.Kind == page.Anchor // by href="" or a fragment
			switch l.Kind {
			case page.Meta, page.JSONLD, page.Header, page.Ping:
				continue
			case page.Image, page.Media: // some meta elements name images that no page displays
				if bytes.Contains(body, []byte("og:")) || bytes.Contains(body, []byte("twitter:")) ||
					bytes.Contains(body, []byte("ld+json")) {
					continue
				}
			}
			if !offered[l.URL] && !self {
				t.Errorf("page %d: %s %s is not offered", i, l.Kind, l.URL)
			}
		}
		if i == 0 && len(offered) != 34 {
			t.Errorf("%d references, want 34", len(offered))
		}
	}
}

// Other text is unchanged: without the edits, the result equals the document.
func FuzzRewrite(f *testing.F) {
	f.Add([]byte(`<base href=/x/><a href="y?a=1&amp;b" style='c:url(d)'>`), uint8(0))
	f.Add([]byte("\xff\xfe<\x00a\x00 \x00h\x00r\x00e\x00f\x00=\x00x\x00>\x00"), uint8(0))
	f.Add([]byte(`@import "a\29";b{c:url( d )}`), uint8(1))
	f.Add([]byte(`<svg><style>a{b:url(c)}</style><image xlink:href=x /></svg>`), uint8(2))
	types := []string{"text/html", "text/css", "image/svg+xml", xhtml}
	f.Fuzz(func(t *testing.T, in []byte, of uint8) {
		essence := types[int(of)%len(types)]
		resp := &page.Response{URL: "http://h.test/d/p", Status: 200, Header: http.Header{"Content-Type": {essence}},
			Body: slices.Clone(in)}
		p := New(Config{})
		if _, err := p.Rewrite(nil, resp, essence, local); err != nil && !errors.Is(err, ErrRewrite) {
			t.Fatal(err)
		}
		if !bytes.Equal(resp.Body, in) {
			t.Fatal("the body has changed")
		}
		// If all references are kept, only attributes that break offline reading may be removed.
		same, err := p.Rewrite(nil, resp, essence, func(weburl.URL, page.Kind) (string, bool) { return "", false })
		lower := bytes.ToLower(bytes.ReplaceAll(in, []byte{0}, nil))
		if err == nil && !bytes.Equal(same, in) && !bytes.ContainsAny(lower, "&") && !bytes.Contains(lower, []byte("base")) &&
			!bytes.Contains(lower, []byte("ping")) &&
			!bytes.Contains(lower, []byte("meta")) && !bytes.Contains(lower, []byte("link")) &&
			!bytes.Contains(lower, []byte("srcdoc")) {
			t.Errorf("%q became %q", in, same)
		}
	})
}
