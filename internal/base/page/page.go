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

// A Link is one reference found on a page, resolved and in canonical form.
type Link struct {
	URL  string // canonical and absolute; may be a substring of a larger string of its page: clone it to keep it
	Kind Kind
	Rel  string // the rel attribute or parameter as written, "" if there is none
	Lang string // the language of what it leads to: hreflang as written
	Text string // an anchor's text, white space collapsed; only if the parser was asked for it

	NoFollow, UGC, Sponsored bool // rel has the link type of that name

	Priority float32 // of an entry of a sitemap, from 0 to 1: 0.5 is that of one which says nothing
}

// A Response is one HTTP exchange as it went over the wire. The fetcher fills it and reuses its buffers, so it is valid
// until the next fetch into the same Response.
type Response struct {
	URL    string      // as requested
	Status int         // 0 when no status line came
	Proto  string      // "HTTP/1.0", "HTTP/1.1" or "HTTP/2.0"
	Header http.Header // nil when no head came

	RequestRaw []byte // the request's bytes, secrets redacted
	Raw        []byte // the answer's bytes: exact for HTTP/1, a head made from the fields and the body for HTTP/2
	HeadLen    int    // Raw[:HeadLen] is status line and header fields with the empty line; 0 when the head is incomplete
	Payload    []byte // the body without transfer coding (chunks removed), content coding kept; may alias Raw
	Body       []byte // the payload without content coding; filled by fetch.Decode, may alias Payload

	// reads the payload without content coding where Body is only its beginning; nil where it is all. fetch.Decode sets it
	FullBody func() io.Reader

	Spooled *Spooled // where Raw and Payload lie if they are too long to be held in memory; both are nil then

	Truncated Truncation // why Raw is not all that the server meant to send
	Malformed string     // what was wrong with the answer, "" if nothing

	Addr                                      netip.AddrPort // the server's (or the proxy's) address
	TLS                                       string         // "TLS 1.3", or "" without TLS
	Start                                     time.Time      // when the exchange began
	DNS, Connect, Handshake, FirstByte, Total time.Duration  // spent in each phase; FirstByte and Total count from Start

	Buffers Buffers // the fetcher's
}

// A Far is what of an answer lies on the disk. What its Free returns is not read any more.
type Spooled struct {
	Raw, Payload Spool
	Free         func()
}

// A Stretch is bytes that can be read piece by piece.
type Spool interface {
	io.ReaderAt
	Len() int64
}

// ConnectTime is how long it took until there was a connection: 0 where one was open.
func (r *Response) ConnectTime() time.Duration { return r.DNS + r.Connect + r.Handshake }

// ServerIP is the address of the server, or of the proxy; the zero Addr if it is not known.
func (r *Response) ServerIP() netip.Addr { return r.Addr.Addr().Unmap().WithZone("") }

// RawLen is the length of Raw, wherever it lies.
func (r *Response) RawLen() int64 {
	if r.Spooled != nil {
		return r.Spooled.Raw.Len()
	}
	return int64(len(r.Raw))
}

// PayloadLen is the length of Payload, wherever it lies.
func (r *Response) PayloadLen() int64 {
	if r.Spooled != nil {
		return r.Spooled.Payload.Len()
	}
	return int64(len(r.Payload))
}

// PayloadReader reads Payload, wherever it lies.
func (r *Response) PayloadReader() io.Reader {
	if r.Spooled != nil {
		return io.NewSectionReader(r.Spooled.Payload, 0, r.Spooled.Payload.Len())
	}
	return bytes.NewReader(r.Payload)
}

// Buffers are the room that a Response takes along from one fetch to the next. What it holds lies in them.
type Buffers struct {
	Raw, Request, Chunks, Body []byte
	Header                     http.Header

	Lent    int64    // bytes of the room that come from a budget
	Lender  Lender   // of whom they are; set if Lent is not 0
	Spooled *Spooled // of the Response
}

// A Lender has a budget.
type Lender interface{ Return(bytes int64) }

// What of a Response is kept for the next fetch.
const (
	maxBuffer = 128 << 10 // bytes of a buffer; few answers are longer
	maxFields = 100       // of a header
)

// Empty empties the buffers, and lets go of those that have become huge. What is lent goes back: buffers at rest are
// few.
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

// A Truncation is a reason in the words of WARC's WARC-Truncated field.
type Truncation string

// The reasons for which an answer ends early.
const (
	Whole      Truncation = ""
	Length     Truncation = "length"     // longer than the size limit
	Time       Truncation = "time"       // took longer than the time limit
	Disconnect Truncation = "disconnect" // the connection ended before the body did
)

