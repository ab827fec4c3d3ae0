package crawl

import (
	"cmp"
	"context"
	"crypto/sha1"
	"errors"
	"io"
	"net/http"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/content/fetch"
	"kumo/internal/content/parse"
	"kumo/internal/content/robots"
	"kumo/internal/content/usage"
	"kumo/internal/state/frontier"
)

func (w *worker) record(v *frontier.Visit, start time.Time) *page.Record {
	rec := &page.Record{URL: v.URL, Final: v.URL, From: v.From, Seed: v.Seed, Path: v.Path, Depth: int(v.Depth),
		Time: start, Took: w.visits.cfg.Now().Sub(start), Tries: int(v.Tries)}
	if w.answer.resp.RawLen() > 0 || w.answer.resp.Status != 0 {
		rec.Response = &w.answer.resp
	}
	return rec
}

// errNoSlot means that a page was not read because the crawl stops.
var errNoSlot = errors.New("the crawl stopped before a large page could be read")

// A pageReader parses a worker's answers into pages, and admits their links.
type pageReader struct {
	vetoed string // why a hook has vetoed the page; "" if none has
	// statements of robots.txt about the use of the page
	stated []robots.Statement
	tdm    *usage.TDMRule // the rule of the origin's tdmrep.json; nil if there is none, or the crawl does not read it

	text    func(*page.Response, *page.Page) (*page.MainText, error)
	fields  func(*page.Response, *page.Page) ([]page.Fields, error)
	answer  *answer
	batch   *batch
	revisit *revisit
	trap    *trapVisit

	cfg        *Config
	hooks      Hooks
	known      *known
	ranks      *ranking
	admission  *admission
	abandons   *abandoner
	buffers    *batchPool
	renderings *renderings // nil: no page is rendered
	documents  *documents  // nil: no document is read
}

// readAnswer parses a response at a slot that is large enough. If the crawl stops while it waits for a large slot, it
// does nothing and returns errNoSlot.
func (p *pageReader) readAnswer(ctx context.Context, resp *page.Response, it *item.Item) error {
	p.answer.acquireSlot()
	fits, err := p.parse(resp, it)
	if !fits && err == nil {
		if !p.answer.acquireLargeSlot(ctx) {
			return errNoSlot
		}
		_, err = p.parse(resp, it)
	}
	return err
}

// read parses the answer and admits the page's links. If the crawl stops while it waits for a large slot, it does
// nothing and returns errNoSlot.
func (p *pageReader) read(ctx context.Context, rec *page.Record, it *item.Item) error {
	if err := p.readAnswer(ctx, rec.Response, it); err != nil {
		return err
	}
	shown, err := rec.Response, error(nil)
	if p.renderings != nil {
		if shown, err = p.readRendered(ctx, rec, it, p.trap.url); err != nil {
			return err
		}
	}
	if p.documents != nil && shown == rec.Response {
		if shown, err = p.readDocument(ctx, rec, it); err != nil {
			return err
		}
	}
	rec.Page = &p.answer.page
	p.cfg.Ignore.Mark(rec)
	p.markUsage(rec)
	if err := p.extract(rec, shown); err != nil && rec.Response.Malformed == "" {
		rec.Response.Malformed = err.Error()
	}
	if p.hooks.Record != nil {
		if p.vetoed, err = p.hooks.Record(rec); err != nil {
			return err
		}
	}
	if rec.Digest, err = digest(rec.Response); err != nil {
		return err
	}
	rec.Content = p.revisit.content(rec)
	ref, err := p.earlierRecord(rec)
	if err != nil {
		return err
	}
	from := *it
	if rec.Revisit = ref; p.vetoed == "" {
		from.Vain = p.trap.compare(rec, shown, it, &p.answer.signer)
	}
	for _, l := range p.answer.page.Links {
		if l.Kind == page.Redirect {
			rec.Final = l.URL
		}
	}
	p.findLinks(rec)
	if it.Kind != page.Sitemap && p.vetoed == "" { // a sitemap lists its entries, and does not link to them
		p.ranks.beginPage(p.batch, it.URL, len(p.answer.page.Links))
	}
	if err := p.admitLinks(&from); err != nil {
		return err
	}
	p.batch.links = len(p.answer.page.Links)
	return nil
}

