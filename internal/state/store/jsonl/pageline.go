package jsonl

import (
	"net/netip"
	"strconv"
	"strings"
	"time"

	"kumo/internal/base/page"
)

// A PageLine is a line of pages.jsonl: the metadata of a page. kumo repair also creates such lines, the archive view of
// the web UI embeds PageLine, and exports embed its Visit.
type PageLine struct {
	URL            string         `json:"url"`
	Final          string         `json:"final,omitempty"` // the target of a redirect
	Status         int            `json:"status"`          // 0 without a response
	Time           time.Time      `json:"time"`
	Type           string         `json:"type,omitempty"` // as declared
	Charset        string         `json:"charset,omitempty"`
	Lang           string         `json:"lang,omitempty"`
	Title          string         `json:"title,omitempty"`
	H1             string         `json:"h1,omitempty"`          // the first h1 with text
	Description    string         `json:"description,omitempty"` // the meta element, as written
	Canonical      string         `json:"canonical,omitempty"`   // the canonical URL that the page declares, as written
	HrefLang       []page.Variant `json:"hreflang,omitempty"`    // the page in other languages
	Bytes          int64          `json:"bytes"`                 // of the payload
	Digest         string         `json:"digest,omitempty"`      // sha1:BASE32
	Depth          int            `json:"depth"`
	Links          int            `json:"links"`                     // number of links
	WARC           string         `json:"warc,omitempty"`            // name of the file in the folder warc
	Offset         int64          `json:"offset"`                    // offset of the record in the file
	Importance     float64        `json:"importance,omitempty"`      // of the URL when it was fetched
	Sniffed        string         `json:"sniffed,omitempty"`         // detected media type, if different from Type
	Truncated      string         `json:"truncated,omitempty"`       // the reason
	Malformed      string         `json:"malformed,omitempty"`       // the reason
	LinksCut       string         `json:"links_cut,omitempty"`       // the limit that left links unread: memory, entries or length
	RenderRequests int            `json:"render_requests,omitempty"` // answered requests of the page, without that for itself
	RenderSeconds  float64        `json:"render_seconds,omitempty"`
	Screenshots    []Screenshot   `json:"screenshots,omitempty"`
	Document       *page.Document `json:"document,omitempty"` // of a PDF, an office document, an e-book or an image
	Revisit        string         `json:"revisit,omitempty"`  // earlier URL with the same payload
	Recrawl        string         `json:"recrawl,omitempty"`  // result of the visit, if the URL was visited before
	Robots         string         `json:"robots,omitempty"`   // the page's directives for robots, as written
	// the page has the directive noindex, and the crawl obeys it
	NoIndex bool `json:"noindex,omitempty"`
	// the page has the directive noarchive, and the crawl obeys it
	NoArchive bool `json:"noarchive,omitempty"`
	Visit

	sum     *page.Digest // replaces Digest while the line is written
	content uint64       // replaces ContentDigest while the line is written
}

// A Visit has the members of a line that exports take from it, because the WARC record does not have them.
type Visit struct {
	From          string `json:"from,omitempty"`              // the page that links to the URL
	NearDuplicate string `json:"near_duplicate_of,omitempty"` // the URL of a page with nearly the same text
	// xxh64:HEX of the body without content coding (gzip, br, ...), if it has one: servers that compress each answer
	// anew change the digest of the same page
	ContentDigest string `json:"content_digest,omitempty"`
	// milliseconds to establish the connection (DNS, TCP, TLS); 0 if it was open
	ConnectMS int64 `json:"connect_ms"`
	// milliseconds from the start of the request to the first byte, and to the end of the response
	FirstByteMS int64 `json:"first_byte_ms"`
	TotalMS     int64 `json:"total_ms"`
	// address of the server or proxy; the zero Addr if unknown
	ServerIP netip.Addr `json:"server_ip,omitzero"`
	// the sign by which it is known that the page shows nothing without script: root, noscript, empty or redirect
	NeedsScript string `json:"needs_script,omitempty"`
	// a browser has run the page's scripts; pages.jsonl describes the page after them
	Rendered bool `json:"rendered,omitempty"`
	// the usage preferences of the page when it was fetched; nil if it had none
	Usage *page.Usage `json:"usage,omitempty"`
	// the use that the site does not allow, for which the crawl made no text, fields, index or sink record
	Withheld string `json:"withheld,omitempty"`
}

// A Screenshot is a picture of a rendered page, or its print, in the WARC record urn:KIND:URL.
type Screenshot struct {
	Kind  page.ShotKind `json:"kind"` // view, fullPage, thumbnail or pdf
	Bytes int64         `json:"bytes"`
}

