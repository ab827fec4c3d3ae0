package parse

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"kumo/internal/base/page"
)

func packed(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestLists(t *testing.T) {
	const sitemap = `<urlset><url><loc>http://h.test/1</loc></url><url><loc>/2</loc></url></urlset>`
	const rss = `<rss><channel><item><link>/1</link></item></channel></rss>`
	for _, c := range []struct {
		name, contentType, body string
		parse, list             string // results of Parse and ParseList
	}{
		{"sitemap", "application/xml", sitemap, "listed /1, listed /2", "listed /1, listed /2"},
		{"sitemap as HTML", "text/html", sitemap, "", "listed /1, listed /2"},
		{"packed sitemap", "application/x-gzip", packed(t, sitemap), "", "listed /1, listed /2"},
		{"plain text", "text/plain", "http://h.test/1\nhttp://h.test/2,\n", "", "listed /1, listed /2,"},
		{"index", "text/xml", `<sitemapindex><sitemap><loc>/s.xml</loc></sitemap></sitemapindex>`, "sitemap /s.xml",
			"sitemap /s.xml"},
		{"RSS", "application/rss+xml", rss, "feed /1", "feed /1"},
		{"RSS as HTML", "text/html", rss, "feed /1", "feed /1"},
		{"JSON feed", "application/json", `{"version":"https://jsonfeed.org/version/1","items":[{"url":"/1"}]}`, "feed /1",
			"feed /1"},
		{"other JSON", "application/json", `{"items":[{"url":"/1"}]}`, "", ""},
		{"other XML", "text/xml", `<a><loc>/1</loc></a>`, "", ""},
		{"a page where a sitemap was named", "text/html", `<a href=/1>not found</a>`, "a /1", "a /1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp := &page.Response{URL: "http://h.test/d/x", Status: 200, Body: []byte(c.body),
				Header: http.Header{"Content-Type": {c.contentType}}}
			for how, want := range map[string]string{"Parse": c.parse, "ParseList": c.list} {
				p, pg := New(Config{}), &page.Page{}
				read := p.Parse
				if how == "ParseList" {
					read = p.ParseList
				}
				if err := read(resp, pg); err != nil {
					t.Error(err)
				}
				if got := links(pg); got != want {
					t.Errorf("%s: %s, want %s", how, got, want)
				}
			}
		})
	}
}

func TestBrokenLists(t *testing.T) {
	var b strings.Builder
	p, pg := New(Config{}), &page.Page{}
	b.WriteString("<urlset>")
	for i := range p.cfg.MaxListed + 10 {
		fmt.Fprintf(&b, "<url><loc>/%d</loc></url>", i)
	}
	whole := packed(t, b.String())
	resp := &page.Response{URL: "http://h.test/s.xml.gz", Status: 200,
		Header: http.Header{"Content-Type": {"application/gzip"}}}
	resp.Body = []byte(whole)
	if err := p.ParseList(resp, pg); err != nil || len(pg.Links) != p.cfg.MaxListed || pg.Dropped != 1 ||
		pg.LinksCut != page.ByEntries {
		t.Errorf("%d links, %d dropped, cut by %q, %v", len(pg.Links), pg.Dropped, pg.LinksCut, err)
	}
	resp.Body = []byte(whole[:len(whole)/2])
	if err := p.ParseList(resp, pg); err == nil || len(pg.Links) < p.cfg.MaxListed/4 {
		t.Errorf("cut off: %d links, %v", len(pg.Links), err)
	}
}

// A short list must not become large because of a long base URL.
func TestListsOfLongURLs(t *testing.T) {
	list := `<urlset>` + strings.Repeat("<url><loc>x</loc></url>", 10_000)
	resp := &page.Response{URL: "http://h.test/" + strings.Repeat("d", 8000) + "/s.xml", Status: 200, Body: []byte(list),
		Header: http.Header{"Content-Type": {"text/xml"}}}
	p, pg := New(Config{}), &page.Page{}
	if err := p.ParseList(resp, pg); err != nil || pg.LinksCut != page.ByMemory || len(pg.Links)*8000 > 3*p.cfg.MaxURLs {
		t.Errorf("%d links, cut by %q, %v", len(pg.Links), pg.LinksCut, err)
	}
}

// Images and other languages of a URL are not separate entries.
func TestEntriesOfLists(t *testing.T) {
	var b strings.Builder
	b.WriteString("<URLSET>")
	for i := range 50 {
		fmt.Fprintf(&b, `<URL><image:image><image:loc>/%d.png</image:loc></image:image><LOC>/%[1]d</LOC>`+
			`<xhtml:link rel="alternate" hreflang="de" HREF="/de/%[1]d"/></URL>`, i)
	}
	b.WriteString("</URLSET>")
	for most, want := range map[int]page.LinksCut{50: "", 49: page.ByEntries} {
		p, pg := New(Config{MaxListed: most}), &page.Page{}
		resp := &page.Response{URL: "http://h.test/s.xml", Status: 200, Body: []byte(b.String()),
			Header: http.Header{"Content-Type": {"application/xml"}}}
		if err := p.ParseList(resp, pg); err != nil || len(pg.Links) != 3*most || pg.LinksCut != want {
			t.Errorf("at most %d: %d links, cut by %q, %v", most, len(pg.Links), pg.LinksCut, err)
		}
	}
}

func TestTooLargeList(t *testing.T) {
	body := "<urlset><url><loc>/1</loc></url>" + strings.Repeat(" ", 51<<20)
	p, pg := New(Config{}), &page.Page{}
	resp := &page.Response{URL: "http://h.test/s.xml", Status: 200, Body: []byte(body),
		Header: http.Header{"Content-Type": {"application/xml"}}}
	if err := p.ParseList(resp, pg); err != nil || len(pg.Links) != 1 || pg.LinksCut != page.ByLength {
		t.Errorf("%d links, cut by %q, %v", len(pg.Links), pg.LinksCut, err)
	}
}
