package parse

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"kumo/internal/base/page"
)

// TestCut is set where another parser with more room finds more, and only there.
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
		_ = New(c.cfg).Parse(resp, pg) // a list that is cut is broken off
		if pg.MemoryCut != c.cut || !c.cut && len(pg.Links) != 100 {
			t.Errorf("%s, %+v: %d links, cut %v", c.mediaType, c.cfg, len(pg.Links), pg.MemoryCut)
		}
	}
}

// TestListsAreReadWhole reads a list to its end of which the body has only the beginning.
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

// TestMaxWide reads so much of a body whose charset has to be changed first.
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
