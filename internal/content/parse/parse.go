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
	"net/http"
	"slices"

	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/content/appshell"
)

// A Config limits the data extracted from a page. The zero value means the defaults.
type Config struct {
	MaxLinks  int // links of a page; default 100,000
	MaxURLs   int // bytes of all link URLs of a page; default 16 MiB
	MaxListed int // entries of a list; default 50,000, the limit of sitemaps
	// MaxConverted limits the bytes that are read of a body that must be decoded before it can be parsed, such as
	// UTF-16. Default: no limit.
	MaxConverted int
	MaxTitle     int    // bytes of a title; default 1 KiB
	Agent        string // the crawl's name in robots rules ("kumo"); rules for "robots" always apply
	AnchorText   bool   // keep the text of anchors
	Scripts      bool   // extract strings in scripts that look like paths
	PlainText    bool   // extract URLs in plain text
	Language     bool   // detect the language of HTML pages and plain text
}

// A Parser parses pages, one after the other, and reuses its buffers. It must not be used concurrently.
type Parser struct {
	cfg Config
	extractor

	self weburl.URL // URL of the page
	says struct {
		robots  robots
		refresh refresh
		tdm     page.TDM
	}
	converted []byte // the body in UTF-8, if its charset must be decoded before parsing
	title     []byte // the text of the first title, as in the markup
	titled    bool

	heading     heading
	description string

	first lead
}

// An extractor extracts the links of elements, styles and scripts of the current document.
type extractor struct {
	document
	text        text
	links       outlinks
	onReference func(url []byte) // receives the references instead of links; nil: not set
}

// A document is the state of an HTML document: the page, or the document in an iframe's srcdoc.
type document struct {
	scan     scanner
	depth    int        // number of enclosing documents
	fallback weburl.URL // base URL if the document sets none
	base     weburl.URL // base URL of the links in the markup
	hasBase  bool       // a base element was found

	charset   charset
	how       string
	tentative bool // a meta element may still change the charset

	form form
	// the open anchor: the number of its link, 0 if there is none, and the start of its content
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

// Parse fills pg from resp, reusing the memory of pg.Links. All link URLs and rels of a page share one string.
//
// It reads the body of an HTML page, a style sheet or a list (sitemap, feed), and of plain text and scripts if the
// Config enables it. It ignores the body of a redirect, which no user sees. Header fields are read for all responses.
// If the body contradicts its declared type, the type is detected from the body. Parse fails if resp.URL is not a URL,
// and if a list is truncated; the list's beginning is kept. No other markup is an error. Page.LinksCut reports links
// beyond a limit.
func (p *Parser) Parse(resp *page.Response, pg *page.Page) error {
	contentType := resp.Header.Get("Content-Type")
	*pg = page.Page{Type: MediaType(contentType), Links: pg.Links[:0], Variants: pg.Variants[:0]}
	self, err := weburl.Parse(resp.URL)
	if err != nil {
		return fmt.Errorf("parse page: %w", err)
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

// body parses a body of a type that may contain links.
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

// begin discards all findings and extracts the links of header fields again.
func (p *Parser) begin(resp *page.Response) {
	p.links.reset()
	p.says.robots, p.says.refresh, p.says.tdm = robots{}, refresh{}, page.TDM{}
	p.title, p.titled = nil, false
	p.scan.ignoreEnd(tagH1, 'h')
	p.heading, p.description = heading{}, ""
	p.headers(resp)
}

// html parses an HTML body. It starts again when a declaration changes the meaning of earlier markup.
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
	if resp.Status == http.StatusOK && p.mayNeedScript() {
		pg.NeedsScript = appshell.Detect(p.scan.src)
	}
}

// maxShellLead is the bytes of the lead up to which a page may be an app's shell. Unlike appshell.MaxText, it includes
// the text of noscript elements.
const maxShellLead = 600

// mayNeedScript reports whether the page has so little text and so few links that it may be an app's shell.
func (p *Parser) mayNeedScript() bool {
	if p.cfg.Language && len(p.first.sentences)+len(p.first.rest) > maxShellLead {
		return false
	}
	anchors := 0
	for i := range p.links.links {
		if p.links.links[i].kind == page.Anchor {
			if anchors++; anchors > appshell.MaxLinks {
				return false
			}
		}
	}
	return true
}

// markup processes the document's elements. It reports whether the document must be parsed again.
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

// decoded returns the body for the scanner: unchanged if markup can be recognized in its charset, otherwise in UTF-8.
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

// plain returns a body other than markup in the form that the parser reads.
func (p *Parser) plain(body []byte, contentType string) []byte {
	g := sniffPlain(body, contentType)
	p.charset, p.how = g.charset, g.how
	p.text.reset()
	return p.decoded(g.text)
}

func (p *Parser) fill(pg *page.Page) {
	p.links.fill(pg)
	pg.Robots, pg.TDM = p.says.robots.Robots, p.says.tdm
	switch r := p.says.refresh; {
	case r.self:
		pg.Refresh, pg.RefreshAfter = p.self.Canonical().String(), r.seconds
	case r.seen:
		pg.Refresh, pg.RefreshAfter = pg.Links[r.link-1].URL, r.seconds
	}
}

// maxKept is the largest size of a buffer that is kept for the next page, in bytes.
const maxKept = 1 << 20

// release drops the page's body and the buffers that a large page made large.
func (p *Parser) release() {
	p.scan.reset(nil, false)
	p.title, p.form.action = nil, nil
	p.text.release()
	p.links.release()
	if cap(p.converted) > maxKept {
		p.converted = nil
	}
}
