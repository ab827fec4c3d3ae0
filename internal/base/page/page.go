// Package page defines the plain data types that flow through a crawl.
//
// A [Link] leads to a [Response], a Response is parsed into a [Page], and a [Record] is the stored form of both. Any
// package can use these types without importing the packages that produce them.
package page

import (
	"bytes"
	"io"
	"net/http"
	"net/netip"
	"time"
)

// A Link is a link found on a page, resolved and in canonical form.
type Link struct {
	URL  string // canonical and absolute; may be a substring of a larger string of the page: clone it to keep it
	Kind Kind
	Rel  string // the rel attribute or parameter as written; "" without
	Lang string // the language of the target: hreflang as written
	Text string // an anchor's text, white space collapsed; only if the parser was configured to keep it

	NoFollow, UGC, Sponsored bool // rel contains the link type of that name

	Priority float32 // of a sitemap entry, 0 to 1; default 0.5
}

// A Response is one HTTP exchange as sent over the wire. The fetcher fills it and reuses its buffers, so it is valid
// until the next fetch into the same Response.
type Response struct {
	URL    string      // as requested
	Status int         // 0 without a status line
	Proto  string      // "HTTP/1.0", "HTTP/1.1" or "HTTP/2.0"
	Header http.Header // nil without a response head

	RequestRaw []byte // the bytes of the request, secrets redacted
	// the bytes of the response: exact for HTTP/1; for HTTP/2 a head built from the fields, and the body
	Raw     []byte
	HeadLen int    // Raw[:HeadLen] is the status line and header with the empty line; 0 if the head is incomplete
	Payload []byte // the body without transfer coding (chunks removed), with content coding; may alias Raw
	Body    []byte // the payload without content coding; filled by fetch.Decode, may alias Payload

	// returns a reader of the body without content coding if Body is only its beginning; otherwise nil. Set by
	// fetch.Decode
	FullBody func() io.Reader

	Spooled *Spooled // Raw and Payload, if they are too long for memory; both are nil then

	// Main is the main text of a response that is the HTML form of a document; nil for all others, from which a main text
	// must be extracted
	Main *MainText

	Truncated Truncation // why Raw is incomplete
	Malformed string     // the defect of the response; "" if none

	Addr  netip.AddrPort // address of the server, or of the proxy
	TLS   string         // "TLS 1.3"; "" without TLS
	Start time.Time      // start of the exchange
	// duration of each phase; FirstByte and Total count from Start
	DNS, Connect, Handshake, FirstByte, Total time.Duration

	Buffers Buffers // owned by the fetcher
}

// Spooled is the part of a response that is stored on disk. It must not be read after Free.
type Spooled struct {
	Raw, Payload Spool
	Free         func()
}

// A Spool is a sequence of bytes that can be read in pieces.
type Spool interface {
	io.ReaderAt
	Len() int64
}

// Rendered returns a response with the document of a rendered page, to be parsed like r. It has no wire bytes.
func (r *Response) Rendered(document []byte) *Response {
	h := r.Header.Clone()
	if h == nil {
		h = http.Header{}
	}
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Del("Content-Encoding")
	return &Response{URL: r.URL, Status: r.Status, Proto: r.Proto, Header: h, Payload: document, Body: document,
		Start: r.Start}
}

// ConnectTime returns the time to establish the connection; 0 if it was open.
func (r *Response) ConnectTime() time.Duration { return r.DNS + r.Connect + r.Handshake }

// ServerIP returns the address of the server or proxy; the zero Addr if unknown.
func (r *Response) ServerIP() netip.Addr { return r.Addr.Addr().Unmap().WithZone("") }

// RawLen returns the length of Raw, in memory or on disk.
func (r *Response) RawLen() int64 {
	if r.Spooled != nil {
		return r.Spooled.Raw.Len()
	}
	return int64(len(r.Raw))
}

// PayloadLen returns the length of Payload, in memory or on disk.
func (r *Response) PayloadLen() int64 {
	if r.Spooled != nil {
		return r.Spooled.Payload.Len()
	}
	return int64(len(r.Payload))
}

