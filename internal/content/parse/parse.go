// Package parse extracts the title, the links and the charset of a response from its markup and its header fields.
//
// A scanner reads the markup once, from tag to tag, and builds no tree. It applies the rules of the HTML standard's
// tokenizer as far as they decide where a tag begins and ends. Of tree construction it applies only the part that
// changes those rules: the borders between HTML, SVG and MathML. It judges each element alone and not by its position
// in the tree, so a frame counts outside of a frameset, too. There is no scripting: noscript is parsed as markup.
//
// Two declarations may come late in a page and change the meaning of the text before them: the base URL and the
// charset. The parser then stores the declaration and restarts. Each of the two causes at most one restart.
package parse

import (
	"fmt"
	"slices"

	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
)

// A Config bounds what is taken from a page. The zero value gives the defaults.
type Config struct {
	MaxLinks  int // links a page; 100,000 by default
	MaxURLs   int // bytes of a page's link URLs together; 16 MiB by default
	MaxListed int // entries of a list; 50,000 by default, as many as a sitemap may have
	// bytes that are read of a body whose charset has to be changed to read its markup, as UTF-16 has; all by default
	MaxConverted int
	MaxTitle     int    // bytes of a title; 1 KiB by default
	Agent        string // the crawl's name in rules for robots ("kumo"), besides "robots", which is every crawl's
	AnchorText   bool   // keep the text of anchors
	Scripts      bool   // take what looks like a path in scripts for a link
	PlainText    bool   // take URLs in plain text for links
	Language     bool   // tell the language of HTML pages and plain text
}

// A Parser reads one page after the other and reuses its buffers. It serves one goroutine at a time.
type Parser struct {
	cfg Config
	extractor

	self weburl.URL // the page's own URL
	says struct {
		robots  robots
		refresh refresh
	}
	converted []byte // the body in UTF-8, where it could not be read as it is
	title     []byte // the first title's text as it stands in the markup
	titled    bool

	heading     heading
	description string

	first lead
}

// An extractor takes the links of elements, styles and scripts, in the document that is read.
type extractor struct {
	document
	text        text
	links       outlinks
	onReference func(url []byte) // takes the references instead of links, if it is not nil
}

// A document is how far an HTML document is read: that of the page, or one in an iframe's srcdoc.
type document struct {
	scan     scanner
	depth    int        // how many documents are around it
	fallback weburl.URL // its base URL if it does not say
	base     weburl.URL // what links in its markup are resolved against
	hasBase  bool       // a base element was seen

	charset   charset
	how       string
	tentative bool // a meta element may still change the charset

	form form
	// the open anchor: its link's number, 0 if there is none, and where its content begins
	anchored struct{ link, start int }
}

// New returns a Parser with the limits in cfg.
func New(cfg Config) *Parser {
	if cfg.MaxLinks <= 0 {
		cfg.MaxLinks = 100_000
	}
	if cfg.MaxTitle <= 0 {
		cfg.MaxTitle = 1 << 10
	}
	if cfg.MaxURLs <= 0 {
		cfg.MaxURLs = 16 << 20
	}
	if cfg.MaxListed <= 0 {
		cfg.MaxListed = 50_000
	}
	return &Parser{cfg: cfg, extractor: extractor{links: outlinks{max: cfg.MaxLinks, maxText: cfg.MaxURLs}}}
}

// Parse fills pg with what resp says, reusing the room in pg.Links. All link URLs and rels of a page share one string.
//
// The body of an HTML page, a style sheet or a list for machines (sitemap, feed) is read, and those of plain text and
// scripts if the Config says so, but not that of a redirect, which nobody sees; of other responses the header fields
// are. What a body is, it says itself where that and the declared type do not go together. Parse fails if resp.URL is
// not a URL, and where a list is broken off, whose beginning stands. It has no complaint about anything else: there is
// no markup that is wrong. Links beyond a limit are reported by Page.LinksCut.
func (p *Parser) Parse(resp *page.Response, pg *page.Page) error {
	contentType := resp.Header.Get("Content-Type")
	*pg = page.Page{Type: MediaType(contentType), Links: pg.Links[:0], Variants: pg.Variants[:0]}
	self, err := weburl.Parse(resp.URL)
	if err != nil {
		return fmt.Errorf("parsing the page: %w", err)
	}
	p.self = self
	p.document = document{fallback: self, base: self}
	p.begin(resp)
	pg.Sniffed = sniffed(pg.Type, contentType, resp.Body)
	if !p.links.redirects && len(resp.Body) > 0 {
		p.body(resp, contentType, pg)
	}
	pg.Base = p.base.String()
	p.fill(pg)
	p.release()
	if IsList(pg.Sniffed) && !redirects(pg) {
		return p.readList(resp, pg)
	}
	return nil
}

