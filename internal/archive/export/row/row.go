// Package row computes the columns that exported tables and conditions have for each URL.
//
//	url                                    the URL
//	host                                   its host with the port
//	status                                 the HTTP status
//	time                                   the time of the visit
//	type                                   the declared media type
//	bytes                                  the size of the body after content decoding
//	digest                                 "sha1:BASE32", of the body as stored in its record
//	content_digest                         "xxh64:HEX", of the body without content coding, if it has one
//	depth                                  hops from a seed
//	redirect                               the target of a redirect
//	truncated                              the reason why the answer is incomplete
//	from                                   the page that linked to the URL
//	near_duplicate_of                      a page with nearly the same text
//	connect_ms, first_byte_ms, total_ms    the timings, as in pages.jsonl
//	needs_script                           why the page shows nothing without script
//	rendered                               whether a browser has run its scripts
//	usage.train_ai, usage.search, usage.ai_input, usage.tdm
//	                                       whether a use is allowed: "y" or "n", "" if nothing is stated
//	usage.policy, usage.license            URLs of a policy for text and data mining and of a license
//	withheld                               the use that was not allowed, for which the crawl has no text of the page
//	usage.source, usage.raw                the places of these statements, and the statements as written
//	robots                                 the page's robots directives, as written
//
// Pages that can be read also have these columns. Those of a rendered page are read from the document after its
// scripts.
//
//	charset, lang, title, h1, description, canonical
//	hreflang                               the page in other languages
//	noindex                                whether the page asks not to be indexed
//	links                                  the number of links
//
// Values that do not apply are "".
package row

import (
	"errors"
	"strings"
	"time"
	"unicode"

	"kumo/internal/archive/export"
	"kumo/internal/archive/export/captures"
	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/content/maintext"
	"kumo/internal/content/parse"
	"kumo/internal/content/usage"
)

// A Row has the columns of a URL.
type Row struct {
	URL         string    `json:"url"`
	Status      int       `json:"status"`
	Time        time.Time `json:"time"`
	Type        string    `json:"type,omitempty"`
	Charset     string    `json:"charset,omitempty" in:"record"`
	Lang        string    `json:"lang,omitempty" in:"record"`
	Title       string    `json:"title,omitempty" in:"record"`
	H1          string    `json:"h1,omitempty" in:"record"`
	Description string    `json:"description,omitempty" in:"record"`
	Canonical   string    `json:"canonical,omitempty" in:"record"`
	Bytes       int       `json:"bytes" in:"record"`
	Digest      string    `json:"digest"`
	Links       int       `json:"links,omitempty" in:"record"`
	Redirect    string    `json:"redirect,omitempty" in:"record"`
	Truncated   string    `json:"truncated,omitempty" in:"record"`
	Host        string    `json:"host"`
	Depth       int       `json:"depth"` // -1 if unknown
	NoIndex     bool      `json:"noindex,omitempty" in:"record"`

	*captures.Visit           // nil if pages.jsonl has no line
	Robots          string    `json:"robots,omitempty" in:"record"`
	HrefLang        []Variant `json:"hreflang,omitempty" in:"record"`

	Unreadable error `json:"-"` // set if the record could not be read; other columns that need it are then empty
}

// A Variant is the page in another language.
type Variant = page.Variant

// FromCapture returns the columns that are known without reading the record: url, host, status, time, type, digest,
// depth and those from pages.jsonl.
func FromCapture(c *captures.Capture) Row {
	r := Row{
		URL:    c.URL,
		Host:   item.HostOf(c.URL),
		Status: c.Status,
		Time:   c.Time.UTC(),
		Type:   clean(c.Type),
		Digest: c.Digest,
		Depth:  c.Depth,
	}
	if v := c.Visit; v != nil {
		visit := *v
		visit.From, visit.NearDuplicate = clean(v.From), clean(v.NearDuplicate)
		visit.ContentDigest = clean(v.ContentDigest)
		visit.NeedsScript = clean(v.NeedsScript)
		visit.Withheld = clean(v.Withheld)
		if v.Usage != nil {
			usage := *v.Usage
			usage.Policy, usage.License, usage.Raw = clean(usage.Policy), clean(usage.License), clean(usage.Raw)
			visit.Usage = &usage
		}
		r.Visit = &visit
	}
	return r
}