// PayloadReader returns a reader of Payload, in memory or on disk.
func (r *Response) PayloadReader() io.Reader {
	if r.Spooled != nil {
		return io.NewSectionReader(r.Spooled.Payload, 0, r.Spooled.Payload.Len())
	}
	return bytes.NewReader(r.Payload)
}

// Buffers holds the memory of a Response, reused by later fetches.
type Buffers struct {
	Raw, Request, Chunks, Body []byte
	Header                     http.Header

	Lent    int64    // bytes that count against the budget of Lender
	Lender  Lender   // set if Lent is not 0
	Spooled *Spooled // the Response's
}

// A Lender accounts for lent memory.
type Lender interface{ Return(bytes int64) }

// Limits of the memory that is kept for the next fetch.
const (
	maxBuffer = 128 << 10 // bytes of a buffer; few responses are longer
	maxFields = 100       // fields of a header
)

// Empty empties the buffers, frees those that have become huge, and returns lent memory.
func (b *Buffers) Empty() {
	if b.Spooled != nil {
		b.Spooled.Free()
		b.Spooled = nil
	}
	if b.Lent > 0 {
		b.Lender.Return(b.Lent)
		b.Lent = 0
	}
	for _, room := range []*[]byte{&b.Raw, &b.Request, &b.Chunks, &b.Body} {
		if *room = (*room)[:0]; cap(*room) > maxBuffer {
			*room = nil
		}
	}
	if len(b.Header) > maxFields {
		b.Header = nil
	}
	clear(b.Header)
}

// A Truncation is a reason as in WARC's WARC-Truncated field.
type Truncation string

// The reasons for truncated responses.
const (
	Whole      Truncation = ""
	Length     Truncation = "length"     // longer than the size limit
	Time       Truncation = "time"       // took longer than the time limit
	Disconnect Truncation = "disconnect" // the connection ended before the body
)

// A Page is the parsed content of a Response's body.
type Page struct {
	Type    string // declared media type in lower case, without parameters; "" if none
	Charset string // the charset used to decode the text (WHATWG name); "" if it is not text
	Lang    string // the language of the first sentences: ISO 639-1 or 639-3, or "other"; "" if it is not text
	Title   string // white space collapsed, at most 1 KiB
	Heading string // the first h1 with text, normalized like the title
	// the description meta element, normalized like the title
	Description string
	Base        string // the URL against which links were resolved
	Canonical   string // the canonical URL that the page declares; "" if none
	Links       []Link // in the order found; each URL and kind once
	Variants    []Variant
	Dropped     int      // number of links dropped: unusable, or beyond a limit
	MemoryCut   bool     // the parser ran out of memory; with more memory it would find more
	LinksCut    LinksCut // why Links is incomplete; "" if it is complete

	Sniffed       string // media type detected from the body: "application/pdf" for a PDF served as text/html
	CharsetSource string // source of the charset: "bom", "header", "meta", "detected" or "default"
	Refresh       string // canonical target of a refresh; "" if none
	RefreshAfter  int    // delay of the refresh in seconds
	Robots        Robots
	TDM           TDM
	NeedsScript   ScriptNeed // why the page shows nothing without script; "" if it is not known to
}

// ScriptNeed is the sign by which a page was recognized that shows nothing without script.
type ScriptNeed string

// The signs.
const (
	NoScriptNeeded ScriptNeed = ""
	ScriptRoot     ScriptNeed = "root"     // an element into which a framework renders
	ScriptPlea     ScriptNeed = "noscript" // the page asks to enable JavaScript
	ScriptAlone    ScriptNeed = "empty"    // there are scripts, and hardly any text
	ScriptLeaves   ScriptNeed = "redirect" // a script loads another page
)

// LinksCut is the limit that caused links of a page to be dropped.
type LinksCut string

