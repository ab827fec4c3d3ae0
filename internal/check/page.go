package check

import (
	"cmp"
	"maps"
	"net/http"
	"time"

	"kumo/internal/page"
	"kumo/internal/parse"
)

// PageIn is a page as it was served.
type PageIn struct {
	HTML        []byte `json:"html_b64"`
	URL         string `json:"url"`
	ContentType string `json:"content_type"`

	Header http.Header `json:"-"` // the other fields that came with it, if it was fetched
}

// LinksOut is what a page says about where to go.
type LinksOut struct {
	Links     []Link `json:"links"`
	Base      string `json:"base"`
	Canonical string `json:"canonical"`
	Robots    string `json:"robots"` // of meta elements, as written
	Refresh   string `json:"refresh"`
	Charset   string `json:"charset"`
	Title     string `json:"title"`
}

// A Link is one reference.
type Link struct {
	URL      string `json:"url"`
	Kind     string `json:"kind"`
	Rel      string `json:"rel"`
	NoFollow bool   `json:"nofollow"`
	Text     string `json:"text"`
}

// Links reads a page's links.
func Links(in PageIn) (LinksOut, error) {
	pg, err := readPage(in)
	if err != nil {
		return LinksOut{}, err
	}
	out := LinksOut{Links: []Link{}, Base: pg.Base, Canonical: pg.Canonical, Robots: pg.Robots.Meta, Refresh: pg.Refresh,
		Charset: pg.Charset, Title: pg.Title}
	for _, l := range pg.Links {
		out.Links = append(out.Links, Link{URL: l.URL, Kind: l.Kind.String(), Rel: l.Rel, NoFollow: l.NoFollow, Text: l.Text})
	}
	return out, nil
}

// readPage parses a page, as HTML if its type is not given.
func readPage(in PageIn) (pg page.Page, err error) {
	header := http.Header{}
	maps.Copy(header, in.Header)
	header.Set("Content-Type", cmp.Or(in.ContentType, "text/html"))
	resp := page.Response{URL: in.URL, Status: http.StatusOK, Header: header, Payload: in.HTML, Body: in.HTML, Start: time.Now()}
	err = parse.New(parse.Config{AnchorText: true, Agent: "kumo"}).Parse(&resp, &pg)
	return pg, err
}

// CharsetIn is a body as it was served.
type CharsetIn struct {
	Body        []byte `json:"body_b64"`
	ContentType string `json:"content_type"`
}

// CharsetOut is what it is read with.
type CharsetOut struct {
	Name       string  `json:"name"` // by the WHATWG
	How        string  `json:"how"`  // bom, header, meta, detected or default
	Confidence float64 `json:"confidence"`
}

// Charset finds out a body's charset.
func Charset(in CharsetIn) (CharsetOut, error) {
	c := parse.DetectCharset(in.Body, in.ContentType)
	return CharsetOut{c.Name, c.How, c.Confidence}, nil
}