// parse parses the answer at the slot. It returns false, with nothing done, if the slot is an ordinary one and too
// small.
func (p *pageReader) parse(resp *page.Response, it *item.Item) (fits bool, err error) {
	read := p.answer.parser.Parse
	if it.Kind == page.Sitemap {
		read = p.answer.parser.ParseList
	}
	malformed := ""
	coded := p.documents != nil && resp.Header.Get("Content-Encoding") != ""
	if p.cfg.DecodeAll || coded || it.Kind == page.Sitemap || parse.Readable(parse.MediaType(resp.Header.Get("Content-Type"))) {
		switch err := p.answer.decoder.Decode(resp, p.answer.room); {
		case errors.Is(err, fetch.ErrDisk):
			return false, err
		case errors.Is(err, fetch.ErrTooLong) && !p.answer.large:
			return false, nil
		case err != nil:
			malformed = err.Error() // the part that could be decoded is parsed nevertheless
		}
	}
	err = read(resp, &p.answer.page)
	if p.answer.page.MemoryCut && !p.answer.large {
		return false, nil
	}
	if resp.FullBody != nil { // the body is longer than the slot's room
		malformed = ""
		if p.answer.page.Charset != "" { // text, and not a list, which is read to its end
			p.answer.page.LinksCut = page.ByLength
		}
	}
	if err != nil {
		malformed = cmp.Or(malformed, err.Error())
	}
	resp.Malformed = cmp.Or(resp.Malformed, malformed)
	return true, nil
}

// admitLinks admits the page's links. If there are many, most are committed before the page itself, in batches of their
// own.
func (p *pageReader) admitLinks(it *item.Item) error {
	some := p.answer.pool.shares.linksAtOnce(2*(len(it.URL)+len(it.Seed)) + linkCost)
	rest := p.answer.page.Links
	p.buffers.getBuffers(p.batch)
	for ; len(rest) > some; rest = rest[some:] {
		if err := p.admission.addLinks(p.batch, it,
			&page.Page{Links: rest[:some], Robots: p.answer.page.Robots}); err != nil {
			return err
		}
		if err := p.abandons.commitBatch(p.batch, nil); err != nil {
			return err
		}
		p.batch.nextOfPage()
	}
	if len(rest) == len(p.answer.page.Links) {
		return p.admission.addLinks(p.batch, it, &p.answer.page)
	}
	return p.admission.addLinks(p.batch, it, &page.Page{Links: rest, Robots: p.answer.page.Robots})
}

// linkCost is about how many bytes a link takes while it is admitted, without its page.
const linkCost = 800

func digest(resp *page.Response) (page.Digest, error) {
	if resp.Spooled == nil {
		return sha1.Sum(resp.Payload), nil
	}
	h := sha1.New()
	_, err := io.Copy(h, resp.PayloadReader())
	return page.Digest(h.Sum(nil)), err
}

// extract adds an answered page's main text and its fields by rules to the record, unless the page forbids to show
// them. shown is the response from which the page was read.
func (p *pageReader) extract(rec *page.Record, shown *page.Response) (err error) {
	if rec.NoIndex || rec.NoArchive || rec.Withheld != "" || rec.Response.Status != http.StatusOK {
		return nil
	}
	pg := rec.Page
	if shown.Main != nil {
		html := *pg
		html.Sniffed, html.Charset = "text/html", "utf-8"
		pg = &html
	}
	switch {
	case p.text == nil:
	case shown.Main != nil:
		if p.documents.text && shown.Main.Text != "" {
			rec.Text = shown.Main
		}
	case parse.IsHTML(pg.Sniffed):
		if rec.Text, err = p.text(shown, pg); rec.Text != nil {
			err = nil // text within the limit is worth keeping
		}
	}
	if p.fields != nil {
		var failed error
		rec.Fields, failed = p.fields(shown, pg)
		err = cmp.Or(err, failed)
	}
	return err
}

// earlierRecord returns an earlier record with the same payload.
func (p *pageReader) earlierRecord(rec *page.Record) (*page.Ref, error) {
	if res := rec.Response; res.PayloadLen() == 0 || res.Status/100 == 3 {
		return nil, nil // archive viewers show redirects that are revisits without their bodies
	}
	ref, known, err := p.known.digests.Get(rec.Digest)
	if err != nil || !known {
		return nil, err
	}
	r := page.Ref(ref)
	inChunks := rec.Response.PayloadLen() != rec.Response.RawLen()-int64(rec.Response.HeadLen)
	if inChunks != (r.Chunked != [20]byte{}) {
		return nil, nil // replayed with this answer's head, the earlier body would be framed wrongly
	}
	return &r, nil
}

// isDuplicate reports whether a record counts as a duplicate page. Errors and redirects do not, even if their payloads
// were stored before.
func isDuplicate(rec *page.Record) bool {
	if rec.Revisit == nil || rec.Response == nil {
		return false
	}
	status := rec.Response.Status
	return status >= 200 && status < 300 || status == http.StatusNotModified
}