// A Reader builds rows. It is not safe for concurrent use.
type Reader struct {
	parser *parse.Parser
	// Page and Answer are those of the last page, if it could be read. They are valid until the next. Page is parsed from
	// the answer's Shown response.
	Page   page.Page
	Answer *captures.Answer
}

// NewReader returns a reader. If anchors is set, links have their anchor text.
func NewReader(anchors bool) *Reader {
	return &Reader{parser: parse.New(parse.Config{Language: true, AnchorText: anchors})}
}

// Read returns the row of a page.
func (r *Reader) Read(p *export.Page) (*Row, error) {
	row := FromCapture(p.Capture)
	r.Page, r.Answer = page.Page{Links: r.Page.Links[:0]}, nil
	answer, err := p.ReadAnswer()
	if export.IsUnreadable(err) {
		row.Unreadable = err
		return &row, nil
	}
	if err != nil {
		return nil, err
	}
	r.Answer = answer
	row.Bytes, row.Truncated = len(answer.Body), string(answer.Truncated)
	if to := answer.Header.Get("Location"); to != "" && captures.Redirects(p.Status) {
		row.Redirect = clean(resolve(p.URL, to))
	}
	if err := r.parser.Parse(answer.Shown, &r.Page); err == nil || len(r.Page.Links) > 0 { // a partial parse suffices
		pg := &r.Page
		row.Charset, row.Lang, row.Title, row.H1 = pg.Charset, pg.Lang, clean(pg.Title), clean(pg.Heading)
		row.Description, row.Canonical, row.Links = clean(pg.Description), clean(pg.Canonical), len(pg.Links)
		row.NoIndex, row.Robots = pg.Robots.NoIndex, clean(pg.Robots.String())
		for _, v := range pg.Variants {
			row.HrefLang = append(row.HrefLang, Variant{Lang: clean(v.Lang), URL: clean(v.URL)})
		}
	}
	if answer.Document != nil {
		row.Charset = "" // as in pages.jsonl
	}
	return &row, nil
}

// HTML reports whether the last page is HTML, by its declared or detected type, or a document that was read.
func (r *Reader) HTML() bool { return r.Answer != nil && parse.IsHTML(r.Page.Sniffed) }

// maxText is the number of bytes of a page that are read for its main text.
const maxText = 16 << 20

// UTF8 returns the body of the last page as UTF-8 HTML, up to the limit for main texts.
func (r *Reader) UTF8() []byte {
	body := r.Answer.Shown.Body
	return parse.UTF8(body[:min(len(body), maxText)], r.Page.Charset)
}

// Text returns the main text of p, which must be the last page read; nil if it has none, or if the crawl withholds it.
// It reuses a text that the
// crawl extracted from the same bytes, because extraction takes ten times as long as everything else.
func (r *Reader) Text(p *export.Page) (*page.MainText, error) {
	if !r.HTML() || p.Visit != nil && p.Visit.Withheld != "" {
		return nil, nil
	}
	if made, err := p.Text(r.Answer, r.Page.Charset); made != nil || err != nil {
		return made, err
	}
	if main := r.Answer.Shown.Main; main != nil {
		if main.Text == "" {
			return nil, nil
		}
		return main, nil
	}
	t, err := maintext.Extract(r.UTF8(), r.Answer.URL)
	if err != nil && !errors.Is(err, maintext.ErrTooLarge) || t.Text == "" {
		return nil, nil //nolint:nilerr // a page that a library panics on has no text
	}
	return &page.MainText{Title: t.Title, Headline: t.Headline, Author: t.Author, Text: t.Text, Published: t.Published,
		Lang: t.Language(), Kind: t.Kind, Comments: t.Comments}, nil
}

// clean returns a text as valid UTF-8 without control characters.
func clean(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if strings.IndexFunc(s, unicode.IsControl) < 0 {
		return s
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}

func resolve(url, ref string) string {
	base, err := weburl.Parse(url)
	if err != nil {
		return ref
	}
	to, err := base.Resolve(ref)
	if err != nil {
		return ref
	}
	return to.String()
}

// IsRobotsTxt reports whether a URL is a host's robots.txt or tdmrep.json, which are not exported as pages.
func IsRobotsTxt(url string) bool {
	if !strings.HasSuffix(url, "/robots.txt") && !strings.HasSuffix(url, usage.TDMRepPath) {
		return false
	}
	u, err := weburl.Parse(url)
	return err == nil && (u.Path() == "/robots.txt" || u.Path() == usage.TDMRepPath)
}
