package check

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"kumo/internal/base/page"
	"kumo/internal/content/mime"
	"kumo/internal/content/parse"
)

// unknownURL is the URL of pages whose URL is not given.
const unknownURL = "http://localhost/"

// PageIn is a page as it was received.
type PageIn struct {
	HTML        []byte `json:"html_b64" need:"html_b64"`
	URL         string `json:"url"`          // "" if unknown
	ContentType string `json:"content_type"` // "" if unknown

	Status int         `json:"-"` // 0: 200
	Header http.Header `json:"-"` // all header fields; nil if the page was not fetched
}

// LinksIn is a page, and options of link extraction.
type LinksIn struct {
	PageIn
	ScriptPaths bool `json:"script_paths"` // also paths in scripts
}

// LinksOut is the links of a page, and its metadata about crawling.
type LinksOut struct {
	Links      []Link `json:"links"`
	Base       string `json:"base"`
	Canonical  string `json:"canonical"`
	Robots     string `json:"robots"`       // of meta elements, as written
	XRobotsTag string `json:"x_robots_tag"` // of header fields, as written
	Refresh    string `json:"refresh"`
	Charset    string `json:"charset"`
	Title      string `json:"title"`
	Type       string `json:"type"` // type of the body
	// why the page shows nothing without script: root, noscript, empty or redirect
	NeedsScript string `json:"needs_script,omitempty"`
	Malformed   string `json:"malformed,omitempty"` // where a list breaks off

	unread string // why no links are read in the body; "" if they are
}

// A Link is a link of a page.
type Link struct {
	URL      string `json:"url"`
	Kind     string `json:"kind"`
	Rel      string `json:"rel"`
	NoFollow bool   `json:"nofollow"`
	Text     string `json:"text"`
}

// Links extracts the links of a page, or of another body that has some: a sitemap or feed, plain text, a style sheet.
func Links(in LinksIn) (LinksOut, error) {
	pg, err := readPage(in.PageIn, parse.Config{AnchorText: true, PlainText: true, Scripts: in.ScriptPaths})
	if err != nil && pg.Base == "" {
		return LinksOut{}, err
	}
	out := LinksOut{Links: []Link{}, Base: pg.Base, Canonical: pg.Canonical, Robots: pg.Robots.Meta,
		XRobotsTag: pg.Robots.Header,
		Refresh:    pg.Refresh, Charset: pg.Charset, Title: pg.Title, Type: pg.Sniffed,
		NeedsScript: string(pg.NeedsScript), unread: unread(&pg, in)}
	if err != nil {
		out.Malformed = err.Error()
	}
	for _, l := range pg.Links {
		out.Links = append(out.Links, Link{URL: l.URL, Kind: l.Kind.String(), Rel: l.Rel, NoFollow: l.NoFollow, Text: l.Text})
	}
	return out, nil
}

// unread returns why no links were read in a body. Bodies that are neither markup nor lists have none.
func unread(pg *page.Page, in LinksIn) string {
	t, _ := mime.Parse(pg.Sniffed)
	switch {
	case len(in.HTML) == 0, parse.IsHTML(pg.Sniffed), t.Essence() == "text/plain", t.Essence() == "text/css":
		return ""
	case slices.ContainsFunc(pg.Links, isListed), t.IsJavaScript() && in.ScriptPaths:
		return ""
	case t.IsJavaScript():
		return fmt.Sprintf("the body is %s: its paths are treated as links only with --script-paths", t.Essence())
	case t.IsXML(), t.IsJSON():
		return fmt.Sprintf("the body is %s, but not a sitemap or feed with entries: kumo reads no links in it", t.Essence())
	}
	return fmt.Sprintf("the body is %s: kumo reads no links in it", cmp.Or(t.Essence(), "of an unknown type"))
}

func isListed(l page.Link) bool {
	return l.Kind == page.Listed || l.Kind == page.Feed || l.Kind == page.Sitemap
}

// readPage parses a page as a crawl does. A gzip body is read as a list, as if it had been named as a sitemap.
func readPage(in PageIn, cfg parse.Config) (pg page.Page, err error) {
	header := http.Header{}
	maps.Copy(header, in.Header)
	if t := cmp.Or(in.ContentType, header.Get("Content-Type")); t != "" {
		header.Set("Content-Type", t)
	} else if in.Header == nil {
		header.Set("Content-Type", undeclared(in.HTML))
	}
	resp := page.Response{URL: cmp.Or(in.URL, unknownURL), Status: cmp.Or(in.Status, http.StatusOK), Header: header,
		Payload: in.HTML,
		Body:    in.HTML, Start: time.Now()}
	cfg.Agent = "kumo"
	p := parse.New(cfg)
	read := p.Parse
	if bytes.HasPrefix(in.HTML, []byte("\x1F\x8B")) {
		read = p.ParseList
	}
	err = read(&resp, &pg)
	return pg, err
}

// undeclared returns the type of a page without a declared type: HTML, unless it begins as a sitemap. Feeds are found
// in HTML anyway.
func undeclared(body []byte) string {
	head := body[:min(len(body), mime.Header)]
	isList := bytes.Contains(head, []byte("urlset")) || bytes.Contains(head, []byte("sitemapindex"))
	isMarkup := bytes.HasPrefix(bytes.TrimLeft(head, "\uFEFF \t\r\n"), []byte("<"))
	if t := mime.Sniff(head, "", false); isList && isMarkup && !t.IsHTML() {
		return "text/xml"
	}
	return "text/html"
}
