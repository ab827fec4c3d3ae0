package parse

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"kumo/internal/base/page"
)

// makePage returns a typical page: a head with scripts and styles, then paragraphs of text with links.
func makePage(size, links int) []byte {
	random := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	b.WriteString("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>A page &amp; its " +
		"title</title>\n<link rel=\"stylesheet\" href=\"/css/site.css\"><script>var a = 1; if (a < 2 && b > 3) { f('<b>'); " +
		"}</script></head><body>\n")
	each := (size - b.Len()) / links
	for n := range links {
		from := b.Len()
		fmt.Fprintf(&b, "<li><a class=\"l\" href=\"/section/%d/page-%d.html?a=1&amp;b=%d\">%d</a></li>\n", n%7, n, n%9, n)
		for b.Len()-from+100 < each {
			words := strings.Repeat("lorem ipsum dolor ", 1+random.IntN(5))
			fmt.Fprintf(&b, "<p class=\"text\">%s<b>%s</b> &ndash; <span style='color: red' data-n=%d>sit</span></p>\n", words,
				words[:5], n)
		}
	}
	return []byte(b.String())
}

var benchPages = []struct {
	name string
	body []byte
}{
	{"ordinary", makePage(27<<10, 40)},
	{"dense", makePage(30<<10, 400)},
	{"described", described(makePage(27<<10, 40))},
}

// described is a page with all kinds of metadata.
func described(body []byte) []byte {
	body = bytes.Replace(body, []byte("<link rel"),
		[]byte(`<meta name="description" content="What it is about, &amp; why it `+
			`was written"><link rel="canonical" href="/about"><link rel="alternate" hreflang="de" href="/de/about">`+
			`<link rel="alternate" hreflang="x-default" href="/about"><link rel`), 1)
	return bytes.Replace(body, []byte("<body>"), []byte(`<body><h1 class="title">The <em>headline</em> of a page</h1>`), 1)
}

func BenchmarkParse(b *testing.B) {
	for _, bp := range benchPages {
		b.Run(bp.name, func(b *testing.B) {
			resp := &page.Response{URL: testURL, Status: 200, Body: bp.body, Header: http.Header{"Content-Type": {"text/html"}}}
			p, pg := New(Config{}), new(page.Page)
			b.SetBytes(int64(len(bp.body)))
			b.ReportAllocs()
			for b.Loop() {
				if err := p.Parse(resp, pg); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkScan(b *testing.B) {
	for _, bp := range benchPages {
		b.Run(bp.name, func(b *testing.B) {
			b.SetBytes(int64(len(bp.body)))
			var s scanner
			for b.Loop() {
				s.reset(bp.body, false)
				for s.next() {
				}
			}
		})
	}
}

// BenchmarkReferences extracts the references of a page without resolving and canonicalizing them.
func BenchmarkReferences(b *testing.B) {
	for _, bp := range benchPages {
		b.Run(bp.name, func(b *testing.B) {
			resp := &page.Response{URL: testURL, Status: 200, Body: bp.body, Header: http.Header{"Content-Type": {"text/html"}}}
			p, pg, bytes := New(Config{}), new(page.Page), 0
			p.onReference = func(url []byte) { bytes += len(url) }
			b.SetBytes(int64(len(bp.body)))
			b.ReportAllocs()
			for b.Loop() {
				if err := p.Parse(resp, pg); err != nil {
					b.Fatal(err)
				}
			}
			if bytes == 0 {
				b.Error("nothing found")
			}
		})
	}
}

// BenchmarkNetTokenizer measures a loop over the tokenizer of x/net that only finds the links.
func BenchmarkNetTokenizer(b *testing.B) {
	for _, bp := range benchPages {
		b.Run(bp.name, func(b *testing.B) {
			b.SetBytes(int64(len(bp.body)))
			b.ReportAllocs()
			for b.Loop() {
				tokenizeLinks(bp.body)
			}
		})
	}
}

// A reference needs no allocation, whatever its kind and notation.
func TestReferencesAllocateNothing(t *testing.T) {
	measure := func(n int) float64 {
		body := []byte(strings.Repeat(`<a href="/x?a&amp;b" rel=nofollow hreflang=de ping="a b"><img srcset="i 1x, j 2x" style="x:url(y)"><q cite=z>`+
			`<form action=/f></form><meta property=og:image content=m><script type=application/ld+json>{"url":"h"}</script>`, n))
		resp := &page.Response{URL: testURL, Body: body, Header: http.Header{"Content-Type": {"text/html"}}}
		p, pg := New(Config{}), new(page.Page)
		return testing.AllocsPerRun(10, func() {
			if err := p.Parse(resp, pg); err != nil {
				t.Fatal(err)
			}
		})
	}
	if few, many := measure(10), measure(1000); many > few {
		t.Errorf("10 pieces take %v allocations, 1000 take %v", few, many)
	}
}

func tokenizeLinks(body []byte) (links int) {
	z := html.NewTokenizer(bytes.NewReader(body))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return links
		case html.StartTagToken, html.SelfClosingTagToken:
			_, more := z.TagName()
			for more {
				var key []byte
				key, _, more = z.TagAttr()
				if string(key) == "href" || string(key) == "src" {
					links++
				}
			}
		}
	}
}