// ParseScreenshots parses the field of a metadata record: "view=4711 pdf=815".
func ParseScreenshots(text string) (all []Screenshot) {
	for one := range strings.FieldsSeq(text) {
		kind, length, _ := strings.Cut(one, "=")
		if n, err := strconv.ParseInt(length, 10, 64); err == nil {
			all = append(all, Screenshot{page.ShotKind(kind), n})
		}
	}
	return all
}

// set sets p from a record. p refers to the record's memory until the next call.
func (p *PageLine) set(rec *page.Record) {
	res, read := rec.Response, rec.Page
	if read == nil {
		read = &page.Page{}
	}
	*p = PageLine{URL: rec.URL, Final: rec.Final, Status: res.Status, Time: rec.Time, Type: read.Type,
		Charset: read.Charset, Lang: read.Lang, Title: read.Title, H1: read.Heading, Description: read.Description,
		Canonical: read.Canonical, HrefLang: read.Variants, Bytes: res.PayloadLen(), Depth: rec.Depth,
		Links: len(read.Links), WARC: rec.Location.File, Offset: rec.Location.Offset, Importance: rec.Importance,
		Truncated: string(res.Truncated), Malformed: res.Malformed, LinksCut: string(read.LinksCut),
		Recrawl: string(rec.Recrawl), Robots: read.Robots.String(), sum: &rec.Digest, content: rec.Content,
		Visit: Visit{From: rec.From, NearDuplicate: rec.NearDuplicate, ConnectMS: res.ConnectTime().Milliseconds(),
			FirstByteMS: res.FirstByte.Milliseconds(), TotalMS: res.Total.Milliseconds(), ServerIP: res.ServerIP(),
			NeedsScript: string(read.NeedsScript), Usage: rec.Usage, Withheld: rec.Withheld}}
	if read.Sniffed != read.Type {
		p.Sniffed = read.Sniffed
	}
	if r := rec.Rendering; r != nil {
		p.Rendered, p.RenderRequests, p.RenderSeconds = true, r.Requests, r.Took.Seconds()
		for _, s := range r.Shots {
			p.Screenshots = append(p.Screenshots, Screenshot{s.Kind, int64(len(s.Data))})
		}
	}
	p.Document = rec.Document
	if rec.Revisit != nil {
		p.Revisit = rec.Revisit.URL
	}
	if rec.Page != nil {
		p.NoIndex, p.NoArchive = rec.NoIndex, rec.NoArchive
	}
}

// Append appends the line and a line feed.
func (p *PageLine) Append(b []byte) []byte {
	l := object{b: b, begin: len(b)}
	l.text("url", p.URL)
	l.text("final", p.Final)
	l.number("status", int64(p.Status))
	l.time("time", p.Time)
	l.text("type", p.Type)
	l.text("charset", p.Charset)
	l.text("lang", p.Lang)
	l.text("title", p.Title)
	l.number("bytes", p.Bytes)
	if p.sum != nil {
		l.digest("digest", *p.sum)
	} else {
		l.text("digest", p.Digest)
	}
	if p.content != 0 {
		l.hash("content_digest", p.content)
	} else {
		l.optional("content_digest", p.ContentDigest)
	}
	l.number("depth", int64(p.Depth))
	l.text("from", p.From)
	l.number("links", int64(p.Links))
	l.number("connect_ms", p.ConnectMS)
	l.number("first_byte_ms", p.FirstByteMS)
	l.number("total_ms", p.TotalMS)
	if p.WARC != "" {
		l.text("warc", p.WARC)
		l.number("offset", p.Offset)
	}
	l.optional("h1", p.H1)
	l.optional("description", p.Description)
	l.optional("canonical", p.Canonical)
	l.variants("hreflang", p.HrefLang)
	if p.Importance > 0 {
		l.key("importance")
		l.b = strconv.AppendFloat(l.b, p.Importance, 'g', 5, 64)
	}
	l.optional("sniffed", p.Sniffed)
	l.optional("truncated", p.Truncated)
	l.optional("malformed", p.Malformed)
	l.optional("links_cut", p.LinksCut)
	l.optional("needs_script", p.NeedsScript)
	if p.Rendered {
		l.flag("rendered", true)
		l.number("render_requests", int64(p.RenderRequests))
		l.key("render_seconds")
		l.b = strconv.AppendFloat(l.b, p.RenderSeconds, 'f', 3, 64)
		l.screenshots("screenshots", p.Screenshots)
	}
	if p.Document != nil {
		l.json("document", p.Document)
	}
	l.optional("revisit", p.Revisit)
	l.optional("near_duplicate_of", p.NearDuplicate)
	l.optional("recrawl", p.Recrawl)
	l.optional("robots", p.Robots)
	l.flag("noindex", p.NoIndex)
	l.flag("noarchive", p.NoArchive)
	if p.Usage != nil {
		l.key("usage")
		l.b = append(l.b, p.Usage.JSON()...)
	}
	l.optional("withheld", p.Withheld)
	l.addr("server_ip", p.ServerIP)
	return l.end()
}
