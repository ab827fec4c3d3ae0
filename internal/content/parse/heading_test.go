package parse

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"kumo/internal/base/page"
)

func TestHeading(t *testing.T) {
	for _, c := range []struct{ name, markup, want string }{
		{"plain", `<h1>One &amp; only</h1>`, "One & only"},
		{"the first", `<h1 class=x>One</h1><h1>Two</h1>`, "One"},
		{"with elements in it", "<H1>\n <a href=x>A <b>b</b></a>\tc</H1 >", "A b c"},
		{"an image's words", `<h1><img src=logo.png alt="The site"></h1>`, "The site"},
		{"the first that has a text", `<h1><img src=logo.png></h1><h2>no</h2><h1>Yes</h1>`, "Yes"},
		{"not closed", `<h1>Open`, "Open"},
		{"another heading", `<h2>Two</h2>`, ""},
		{"in a frame's document", `<iframe srcdoc="<h1>Inner</h1>"></iframe><h1>Outer</h1>`, "Outer"},
		{"around a frame's document", `<h1>A <iframe srcdoc="<h1>Inner</h1>"></iframe>B</h1>`, "A B"},
		{"in a comment", `<!-- <h1>no</h1> --><h1>Yes</h1>`, "Yes"},
		{"read again for its base", `<a href=x>x</a><h1>One</h1><base href="/y/"><h1>Two</h1>`, "One"},
		{"too long", `<h1>` + strings.Repeat("0123456789", 200) + `</h1>`, strings.Repeat("0123456789", 102) + "0123"},
	} {
		t.Run(c.name, func(t *testing.T) {
			pg := parsed(t, c.markup)
			if pg.Heading != c.want {
				t.Errorf("%q, want %q", pg.Heading, c.want)
			}
		})
	}
}

func TestDescription(t *testing.T) {
	for _, c := range []struct{ name, markup, want string }{
		{"plain", `<meta name=description content=" What  it&#39;s about ">`, "What it's about"},
		{"in capitals", `<META NAME=Description CONTENT=x>`, "x"},
		{"the first that says something", `<meta name=description content=" "><meta name=description content=two>` +
			`<meta name=description content=three>`, "two"},
		{"another", `<meta name=keywords content=a><meta property=og:description content=b>`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if pg := parsed(t, c.markup); pg.Description != c.want {
				t.Errorf("%q, want %q", pg.Description, c.want)
			}
		})
	}
}

// One URL may be an alternate for a language and for x-default, and is one link.
func TestVariants(t *testing.T) {
	pg := parsed(t, `<link rel=alternate hreflang=de href=/de><link rel="alternate" hreflang=en href=/en>`+
		`<link rel=alternate hreflang=x-default href=/en><link rel=alternate type=application/rss+xml href=/feed>`+
		`<a hreflang=fr href=/fr rel=alternate>fr</a><link rel=next hreflang=it href=/it>`)
	want := []page.Variant{{Lang: "de", URL: "http://example.org/de"}, {Lang: "en", URL: "http://example.org/en"},
		{Lang: "x-default", URL: "http://example.org/en"}}
	if !slices.Equal(pg.Variants, want) {
		t.Errorf("%v, want %v", pg.Variants, want)
	}
	resp := &page.Response{URL: "http://example.org/", Header: http.Header{
		"Link": {`</at>; rel="alternate"; hreflang="de-AT"`}}}
	if err := New(Config{}).Parse(resp, pg); err != nil {
		t.Fatal(err)
	}
	if want := []page.Variant{{Lang: "de-AT", URL: "http://example.org/at"}}; !slices.Equal(pg.Variants, want) {
		t.Errorf("by header fields %v, want %v", pg.Variants, want)
	}
}

func parsed(t *testing.T, markup string) *page.Page {
	t.Helper()
	pg := new(page.Page)
	resp := &page.Response{URL: "http://example.org/", Status: 200, Body: []byte(markup),
		Header: http.Header{"Content-Type": {"text/html"}}}
	if err := New(Config{}).Parse(resp, pg); err != nil {
		t.Fatal(err)
	}
	return pg
}
