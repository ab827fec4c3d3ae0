package parse

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"kumo/internal/base/cputime"
	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
)

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"<title>a&amp;b</title><a href=x><base href=/y/>", "<script><!--<script></script>--></script><a href=1>",
		"<svg><title><a href=1></title><![CDATA[x]]></svg>", "<img srcset='a 1x, b 2x'>",
		"<meta http-equiv=refresh content='1;url=x'>",
		"<meta charset=iso-2022-jp><a href='?\x1B$B0^'>", "\xFF\xFE<\x00a\x00",
		"<?xml version='1.0' encoding='gbk'?><a href='?\x81\x30\x81\x30'>",
	} {
		f.Add([]byte(seed), "text/html", "</x>; rel=\"next\"")
	}
	f.Add([]byte("<a href='?\x83\x5C'>"), "application/xhtml+xml; charset='shift_jis'", "0;url=x")
	for _, seed := range []string{"<form action=x><button></form><iframe srcdoc='<base href=y><a href=z>'>",
		"<p style='x:url(y)'><style>@import 'z'</style>",
		"<meta property=og:image content=x><meta name=robots content='unavailable_after: Mon, 1 Jan 2024'>", "\x00<\x00p",
		"<p>\xE9\xE8 \x93",
		`<script type=application/ld+json>{"@id":"x","image":["\u0041"]}</script><script>'/x'</script>`,
		"<a ping='x y' href=z>t <img alt=u></a>"} {
		f.Add([]byte(seed), "text/html", "kumo: noindex, unavailable_after: 2024-01-01, other: none")
	}
	f.Add([]byte("@import url(x); p { y: url( 'z' ) }"), "text/css", "")
	f.Add([]byte("http://h.test/x, 'y/z.html'"), "text/plain", "")
	p := New(Config{MaxLinks: 20, MaxTitle: 30, Agent: "kumo", AnchorText: true, Scripts: true, PlainText: true})
	f.Fuzz(func(t *testing.T, body []byte, contentType, field string) {
		resp := &page.Response{URL: testURL, Status: 200, Body: body, Header: http.Header{
			"Content-Type": {contentType}, "Link": {field}, "Refresh": {field}, "X-Robots-Tag": {field}}}
		var pg page.Page
		if err := p.Parse(resp, &pg); err != nil {
			t.Fatal(err)
		}
		checkPage(t, &pg)
	})
}

// checkPage checks properties of any page read with at most 20 links and titles of 30 bytes.
func checkPage(t *testing.T, pg *page.Page) {
	if len(pg.Robots.Header) > maxRobots+2 || len(pg.Robots.Meta) > maxRobots+2 {
		t.Errorf("robots %+v", pg.Robots)
	}
	if len(pg.Links) > 20 || len(pg.Title) > 30 || !utf8.ValidString(pg.Title) {
		t.Errorf("%d links, title %q", len(pg.Links), pg.Title)
	}
	type key struct {
		url  string
		kind page.Kind
	}
	known := make(map[key]bool)
	for _, l := range pg.Links {
		u, err := weburl.Parse(l.URL)
		if err != nil || u.Canonical().String() != l.URL {
			t.Errorf("%s: canonical %s, %v", l.URL, u.Canonical(), err)
		}
		if known[key{l.URL, l.Kind}] {
			t.Errorf("%s %s twice", l.Kind, l.URL)
		}
		known[key{l.URL, l.Kind}] = true
	}
}