// body reads a body of a type that may have links.
func (p *Parser) body(resp *page.Response, contentType string, pg *page.Page) {
	body := resp.Body
	t := mediaType(pg.Sniffed)
	switch {
	case pg.Sniffed == xhtml || t.IsHTML():
		p.html(resp, contentType, pg)
	case pg.Sniffed == "text/css":
		p.styles(p.plain(body, contentType))
	case pg.Sniffed == "text/plain" && (p.cfg.PlainText || p.cfg.Language):
		text := p.plain(body, contentType)
		pg.Lang = p.language(p.text.attr(p.text.cut(text, maxLead)), "")
		if p.cfg.PlainText {
			p.addresses(text)
		}
	case t.IsJavaScript():
		script := p.plain(body, contentType)
		p.modules(staticImports(script))
		if !p.cfg.Scripts {
			return
		}
		p.paths(script)
	default:
		return
	}
	pg.Charset, pg.CharsetSource = p.charset.name, p.how
}

// begin forgets what was found, but for what is in header fields.
func (p *Parser) begin(resp *page.Response) {
	p.links.reset()
	p.says.robots, p.says.refresh = robots{}, refresh{}
	p.title, p.titled = nil, false
	p.scan.ignoreEnd(tagH1, 'h')
	p.heading, p.description = heading{}, ""
	p.headers(resp)
}

// html reads an HTML body, again as long as it learns something on the way that changes what it has read.
func (p *Parser) html(resp *page.Response, contentType string, pg *page.Page) {
	g := sniff(resp.Body, contentType)
	p.charset, p.how, p.tentative = g.charset, g.how, g.tentative()
	for {
		p.form, p.anchored.link = form{}, 0
		p.scan.reset(p.decoded(g.text), pg.Sniffed == xhtml)
		if p.cfg.Language {
			p.first.reset(&p.text)
			p.scan.lead = &p.first
		}
		if again := p.markup(); !again {
			break
		}
		p.begin(resp)
	}
	pg.Title = collapse(p.text.content(p.title), p.cfg.MaxTitle)
	pg.Heading, pg.Description = p.heading.text, p.description
	if p.cfg.Language {
		pg.Lang = p.language(p.lead(), declaredLanguage(p.scan.src))
	}
}

// markup reads the document's elements. It reports whether to begin again.
func (p *Parser) markup() (again bool) {
	p.scan.reportEnd(tagForm, 'f')
	if p.cfg.AnchorText {
		p.scan.reportEnd(tagA, 'a')
	}
	for p.scan.next() {
		p.text.reset()
		switch {
		case p.scan.closing:
			p.endTag()
			continue
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
		if p.scan.has(1 << attrStyle) {
			p.styleAttribute(attrStyle)
		}
		if p.scan.has(lazyAttrs) {
			p.lazy()
		}
	}
	p.scan.start = len(p.scan.src)
	p.closeAnchor()
	p.closeForm()
	p.closeHeading()
	return false
}

func (p *Parser) endTag() {
	switch p.scan.tag {
	case tagA:
		p.closeAnchor()
	case tagH1:
		p.closeHeading()
	case tagForm:
		p.closeForm()
	}
}

// decoded returns the body as the scanner reads it: as it stands wherever markup can be told in it, otherwise in UTF-8.
func (p *Parser) decoded(body []byte) []byte {
	if p.charset.asciiBased() {
		p.text.init(p.charset, p.charset, body)
		return body
	}
	if p.cfg.MaxConverted > 0 && len(body) > p.cfg.MaxConverted {
		body = body[:p.cfg.MaxConverted]
	}
	p.converted = p.charset.decode(slices.Grow(p.converted[:0], len(body)/2*3), body)
	p.text.init(p.charset, utf8Charset, p.converted)
	return p.converted
}

// plain returns a body that is no markup as the parser reads it.
func (p *Parser) plain(body []byte, contentType string) []byte {
	g := sniffPlain(body, contentType)
	p.charset, p.how = g.charset, g.how
	p.text.reset()
	return p.decoded(g.text)
}

func (p *Parser) fill(pg *page.Page) {
	p.links.fill(pg)
	pg.Robots = p.says.robots.Robots
	switch r := p.says.refresh; {
	case r.self:
		pg.Refresh, pg.RefreshAfter = p.self.Canonical().String(), r.seconds
	case r.seen:
		pg.Refresh, pg.RefreshAfter = pg.Links[r.link-1].URL, r.seconds
	}
}

// maxKept is the room in bytes that a buffer may keep from one page to the next.
const maxKept = 1 << 20

// release lets go of the page's body and of buffers that an unusual page made large.
func (p *Parser) release() {
	p.scan.reset(nil, false)
	p.title, p.form.action = nil, nil
	p.text.release()
	p.links.release()
	if cap(p.converted) > maxKept {
		p.converted = nil
	}
}
