package parse

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"kumo/internal/base/page"
)

// LinksCut is set if and only if a parser with higher limits finds more.
func TestCut(t *testing.T) {
	var links, list strings.Builder
	list.WriteString("<urlset>")
	for i := range 100 {
		fmt.Fprintf(&links, "<a href=/%d>x</a>", i)
		fmt.Fprintf(&list, "<url><loc>/%d</loc></url>", i)
	}
	for _, c := range []struct {
		mediaType, body string
		cfg             Config
		cut             bool
	}{
		{"text/html", links.String(), Config{}, false},
		{"text/html", links.String(), Config{MaxLinks: 100}, false},
		{"text/html", links.String(), Config{MaxLinks: 99}, true},
		{"text/html", links.String(), Config{MaxURLs: 500}, true},
		{"application/xml", list.String(), Config{}, false},
		{"application/xml", list.String(), Config{MaxListed: 100}, false},
		{"application/xml", list.String(), Config{MaxListed: 99}, true},
		{"application/xml", list.String(), Config{MaxURLs: 500}, true},
	} {
		resp := &page.Response{URL: "http://h.test/", Status: 200, Body: []byte(c.body),
			Header: http.Header{"Content-Type": {c.mediaType}}}
		pg := &page.Page{}
		_ = New(c.cfg).Parse(resp, pg) // a truncated list
		if pg.MemoryCut != c.cut || !c.cut && len(pg.Links) != 100 {
			t.Errorf("%s, %+v: %d links, cut %v", c.mediaType, c.cfg, len(pg.Links), pg.MemoryCut)
		}
	}
}

// TestListsAreReadWhole reads a list to its end although the body contains only the beginning.
func TestListsAreReadWhole(t *testing.T) {
	list := "<urlset>" + strings.Repeat("<url><loc>/x</loc></url>", 1000)
	resp := &page.Response{URL: "http://h.test/", Status: 200, Body: []byte(list[:3000]),
		Header:   http.Header{"Content-Type": {"text/xml"}},
		FullBody: func() io.Reader { return strings.NewReader(list) }}
	pg := &page.Page{}
	if err := New(Config{}).ParseList(resp, pg); err != nil || len(pg.Links) != 1000 {
		t.Errorf("%d entries, %v", len(pg.Links), err)
	}
}

// TestMaxWide reads a limited part of a body whose charset must be converted.
func TestMaxWide(t *testing.T) {
	wide := strings.ReplaceAll("<a href=/1>x</a><a href=/2>y</a>", "", "\x00")[1:] // after each character
	resp := &page.Response{URL: "http://h.test/", Status: 200, Body: []byte(wide),
		Header: http.Header{"Content-Type": {"text/html; charset=utf-16le"}}}
	for most, want := range map[int]int{0: 2, 40: 1} {
		pg := &page.Page{}
		if err := New(Config{MaxConverted: most}).Parse(resp, pg); err != nil || len(pg.Links) != want {
			t.Errorf("most %d: %d links, %v", most, len(pg.Links), err)
		}
	}
}