// The limits.
const (
	ByMemory  LinksCut = "memory"  // memory for a page's links
	ByEntries LinksCut = "entries" // entries of a sitemap or feed
	ByLength  LinksCut = "length"  // length of a body, decompressed
)

// A Variant is a version of the page in some language, as the page declares it.
type Variant struct {
	Lang string `json:"lang"` // as written: "de-AT", "x-default"
	URL  string `json:"url"`  // canonical
}

// Robots holds a page's directives for robots, from meta elements and X-Robots-Tag fields. All rules that apply to the
// crawl's agent are combined.
type Robots struct {
	Meta   string // the rules of meta elements as written, joined by ", "
	Header string // the rules of X-Robots-Tag fields as written, joined by ", ", with agent names

	NoIndex, NoFollow, NoArchive bool
	NoAI, NoImageAI              Places    // where the page has the directives noai and noimageai
	UnavailableAfter             time.Time // zero if not specified
}

// String returns the directives as written.
func (r *Robots) String() string {
	if r.Meta != "" && r.Header != "" {
		return r.Meta + "; " + r.Header
	}
	return r.Meta + r.Header
}

// Fields is a record that a rule extracted from a page.
type Fields struct {
	Rule   string
	Values []byte // a JSON object
}

// A FieldRule describes the records that a rule for fields can extract from a page.
type FieldRule struct {
	Name   string
	Each   bool     // any number of records, instead of at most one
	Fields []string // names of the fields, in the order of the rule
}

// A MainText is the main content of a page, without the boilerplate of its site. Missing fields are "".
type MainText struct {
	Title, Headline, Author string
	Text                    string // paragraphs, separated by line feeds
	Published               string // RFC 3339, or a date only
	Lang                    string // the language detected in the text; if detection fails, the declared language
	Kind                    string // of page: article, forum, product, listing, documentation, service or other
	Comments                string // of readers or customers; not part of Text
}

// A Record is the result of one visit. A visit without a response has a Failure and no Response.
type Record struct {
	URL   string
	Final string    // target of a redirect, otherwise URL
	From  string    // the page that links to it; "" for a seed
	Seed  string    // the seed it descends from; "" if unknown
	Path  string    // discovery path: one letter per hop, see Kind.Hop
	Depth int       // hops of kind link from a seed
	Time  time.Time // start of the visit
	Took  time.Duration
	Tries int // number of visits, including this one

	Failure  Failure // why there is no response; None if there is one
	Detail   string  // the failure as text
	Response *Response
	Page     *Page
	// importance of the URL when it was fetched, computed from the links known then; 0 if the crawl does not use
	// importance
	Importance float64
	Text       *MainText // the main text, if the crawl extracts texts and the page has one
	Fields     []Fields  // records that the crawl's rules extracted from the page

	// the page after its scripts, from which Page, Text and Fields were read; nil if it was not rendered
	Rendering *Rendering

	// metadata of a PDF, an office document, an e-book or an image; nil for other types, and if the crawl does not read
	// documents
	Document *Document
	// the HTML form of a document, from which Page, Text and Fields were read; nil for other pages
	Shown *Response

	Robots bool   // a robots.txt or tdmrep.json, fetched for its rules
	Helper bool   // a resource that a rendered page requested; it is no page of the crawl
	Digest Digest // SHA-1 of Response.Payload
	// hash of the body without content coding; 0 if it has no such coding, now or before, or is incomplete
	Content uint64
	Revisit *Ref // an earlier record with the same payload; nil if none
	// URL of a page with nearly the same text; "" if there is none, if Revisit is set, or if texts are not compared
	NearDuplicate string
	Recrawl       Recrawl
	Location      Location // where the response is stored; set by the WARC store

	Phases Phases // of the visit; not stored

	NoIndex   bool // the page has the directive noindex, and the crawl obeys it
	NoArchive bool // the page has the directive noarchive, and the crawl obeys it

	Usage *Usage // what the site has stated about the use of the page; nil if nothing, or if the page was not read
	// the use that the site does not allow, for which the crawl makes no text, fields, index or sink record; "" if none
	Withheld string
}

