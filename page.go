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

// A Page is a URL that was answered.
type Page struct {
	URL       string // canonical, as requested
	From      string // page that linked to it; "" for a seed
	Depth     int    // number of links from a seed
	Status    int    // HTTP status
	Header    http.Header
	Type      string // media type without parameters, lower case
	Charset   string // charset used to decode text; "" for other types
	Lang      string // language of the first sentences: ISO 639-1 or 639-3, or "other"; "" for other types
	Title     string
	Body      []byte   // without transfer and content coding, in the page's own charset; see HTML
	Links     []string // absolute and canonical, in document order, before OnLink changes them
	Truncated bool     // the response ended early, or was longer than the limit
	NoIndex   bool     // the page asks not to be indexed
	// with the option NearDuplicates, URL of a page fetched before with nearly the same text; "" if none is known
	NearDuplicate string
	ServerIP      netip.Addr // address of the server, or of the proxy; the zero Addr if not known
	Time          time.Time
	Took          time.Duration
	Rendered      bool // a browser has run the page's scripts, see Render; Body is as it was received
	Usage         Preferences
	Withheld      string // with the option Usage, the use that the site does not allow; "" if none

	// Document describes a PDF, an office document, an e-book or an image; nil for other pages, and without the option
	// Documents
	Document *Document

	document []byte     // of a rendered page, after its scripts; of a document, its HTML form
	main     *Article   // of a document
	sniffed  string     // detected media type of the body
	tree     *tree.Tree // nil: not parsed yet
}

// HTML returns the body in UTF-8, whatever the page's charset is, without a byte order mark and with invalid bytes
// replaced by U+FFFD. If the body is not text, it is returned unchanged. Each call decodes the body again. For a
// rendered page, HTML returns the document after its scripts; for a Document, an HTML page with its content.
func (p *Page) HTML() string {
	if p.document != nil {
		return string(p.document)
	}
	if p.Charset == "" {
		return string(p.Body)
	}
	return string(parse.UTF8(p.Body, p.Charset))
}

// Preferences are what a site stated about the use of a page when it was fetched. The uses are "y" for allowed, "n" for
// not allowed, and "" if nothing is stated.
type Preferences struct {
	TrainAI string // training of AI models
	Search  string // search engines
	AIInput string // input of AI models
	TDM     string // text and data mining
	Policy  string // URL of a policy for text and data mining, as written
	License string // URL of a license
	Source  string // places of the statements: "robots.txt:LINE", "header", "meta", "link"; "" if nothing is stated
	Raw     string // the statements as written
}

// An Article is the main content of a page. Fields that the page does not have are "".
type Article struct {
	Headline  string // without the name of the site
	Author    string // several authors are separated by "; "
	Published string // RFC 3339 if the page has time and zone, otherwise a date, 2006-01-02
	Text      string // a line for each paragraph, subheading, list item or table row; tabs between cells
	Lang      string // detected language of the text, otherwise the declared language
	Kind      string // of page: "article", "forum", "product", "listing", "documentation", "service", "document" or "other"
	Comments  string // of readers or customers, a line for each paragraph; the posts of a forum are in Text
}

// A Document is the metadata of a PDF, an office document, an e-book or an image. Fields that it lacks are empty.
type Document struct {
	Type                string // pdf, docx, pptx, xlsx, odt, ods, odp, epub, jpeg, png, …
	Pages               int    // pages, slides, sheets or chapters
	Author, Rights      string
	Published, Modified string            // RFC 3339, or a date only
	Attachments         []string          // names of embedded files
	Properties          map[string]string // such as an image's width and height in pixels, and camera
	// why its text is missing or incomplete: "encrypted", "no-text", "cut", "broken", "too-large", "timeout", "crashed" or
	// "unsupported"; Detail has it in words
	WhyNot, Detail string
}

// Text returns the main text of an HTML page, without menus, comments and footers. See Article for more. Each call
// extracts it again, in one or two milliseconds.
func (p *Page) Text() string { return p.Article().Text }

// Article returns the main content of an HTML page, and all of a Document; empty for other types. Each call extracts it again. Of a very large
// page, only the beginning is read.
func (p *Page) Article() Article {
	if p.main != nil {
		return *p.main
	}
	if !parse.IsHTML(cmp.Or(p.sniffed, p.Type)) {
		return Article{}
	}
	t, _ := maintext.Extract([]byte(p.HTML()), p.URL) // if a bound was exceeded, the result so far is still useful
	return Article{t.Headline, t.Author, t.Published, t.Text, t.Language(), t.Kind, t.Comments}
}

// pageOf copies data that the engine will reuse.
func pageOf(r *page.Record) *Page {
	res := r.Response
	p := &Page{URL: r.URL, From: r.From, Depth: r.Depth, Status: res.Status, Header: res.Header.Clone(),
		Body: slices.Clone(res.Body), Truncated: res.Truncated != page.Whole || res.FullBody != nil, NoIndex: r.NoIndex,
		NearDuplicate: r.NearDuplicate, ServerIP: res.ServerIP(), Time: r.Time, Took: r.Took}
	if r.Rendering != nil {
		p.Rendered, p.document = true, slices.Clone(r.Rendering.HTML)
	}
	if d := r.Document; d != nil {
		p.Document = &Document{Type: d.Type, Pages: d.Pages, Author: d.Author, Rights: d.Rights, Published: d.Published,
			Modified: d.Modified, Attachments: d.Attachments, Properties: d.Properties, WhyNot: d.WhyNot, Detail: d.Detail}
	}
	if r.Shown != nil {
		p.document = r.Shown.Body
		m := r.Shown.Main
		p.main = &Article{m.Headline, m.Author, m.Published, m.Text, m.Lang, m.Kind, ""}
	}
	if u := r.Usage; u != nil {
		p.Usage = Preferences{u.TrainAI, u.Search, u.AIInput, u.TDM, u.Policy, u.License, u.Source, u.Raw}
		p.Withheld = r.Withheld
	}
	if r.Page == nil { // a recrawl found it unchanged
		return p
	}
	p.sniffed = strings.Clone(r.Page.Sniffed)
	p.Type, p.Charset, p.Lang, p.Title = r.Page.Type, r.Page.Charset, r.Page.Lang, strings.Clone(r.Page.Title)
	for _, l := range r.Page.Links {
		p.Links = append(p.Links, l.URL)
	}
	return p
}

// An Error is a URL that was not answered.
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
