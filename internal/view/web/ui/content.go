package ui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"kumo/internal/app/lookup"
	"kumo/internal/archive/fulltext"
	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
)

// Endpoints that read pages: by words, and by URL.

// formats are the formats of a page.
var formats = []string{"markdown", "text", "comments", "headers"}

// A pagePart is a page, or a part of it.
type pagePart struct {
	URL       string `json:"url"`
	Status    int    `json:"status"`
	Type      string `json:"type,omitempty"`
	Title     string `json:"title,omitempty"`
	Headline  string `json:"headline,omitempty"`
	Author    string `json:"author,omitempty"`
	Published string `json:"published,omitempty"`
	Lang      string `json:"lang,omitempty"`
	Kind      string `json:"kind,omitempty"` // of page: article, forum, product, …
	As        string `json:"as"`
	// the text is the main text of an HTML page, without menus and other boilerplate
	Main      bool   `json:"main"`
	Offset    int    `json:"offset"`         // start of the part, in bytes
	All       int    `json:"all"`            // total length in bytes
	Next      int    `json:"next,omitempty"` // value for "offset" to continue; missing: this is the last part
	Truncated bool   `json:"truncated"`      // the archive contains more than can be returned
	Text      string `json:"text"`
}

const (
	defaultPart = 16 << 10 // bytes
	maxPart     = 64 << 10
)

var (
	urlParam    = param{"query", "url", "string", "the URL", true}
	offsetParam = param{"query", "offset", "integer", "where to start, in bytes: \"next\" of the previous answer",
		false}
	bytesParam = param{"query", "bytes", "integer", "maximum number of bytes: default 16384, at most 65536", false}
)

func (set *crawlSet) contentEndpoints() []endpoint {
	return []endpoint{
		{
			"/crawls/{crawl}/search",
			"search",
			"Pages by words. A full-text index (kumo index) is searched if there is one: " +
				"best matches first, and words may be a query: \"a phrase\", -not, host:, lang:, status:, type:, " +
				"day:. Otherwise a limited part of the records is scanned, newest first, and the texts of some of " +
				"them are read; the answer shows whether " +
				"the search ended early, and has a cursor to continue.",
			[]param{crawlParam, {"query", "words", "string", "words that must occur, all of them, ignoring case: in " +
				"the URL, in the page's metadata, or in its text", false},
				{"query", "using", "string", "index or scan: with or without the index; default: with the index if " +
					"there is one", false},
				{"query", "in", "string", "head: only in the URL and the page's metadata, which is much faster; " +
					"without the index", false},
				{"query", "host", "string", "only pages of the host and its subdomains; with the index, here and " +
					"below, of several values, separated by commas", false},
				{"query", "status", "string", "404; 4xx for a class; without the index, 0 for URLs without an answer",
					false},
				{"query", "type", "string", "a media type, or its part before the slash: text/html, text/; without the index, " +
					"any prefix", false},
				{"query", "lang", "string", "a language: en also finds en-GB; without the index, any prefix of the tag",
					false},
				{"query", "day", "string", "a day, as 2026-11-26, or a month, as 2026-11", false},
				{"query", "cursor", "integer", "where to continue: \"next\" of the previous answer", false},
				limitParam},
			lookup.Found{},
			listWithTarget(set.find, getSearch),
		},
		{"/crawls/{crawl}/page", "page", "The text of the newest successful answer for a URL.",
			[]param{crawlParam, urlParam, {"query", "as", "string",
				"markdown (default) or text: the main text of HTML, other text unchanged; headers: the header fields",
				false},
				offsetParam, bytesParam}, pagePart{}, withTarget(set.find, getPage)},
		{"/crawls/{crawl}/page/links", "pageLinks", "The links of the newest successful answer for a URL.",
			[]param{crawlParam, urlParam, limitParam}, linkPage{}, listWithTarget(set.find, getPageLinks)},
	}
}

func getSearch(c *crawl, r *http.Request, n int) (any, error) {
	q := lookup.Query{Filter: filterOf(r), Words: strings.Fields(r.FormValue("words")), Host: r.FormValue("host")}
	switch in := r.FormValue("in"); in {
	case "":
	case "head":
		q.HeadOnly = true
	default:
		return nil, badRequest("in is %q: expected \"head\"", cut(in, 40))
	}
	if found, err := c.indexed(r, n); found != nil || err != nil { // which has its own rules
		return found, err
	}
	if err := q.Check(); err != nil {
		return nil, badRequest("%v", err)
	}
	cursor, err := number(r, "cursor", lookup.Last)
	if err != nil {
		return nil, err
	}
	return c.archive.Search(r.Context(), q, cursor, n)
}

// indexed searches with the full-text index. It returns nil if there is none, or if the request excludes it.
func (c *crawl) indexed(r *http.Request, n int) (*lookup.Found, error) {
	using, day := r.FormValue("using"), r.FormValue("day")
	switch {
	case using != "" && using != "index" && using != "scan":
		return nil, badRequest("using is %q: expected index or scan", cut(using, 40))
	case using == "scan":
		return nil, nil //nolint:nilnil // as it says
	case using == "index" && r.FormValue("in") != "":
		return nil, &problem{http.StatusNotFound, "The index cannot search only heads", "use in=head with using=scan"}
	}
	if using == "" && day == "" && (r.FormValue("words") == "" || r.FormValue("in") != "" ||
		r.FormValue("status") == "0") {
		return nil, nil //nolint:nilnil // as it says
	}
	if _, err := c.archive.Index(); err != nil {
		if using == "" && errors.Is(err, fulltext.ErrNoIndex) {
			return nil, nil //nolint:nilnil // as it says
		}
		return nil, err
	}
	return c.byIndex(r, r.FormValue("words"), n)
}

