// Package parse reads what a response says: the title and the links of an HTML page, the links of its header fields, the
// charset its text is in.
//
// The idea is to read markup once, as it stands, and build nothing from it. A scanner goes from tag to tag by the rules of the
// HTML standard's tokenizer, as far as they decide where a tag begins and ends; of its tree construction only the part is kept
// that changes those rules, the border between HTML, SVG and MathML. Elements are judged alone, not by their place in the
// tree, so that a frame counts outside a frameset too. There is no scripting: noscript is markup.
//
// Two things may turn up late in a page and change what stands before them: the base URL and the charset. The reader then
// keeps what it learned and begins again; each of them can do so once at most.
package parse

import (
	"fmt"

	"kumo/internal/page"
	"kumo/internal/weburl"
)

// A Config bounds what is taken from a page. The zero value gives the defaults.
type Config struct {
	MaxLinks int // links a page; 10,000 by default
	MaxTitle int // bytes of a title; 1 KiB by default
}

// A Parser reads one page after the other and reuses its buffers. It serves one goroutine at a time.
type Parser struct {
	cfg   Config
	scan  scanner
	links outlinks
	text  text

	self      weburl.URL // the document's own URL
	base      weburl.URL // what links in its markup are resolved against
	based     bool       // a base element was seen
	charset   charset
	tentative bool   // a meta element may still change the charset
	wide      []byte // the body in UTF-8, where it could not be read as it is
	title     []byte // the first title's text as it stands in the markup
	titled    bool
}

// New returns a Parser with the limits in cfg.
func New(cfg Config) *Parser {
	if cfg.MaxLinks <= 0 {
		cfg.MaxLinks = 10_000
	}
	if cfg.MaxTitle <= 0 {
		cfg.MaxTitle = 1 << 10
	}
	return &Parser{cfg: cfg, links: outlinks{max: cfg.MaxLinks}}
}

// Parse fills pg with what resp says, reusing the room in pg.Links. All link URLs and rels of a page share one string.
//
// Only the body of an HTML page is read, and not that of a redirect, which nobody sees; of other responses the header fields
// are. It fails if resp.URL is not a URL, and has no complaint about anything else: there is no markup that is wrong.
func (p *Parser) Parse(resp *page.Response, pg *page.Page) error {
	contentType := resp.Header.Get("Content-Type")
	*pg = page.Page{Type: MediaType(contentType), Links: pg.Links[:0]}
	self, err := weburl.Parse(resp.URL)
	if err != nil {
		return fmt.Errorf("parsing the page: %w", err)
	}
	p.self, p.base, p.based = self, self, false
	p.links.reset()
	p.headers(resp)
	if !p.links.redirects && isHTML(pg.Type, resp.Body) {
		p.document(resp, contentType)
		pg.Charset = p.charset.name
		pg.Title = collapse(p.text.content(p.title), p.cfg.MaxTitle)
	}
	pg.Base = p.base.String()
	p.links.fill(pg)
	p.release()
	return nil
}

// document reads an HTML body, again as long as it learns something on the way that changes what it has read.
func (p *Parser) document(resp *page.Response, contentType string) {
	var body []byte
	p.charset, body, p.tentative = sniff(resp.Body, contentType)
	for {
		p.title, p.titled = nil, false
		p.scan.reset(p.decoded(body), MediaType(contentType) == xhtml)
		if again := p.markup(); !again {
			return
		}
		p.links.reset()
		p.headers(resp)
	}
}

// markup reads the document's elements. It reports whether to begin again.
func (p *Parser) markup() (again bool) {
	for p.scan.next() {
		p.text.reset()
		switch {
		case p.scan.space == inSVG:
			p.svgElement()
		case p.scan.space == inMath:
		case p.scan.tag == tagBase:
			again = p.baseElement()
		case p.scan.tag == tagMeta:
			again = p.metaElement()
		default:
			p.element()
		}
		if again {
			return true
		}
	}
	return false
}

// decoded returns the body as the scanner reads it: as it stands wherever markup can be told in it, otherwise in UTF-8.
func (p *Parser) decoded(body []byte) []byte {
	if p.charset.asciiBased() {
		p.text.open(p.charset, p.charset, body)
		return body
	}
	p.wide = p.charset.decode(p.wide[:0], body)
	p.text.open(p.charset, utf8Charset, p.wide)
	return p.wide
}

// maxKept is the room in bytes that a buffer may keep from one page to the next.
const maxKept = 1 << 20

// release lets go of the page's body and of buffers that an unusual page made large.
func (p *Parser) release() {
	p.scan.reset(nil, false)
	p.title = nil
	p.text.release()
	p.links.release()
	if cap(p.wide) > maxKept {
		p.wide = nil
	}
}
