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
	"kumo/internal/state/frontier"
)

func (w *worker) record(v *frontier.Visit, start time.Time) *page.Record {
	rec := &page.Record{URL: v.URL, Final: v.URL, From: v.From, Seed: v.Seed, Path: v.Path, Depth: int(v.Depth),
		Time: start, Took: w.cfg.Now().Sub(start), Tries: int(v.Tries)}
	if w.resp.RawLen() > 0 || w.resp.Status != 0 {
		rec.Response = &w.resp
	}
	return rec
}

// errNoTime is a page that is not read because the crawl stops.
var errNoTime = errors.New("the crawl stops before a large page's turn")

// read makes a page of the answer and takes its links in. The error is errNoTime, with nothing done, where it had to
// wait for a large slot until the crawl had stopped.
func (w *worker) read(ctx context.Context, rec *page.Record, it *item.Item) error {
	w.acquireSlot()
	fits, err := w.parse(rec.Response, it)
	if !fits && err == nil {
		if !w.move(ctx) {
			return errNoTime
		}
		_, err = w.parse(rec.Response, it)
	}
	if err != nil {
		return err
	}
	rec.Page = &w.page
	w.cfg.Ignore.Mark(rec)
	if err := w.readText(rec); err != nil && rec.Response.Malformed == "" {
		rec.Response.Malformed = err.Error()
	}
	if err := w.readFields(rec); err != nil && rec.Response.Malformed == "" {
		rec.Response.Malformed = err.Error()
	}
	if err := w.askRecord(rec); err != nil {
		return err
	}
	if rec.Digest, err = digest(rec.Response); err != nil {
		return err
	}
	rec.Content = w.content(rec)
	ref, err := w.earlier(rec)
	if err != nil {
		return err
	}
	from := *it
	if rec.Revisit = ref; w.vetoed == "" {
		from.Vain = w.compare(rec, it)
	}
	for _, l := range w.page.Links {
		if l.Kind == page.Redirect {
			rec.Final = l.URL
		}
	}
	w.findLinks(rec)
	if isRanked(rec, it.Kind) && w.vetoed == "" {
		w.ranks.begin(&w.batch, it.URL, len(w.page.Links))
	}
	if err := w.takeLinks(&from); err != nil {
		return err
	}
	w.batch.links = len(w.page.Links)
	return nil
}

// parse reads the answer at the slot. It reports false, with nothing done, where that is an ordinary one and has not
// the room.
func (w *worker) parse(resp *page.Response, it *item.Item) (fits bool, err error) {
	read := w.parser.Parse
	if it.Kind == page.Sitemap {
		read = w.parser.ParseList
	}
	malformed := ""
	if w.cfg.DecodeAll || it.Kind == page.Sitemap || parse.Readable(parse.MediaType(resp.Header.Get("Content-Type"))) {
		switch err := w.reading.decoder.Decode(resp, w.room); {
		case errors.Is(err, fetch.ErrDisk):
			return false, err
		case errors.Is(err, fetch.ErrTooLong) && !w.large:
			return false, nil
		case err != nil:
			malformed = err.Error() // what could be decoded is read all the same
		}
	}
	err = read(resp, &w.page)
	if w.page.Cut && !w.large {
		return false, nil
	}
	if resp.Whole != nil { // the body is longer than the slot's room
		malformed = ""
		if w.page.Charset != "" { // it is text, and no list, which is read to its end
			w.page.LinksCut = page.ByLength
		}
	}
	if err != nil {
		malformed = cmp.Or(malformed, err.Error())
	}
	resp.Malformed = cmp.Or(resp.Malformed, malformed)
	return true, nil
}

// takeLinks takes the page's links in. Where there are many, most go before the page itself is done, in batches of
// their own.
func (w *worker) takeLinks(it *item.Item) error {
	some := w.reading.pool.shares.linksAtOnce(2*(len(it.URL)+len(it.Seed)) + linkCost)
	rest := w.page.Links
	w.workers.getBuffers(&w.batch)
	for ; len(rest) > some; rest = rest[some:] {
		if err := w.addLinks(&w.batch, it, &page.Page{Links: rest[:some], Robots: w.page.Robots}); err != nil {
			return err
		}
		if err := w.commitBatch(&w.batch); err != nil {
			return err
		}
		w.batch.nextOfPage()
	}
	if len(rest) == len(w.page.Links) {
		return w.addLinks(&w.batch, it, &w.page)
	}
	return w.addLinks(&w.batch, it, &page.Page{Links: rest, Robots: w.page.Robots})
}

// linkCost is about what a link takes on its way in, without the page that it is on.
const linkCost = 800

func digest(resp *page.Response) (page.Digest, error) {
	if resp.Far == nil {
		return sha1.Sum(resp.Payload), nil
	}
	h := sha1.New()
	_, err := io.Copy(h, resp.PayloadReader())
	return page.Digest(h.Sum(nil)), err
}

// readText gives the record its main text: that of an answered page, if texts are asked for and the page lets it be
// shown.
func (w *worker) readText(rec *page.Record) (err error) {
	if w.reading.text == nil || rec.NoIndex || rec.NoArchive || rec.Response.Status != http.StatusOK ||
		!parse.IsHTML(rec.Page.Sniffed) {
		return nil
	}
	if rec.Text, err = w.reading.text(rec.Response, rec.Page); rec.Text != nil {
		return nil // what was found before a bound is worth more than that there is one
	}
	return err
}

// readFields gives the record what rules make of its page, on the terms of readText.
func (w *worker) readFields(rec *page.Record) (err error) {
	if w.reading.fields == nil || rec.NoIndex || rec.NoArchive || rec.Response.Status != http.StatusOK {
		return nil
	}
	rec.Fields, err = w.reading.fields(rec.Response, rec.Page)
	return err
}

// earlier is an earlier record with the same payload.
func (w *worker) earlier(rec *page.Record) (*page.Ref, error) {
	if res := rec.Response; res.PayloadLen() == 0 || res.Status/100 == 3 {
		return nil, nil // what replays an archive shows redirects that are revisits without their bodies
	}
	ref, known, err := w.known.digests.Get(rec.Digest)
	if err != nil || !known {
		return nil, err
	}
	r := page.Ref(ref)
	inChunks := rec.Response.PayloadLen() != rec.Response.RawLen()-int64(rec.Response.HeadLen)
	if inChunks != (r.Chunked != [20]byte{}) {
		return nil, nil // replayed with the head of this answer, that body would not be read as it is framed
	}
	return &r, nil
}

// isDuplicate reports whether a record counts as a page that was met before: what came with an error or a redirect is
// no page, even if its record need not have the bytes again.
func isDuplicate(rec *page.Record) bool {
	if rec.Revisit == nil || rec.Response == nil {
		return false
	}
	status := rec.Response.Status
	return status >= 200 && status < 300 || status == http.StatusNotModified
}