// A Document is the metadata of a PDF, an office document, an e-book or an image. Its title is that of the Page.
type Document struct {
	Type        string            `json:"type"`                // pdf, docx, pptx, xlsx, odt, ods, odp, epub, jpeg, ...
	Pages       int               `json:"pages,omitempty"`     // pages, slides, sheets or chapters
	Author      string            `json:"author,omitempty"`    // several are joined by ", "
	Published   string            `json:"published,omitempty"` // RFC 3339, or a date only
	Modified    string            `json:"modified,omitempty"`
	Rights      string            `json:"rights,omitempty"`      // copyright or licence, as stated
	Attachments []string          `json:"attachments,omitempty"` // names of embedded files
	Properties  map[string]string `json:"properties,omitempty"`  // such as an image's width and camera
	// why its text is missing or incomplete: encrypted, no-text, cut, broken, too-large, timeout, crashed or unsupported
	WhyNot string `json:"why_not,omitempty"`
	Detail string `json:"detail,omitempty"` // WhyNot in words
}

// A Rendering is a page as a browser shows it, after its scripts.
type Rendering struct {
	HTML     []byte // the document, in UTF-8
	Requests int    // answered requests of the page, without that for itself
	Blocked  int    // requests that the crawl's rules forbid, or that a crawl does not make, such as POST
	Failed   int
	Complete bool // false: its time was over while it still made requests
	Took     time.Duration
	Shots    []Shot
}

// A Shot is a picture or a print of a rendered page.
type Shot struct {
	Kind ShotKind
	Data []byte
}

// ShotKind is what a Shot shows. Its value is the name in the URN of the Shot's record, as Browsertrix writes it.
type ShotKind string

// The kinds.
const (
	ShotView  ShotKind = "view"      // the window; PNG
	ShotFull  ShotKind = "fullPage"  // the page from its top; PNG
	ShotThumb ShotKind = "thumbnail" // the window, smaller; JPEG
	ShotPDF   ShotKind = "pdf"       // the page as it is printed
)

// MediaType returns the type of a Shot's data.
func (k ShotKind) MediaType() string {
	switch k {
	case ShotThumb:
		return "image/jpeg"
	case ShotPDF:
		return "application/pdf"
	}
	return "image/png"
}

// Phases are the times of a visit's steps after its exchange. They are zero for steps that did not take place.
type Phases struct {
	Arrived, Parsed time.Time // start and end of parsing and of judging the links
	Storing, Stored time.Time // start and end of handing the record to the stores and the journal
}

// A Recrawl is the result of revisiting a URL.
type Recrawl string

// The results of a visit.
const (
	First     Recrawl = "" // the URL was not visited before
	Changed   Recrawl = "changed"
	Unchanged Recrawl = "unchanged" // the same body, ignoring its coding, or a 304 response
	Gone      Recrawl = "gone"      // 404 or 410
	Trouble   Recrawl = "trouble"   // another error or no response: the state of the page is unknown
)

// A Digest is a SHA-1.
type Digest [20]byte

// A Ref identifies an earlier record with the same payload.
type Ref struct {
	URL  string
	Time time.Time
	ID   string // WARC-Record-ID
	// Chunked is the digest of the body with its chunks, which the WARC record has as its payload digest; zero if the
	// body was not chunked.
	Chunked [20]byte
}

// A Location is the position of a record in the crawl's files.
type Location struct {
	File   string // base name of the closed file; "" if not stored
	Offset int64
	Length int64
	ID     string // WARC-Record-ID of the response
	// Chunked is the digest of the body with its chunks, which the WARC record has as its payload digest; zero if the
	// body was not chunked.
	Chunked [20]byte
}

// A Skip records why a URL in scope was not fetched.
type Skip struct {
	URL   string
	Host  string
	From  string
	Depth int
	Time  time.Time
	Rule  string // the kind of rule: "robots", "scope", "depth", "exclude", ...
	Why   string // the rule itself: the robots.txt line, the pattern, the error
}