// A Page is what a Response's body says.
type Page struct {
	Type    string // media type in lower case without parameters, as declared; "" if none
	Charset string // the charset that the text was read with (WHATWG name), "" for what is not text
	Lang    string // the language of its first sentences: ISO 639-1 or 639-3, "other"; "" for what is not text
	Title   string // collapsed white space, at most 1 KiB
	Heading string // the text of its first h1 that has one, as the title
	// what its meta element of that name says, as the title
	Description string
	Base        string // what links were resolved against
	Canonical   string // the page's own word for its canonical URL, "" if it has none
	Links       []Link // in the order found, each URL and kind once
	Variants    []Variant
	Dropped     int      // links left out: unusable, or beyond a limit
	MemoryCut   bool     // the parser had not the room for all: one that has more finds more
	LinksCut    LinksCut // why Links are only the first ones; "" if they are all

	Sniffed       string // media type by what the body begins with: "application/pdf" for a PDF served as text/html
	CharsetSource string // how the charset is known: "bom", "header", "meta", "detected" or "default"
	Refresh       string // where a refresh leads, in canonical form; "" if there is none
	RefreshAfter  int    // after how many seconds
	Robots        Robots
}

// LinksCut is the limit that left links of a page unread.
type LinksCut string

// The limits.
const (
	ByMemory  LinksCut = "memory"  // that a page's links may take
	ByEntries LinksCut = "entries" // of a sitemap or feed
	ByLength  LinksCut = "length"  // of a body, unpacked
)

// A Variant is the page in another language, or in its own, by its own word.
type Variant struct {
	Lang string `json:"lang"` // as written: "de-AT", "x-default"
	URL  string `json:"url"`  // in canonical form
}

// Robots is what a page asks of robots, in meta elements and X-Robots-Tag fields, all rules that hold for the crawl's
// agent taken together.
type Robots struct {
	Meta   string // the rules of meta elements as written, joined by ", "
	Header string // the rules of X-Robots-Tag fields as written, joined by ", ", agent names included

	NoIndex, NoFollow, NoArchive bool
	UnavailableAfter             time.Time // zero if the page does not say
}

// String is what the page asks, as written.
func (r *Robots) String() string {
	if r.Meta != "" && r.Header != "" {
		return r.Meta + "; " + r.Header
	}
	return r.Meta + r.Header
}

// Fields are a record that a rule has made of a page.
type Fields struct {
	Rule   string
	Values []byte // a JSON object
}

// A MainText is what a page is about, without what every page of its site has around it. "" is what the page does not
// say.
type MainText struct {
	Title, Headline, Author string
	Text                    string // paragraphs, each on a line
	Published               string // RFC 3339, or only the date
	Lang                    string // that the text is in, as far as it can be told, otherwise as the page declares it
}

// A Record is what is kept of one URL's visit. A visit that got no answer has a Failure and no Response.
type Record struct {
	URL   string
	Final string    // where a redirect points, otherwise URL
	From  string    // the page that named it, "" for a seed
	Seed  string    // the seed it descends from, "" if not known
	Path  string    // how it was reached: one letter a hop, see Kind.Hop
	Depth int       // hops of kind link from a seed
	Time  time.Time // when the visit began
	Took  time.Duration
	Tries int // how many visits it took, this one included

	Failure  Failure // why there is no answer; None if there is one
	Detail   string  // the failure in words
	Response *Response
	Page     *Page
	// of its URL when it was fetched, by the links that were found until then; 0 if the crawl's order goes by none
	Importance float64
	Text       *MainText // the page's main text, if the crawl was asked for texts and the page has one
	Fields     []Fields  // the records that rules have made of the page, if the crawl was given rules

	Robots  bool   // this is a host's robots.txt, fetched for its rules
	Digest  Digest // SHA-1 of Response.Payload
	Content uint64 // hash of the body without its content coding; 0 if it has and had none, or is not whole
	Revisit *Ref   // an earlier record with the same payload, nil if there is none
	// the URL of a page with nearly the same text, "" if none was met, or there is a Revisit
	NearDuplicate string
	Recrawl       Recrawl
	Location      Location // where its response lies; set by the WARC store

	NoIndex   bool // the page asks to be in no index, and the crawl obeys
	NoArchive bool // the page asks not to be archived, and the crawl obeys
}

// A Recrawl is what a visit found at a URL that was visited before.
type Recrawl string

// What it found.
const (
	First     Recrawl = "" // it was not
	Changed   Recrawl = "changed"
	Unchanged Recrawl = "unchanged" // the same body, whatever its coding, or the server says so (304)
	Gone      Recrawl = "gone"      // 404 or 410
	Trouble   Recrawl = "trouble"   // another error, or no answer: nothing was learnt of the page
)

// A Digest is a SHA-1.
type Digest [20]byte

// A Ref names an earlier record with the same payload.
type Ref struct {
	URL  string
	Time time.Time
	ID   string // its WARC-Record-ID
	// Chunked is the digest of the body with its chunks, which the record gives for the payload's; zero if it came
	// without.
	Chunked [20]byte
}

// A Place is where a record lies in the crawl's files.
type Location struct {
	File   string // base name of the closed file, "" if it was not stored
	Offset int64
	Length int64
	ID     string // WARC-Record-ID of the response
	// Chunked is the digest of the body with its chunks, which the record gives for the payload's; zero if it came
	// without.
	Chunked [20]byte
}

// A Skip says why a URL within reach was not fetched.
type Skip struct {
	URL   string
	Host  string
	From  string
	Depth int
	Time  time.Time
	Rule  string // which rule: "robots", "scope", "depth", "exclude", ...
	Why   string // the rule's own words: the robots line, the pattern, the error
}