// Large pages that try to take much time or memory. The time limit is many times the time needed, and a fraction of
// quadratic time.
func TestHostile(t *testing.T) {
	const size, allowed = 512 << 10, 10 * time.Second
	for name, c := range map[string]struct{ before, unit string }{
		"anchors":                {"", "<a href=%d>"},
		"equal anchors":          {"", "<a href=x>"},
		"one huge attribute":     {"<a href='", "&amp;%d "},
		"deep nesting":           {"", "<div>"},
		"deep svg":               {"", "<svg>"},
		"svg and math":           {"", "<svg><title><math><mi>"},
		"svg and foreign ends":   {"", "<svg></math>"},
		"CDATA":                  {"<svg>", "<![CDATA["},
		"open tags":              {"", "<"},
		"open attributes":        {"", "<a b=\""},
		"attributes":             {"<a ", "a%d=b "},
		"comment starts":         {"", "<!--"},
		"comment ends":           {"<!--", "-- > "},
		"script comments":        {"<script>", "<!--"},
		"script pairs":           {"<script><!--", "<script></script>"},
		"script comments in all": {"<script>", "<!---->"},
		"scripts":                {"", "<script><!----></script>"},
		"raw text ends":          {"", "<title></titl"},
		"references":             {"", "<a href='&%d;&amp&notit;&#x;'>"},
		"one huge srcset":        {"<img srcset='", "a%d 1x, "},
		"parentheses":            {"<img srcset='a ", "(("},
		"metas":                  {"", "<meta charset=gbk><meta charset=big5>"},
		"charset charset":        {"<meta http-equiv=content-type content='", "charset "},
		"unclosed anchors":       {"", "<a href=%d>x"},
		"late bases":             {"", "<a href=1><base href=%d>"},
		"long links":             {"", "<a href='" + strings.Repeat("x", 8000) + "%d'>"},
		"long rels":              {"", "<a href=%d rel='" + strings.Repeat("x ", 8000) + "'>"},
		"not UTF-8":              {"", "<a href='\xE9?\xE9%d'>"},
		"pings":                  {"<a href=x ping='", "%d "},
		"one huge style":         {"<style>", "a{b:url(%d)}"},
		"open urls":              {"<style>", "url("},
		"css escapes":            {"<style>url(", "\\28 "},
		"css comments":           {"<style>", "/*"},
		"style attributes":       {"", "<p style='x:url(%d)'>"},
		"svg styles":             {"<svg>", "<style>"},
		"srcdocs":                {"", "<iframe srcdoc='<a href=%d><base href=x>'></iframe>"},
		"one huge srcdoc":        {"<iframe srcdoc='", "<a href=%d>"},
		"srcdocs in srcdocs":     {"<iframe srcdoc=\"", "<iframe srcdoc='<iframe srcdoc=&amp;quot;<a href=%d>&amp;quot;>'>"},
		"json":                   {"<script type=application/ld+json>", `{"url":"%d","a":[`},
		"json strings":           {"<script type=application/ld+json>[", `"http:\/\/h.test\/%d",`},
		"json escapes":           {"<script type=application/ld+json>\"", `\u0041`},
		"json quotes":            {"<script type=application/ld+json>", `"`},
		"forms":                  {"", "<form action=%d></form>"},
		"open forms":             {"", "<form action=%d><input>"},
		"robots":                 {"", "<meta name=robots content='noindex,unavailable_after: Monday, x'>"},
		"one huge robots":        {"<meta name=robots content='", "unavailable_after: Monday, x, "},
		"properties":             {"", "<meta property=og:url content=%d>"},
		"undeclared":             {"", "<p>\xC5\x82\xE9 \xFF%d "},
		"zeros":                  {"", "\x00<\x00a"},
		"escape sequences":       {"<meta charset=iso-2022-jp><a href='", "\x1B$B\x1B(B"},
	} {
		t.Run(name, func(t *testing.T) {
			var body strings.Builder
			body.WriteString(c.before)
			for i := 0; body.Len() < size; i++ {
				body.WriteString(strings.ReplaceAll(c.unit, "%d", fmt.Sprint(i)))
			}
			var pg *page.Page
			took := cputime.Of(func() {
				pg = parseWith(t, Config{AnchorText: true, Scripts: true}, nil, body.String()+"'>--></script>")
			})
			if len(pg.Links) > 100_000 || took > allowed {
				t.Errorf("%d links, took %v", len(pg.Links), took)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	var body strings.Builder
	body.WriteString(strings.Repeat("<a href=first>", 200_000))
	for i := range 100_010 {
		fmt.Fprintf(&body, "<a href=%d><a href=first>", i)
	}
	pg := parse(t, body.String())
	if len(pg.Links) != 100_000 || pg.Dropped != 11 || pg.LinksCut != page.ByMemory {
		t.Errorf("%d links, %d dropped, cut by %q", len(pg.Links), pg.Dropped, pg.LinksCut)
	}
	pg = parse(t, "<a href='"+strings.Repeat("x", 1<<20)+"'><img src='data:"+strings.Repeat("x", 1<<20)+"'><a href=1>")
	if links(pg) != "a /d/1" || pg.Dropped != 1 {
		t.Errorf("%s, %d dropped", links(pg), pg.Dropped)
	}
	body.Reset()
	body.WriteString("<base href='" + strings.Repeat("x", 8000) + "/'>")
	for i := range 5000 {
		fmt.Fprintf(&body, "<a href=%d>", i)
	}
	pg = parse(t, body.String())
	if n := len(pg.Links); n == 0 || n*8000 > 16<<20 || pg.Dropped != 5000-n {
		t.Errorf("%d links, %d dropped", n, pg.Dropped)
	}
}
