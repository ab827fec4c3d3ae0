package kumo

import (
	"cmp"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"kumo/internal/base/page"
	"kumo/internal/content/fields/tree"
	"kumo/internal/content/maintext"
	"kumo/internal/content/parse"
)

// A Page is one URL that was answered.
type Page struct {
	URL       string // as fetched, in canonical form
	From      string // the page that linked to it, "" for a seed
	Depth     int    // hops from a seed
	Status    int    // HTTP status
	Header    http.Header
	Type      string // media type without parameters, in lower case
	Charset   string // that text was read with, "" for other types
	Lang      string // of the first sentences: ISO 639-1 or 639-3, "other"; "" for other types
	Title     string
	Body      []byte   // without transfer and content coding; in the page's own charset, see HTML
	Links     []string // absolute and canonical, in the order found, whatever OnLink makes of them
	Truncated bool     // the answer ended early, or was longer than the limit
	NoIndex   bool     // the page asks to be shown in no index
	// the URL of a page with nearly the same text, fetched before; "" if none is known
	NearDuplicate string
	ServerIP      netip.Addr // of the server, or of the proxy; the zero Addr if it is not known
	Time          time.Time
	Took          time.Duration

	sniffed string     // what the body is, by its own word
	tree    *tree.Tree // nil: not yet made
}

// HTML is the body in UTF-8, whatever the page's charset is: without byte order mark, and what is wrong in it replaced
// by U+FFFD. What is no text is as in Body. It is made anew by each call.
func (p *Page) HTML() string {
	if p.Charset == "" {
		return string(p.Body)
	}
	return string(parse.UTF8(p.Body, p.Charset))
}

// An Article is what a page is about. A field is "" where the page has none.
type Article struct {
	Headline  string // without the site's name
	Author    string // several are separated by "; "
	Published string // RFC 3339 where the page gives time and zone, otherwise a date, 2006-01-02
	Text      string // a line for each paragraph, subheading, list item or row; tabs between cells
	Lang      string // that the text is in, as far as it can be told, otherwise as the page declares it
}

// Text is the main text of an HTML page, without menus, comments and footers: Article has more. It is found by each
// call anew, in a millisecond or two.
func (p *Page) Text() string { return p.Article().Text }

// Article is what an HTML page is about; nothing of another type. It is found by each call anew. Of a very large page
// only the beginning is read.
func (p *Page) Article() Article {
	if !parse.IsHTML(cmp.Or(p.sniffed, p.Type)) {
		return Article{}
	}
	t, _ := maintext.Extract([]byte(p.HTML()), p.URL) // what was found before a bound is worth having
	return Article{t.Headline, t.Author, t.Published, t.Text, t.Language()}
}

// pageOf copies what the engine will use again.
func pageOf(r *page.Record) *Page {
	res := r.Response
	p := &Page{URL: r.URL, From: r.From, Depth: r.Depth, Status: res.Status, Header: res.Header.Clone(),
		Body: slices.Clone(res.Body), Truncated: res.Truncated != page.Whole || res.FullBody != nil, NoIndex: r.NoIndex,
		NearDuplicate: r.NearDuplicate, ServerIP: res.ServerIP(), Time: r.Time, Took: r.Took}
	if r.Page == nil { // a recrawl has found it as it was
		return p
	}
	p.sniffed = strings.Clone(r.Page.Sniffed)
	p.Type, p.Charset, p.Lang, p.Title = r.Page.Type, r.Page.Charset, r.Page.Lang, strings.Clone(r.Page.Title)
	for _, l := range r.Page.Links {
		p.Links = append(p.Links, l.URL)
	}
	return p
}

// An Error is one URL that was not answered.
type Error struct {
	URL   string
	From  string
	Kind  string // dns, connect, refused, tls, timeout, reset, malformed, private, proxy, unreachable, robots, login
	Tries int
	Err   error
}

func errorOf(r *page.Record) *Error {
	return &Error{URL: r.URL, From: r.From, Kind: string(r.Failure), Tries: r.Tries, Err: errorText(r.Detail)}
}

func (e *Error) Error() string { return fmt.Sprintf("fetch %s: %v", e.URL, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