// byIndex searches with the full-text index, with the filters of a request.
func (c *crawl) byIndex(r *http.Request, words string, n int) (*lookup.Found, error) {
	q, err := fulltext.Parse(words)
	if err != nil {
		return nil, badRequest("%v", err)
	}
	for _, field := range []string{"host", "lang", "status", "type", "day"} {
		if value := strings.TrimSpace(r.FormValue(field)); value != "" {
			if err := q.Filter(field, value, false); err != nil {
				return nil, badRequest("%v", err)
			}
		}
	}
	if err := q.Check(); err != nil {
		return nil, badRequest("%v", err)
	}
	from, err := number(r, "cursor", 0)
	if err != nil {
		return nil, err
	}
	return c.archive.Indexed(r.Context(), q, from, n)
}

// number returns a number in a request.
func number(r *http.Request, name string, otherwise int64) (int64, error) {
	return numberLike(r, name, otherwise, ", or another number")
}

// cursorOf returns the cursor in a request; lookup.Last if there is none.
func cursorOf(r *http.Request) (int64, error) { return numberLike(r, "cursor", lookup.Last, "") }

func numberLike(r *http.Request, name string, otherwise int64, orElse string) (int64, error) {
	text := r.FormValue(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, badRequest("%s is %q: expected \"next\" of an answer%s", name, cut(text, 40), orElse)
	}
	return n, nil
}

func getPage(c *crawl, r *http.Request) (any, error) {
	wanted, err := partAsked(r)
	if err != nil {
		return nil, err
	}
	read := c.archive.DocumentOf
	if wanted.as == "headers" {
		read = c.archive.AnswerOf
	}
	resp, err := pageOf(r, read)
	if err != nil {
		return nil, err
	}
	p, err := partOf(resp, wanted.as)
	if err == nil {
		err = p.slice(wanted)
	}
	return p, err
}

// A wantedPart is the requested part and format of a page.
type wantedPart struct {
	as            string
	offset, bytes int64
}

func partAsked(r *http.Request) (w wantedPart, err error) {
	w.as = cmp.Or(r.FormValue("as"), formats[0])
	if w.offset, err = number(r, "offset", 0); err != nil {
		return w, err
	}
	if w.bytes, err = number(r, "bytes", defaultPart); err == nil && (w.bytes < 1 || w.bytes > maxPart) {
		err = badRequest("bytes is %d: expected a number from 1 to %d", w.bytes, maxPart)
	}
	return w, err
}

// slice reduces the text to the requested part.
func (p *pagePart) slice(w wantedPart) error {
	text := p.Text
	if w.offset > int64(len(text)) {
		return badRequest("offset is %d: the text has %d bytes", w.offset, len(text))
	}
	p.All, p.Offset = len(text), int(w.offset)
	if p.Text, p.Next = lookup.Part(text, p.Offset, int(w.bytes)); p.Next == len(text) {
		p.Next = 0
	}
	return nil
}

// pageOf returns the newest successful answer for the URL in a request, as read returns it.
func pageOf(r *http.Request, read func(context.Context, string) (*page.Response, error)) (*page.Response, error) {
	url := r.FormValue("url")
	u, err := weburl.Parse(url)
	if err != nil || u.Host() == "" {
		return nil, noURL(url)
	}
	return read(r.Context(), u.Canonical().String())
}

// partOf returns a complete answer in a format.
func partOf(resp *page.Response, as string) (*pagePart, error) {
	p := &pagePart{URL: resp.URL, Status: resp.Status, Type: lookup.Type(resp), As: as}
	read := lookup.MarkdownOf
	switch as {
	case "markdown":
	case "text", "comments":
		read = lookup.TextOf
	case "headers":
		var b strings.Builder
		for _, h := range headersOf(resp).Headers {
			fmt.Fprintf(&b, "%s: %s\n", h.Name, h.Value)
		}
		p.Text = b.String()
		return p, nil
	default:
		return nil, badRequest("as is %q: expected one of %s", cut(as, 40), strings.Join(formats, ", "))
	}
	t, err := read(resp)
	if err != nil {
		return nil, err
	}
	p.Title, p.Headline, p.Author, p.Published, p.Lang = t.Title, t.Headline, t.Author, t.Published, t.Lang
	p.Kind = t.Kind
	if as == "comments" {
		t.Text = t.Comments
	}
	p.Main, p.Truncated, p.Text = t.Main, t.Truncated || resp.Truncated != "", t.Text
	return p, nil
}

func getPageLinks(c *crawl, r *http.Request, n int) (links linkPage, err error) {
	resp, err := pageOf(r, c.archive.DocumentOf)
	if err != nil {
		return links, err
	}
	return linksOf(resp, n)
}
