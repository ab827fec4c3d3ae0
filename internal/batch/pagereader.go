package batch

import (
	"context"
	"crypto/sha1"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"time"

	"kumo/internal/base/page"
	"kumo/internal/content/fetch"
	"kumo/internal/content/parse"
)

// A pageReader turns answers into Documents. To limit memory, only a few threads read at a time.
type pageReader struct {
	*setup
	text    func(*page.Response, *page.Page) (*page.MainText, error) // Deps.Text
	now     func() time.Time
	parsers sync.Pool // of *parsing
	slots   chan struct{}
}

func newPageReader(s *setup) *pageReader {
	r := &pageReader{setup: s, text: s.Text, now: s.Now, slots: make(chan struct{}, 2*runtime.GOMAXPROCS(0))}
	r.parsers.New = func() any {
		return &parseState{parser: parse.New(parse.Config{Agent: s.Fetching.Agent, Language: true})}
	}
	return r
}

// rawDocument returns a Document with the bytes of an answer.
func (r *pageReader) rawDocument(resp *page.Response) (d Document, err error) {
	d = Document{Status: resp.Status, Addr: resp.Addr, Request: resp.RequestRaw, Raw: resp.Raw, HeadLen: resp.HeadLen,
		Truncated: resp.Truncated, MetaFollow: true, MetaIndex: true}
	if resp.Spooled != nil {
		d.Raw = make([]byte, resp.Spooled.Raw.Len())
		if _, err := resp.Spooled.Raw.ReadAt(d.Raw, 0); err != nil && !errors.Is(err, io.EOF) {
			return d, err
		}
	}
	h := sha1.New()
	if _, err := io.Copy(h, resp.PayloadReader()); err != nil {
		return d, err
	}
	d.Digest = page.Digest(h.Sum(nil))
	return d, nil
}

// read returns a Document with an answer's bytes and the properties of its page.
func (r *pageReader) read(ctx context.Context, resp *page.Response) (d Document, err error) {
	r.slots <- struct{}{} // limits the bodies in memory, however many requests are active
	defer func() { <-r.slots }()
	if d, err = r.rawDocument(resp); err != nil {
		return d, err
	}
	work := r.parsers.Get().(*parseState)
	defer r.parsers.Put(work)
	if r.decodes(parse.MediaType(resp.Header.Get("Content-Type"))) {
		if err := fetch.Decode(resp, maxDecoded); errors.Is(err, fetch.ErrDisk) {
			return d, err
		} else if err != nil {
			resp.Malformed = err.Error()
		}
	}
	if err := work.parser.Parse(resp, &work.page); err != nil && resp.Malformed == "" {
		resp.Malformed = err.Error()
	}
	d.Malformed = resp.Malformed
	if shown := r.shown(ctx, resp); shown != nil {
		return d, r.describeDocument(&d, shown, work)
	}
	r.describe(&d, resp, &work.page)
	return d, nil
}

// describe sets the properties of a page.
func (r *pageReader) describe(d *Document, resp *page.Response, pg *page.Page) {
	for i := range pg.Links {
		if pg.Links[i].Kind == page.Redirect {
			d.RedirectTo = strings.Clone(pg.Links[i].URL)
			return
		}
	}
	d.Type, d.Charset, d.CharsetHow = pg.Sniffed, pg.Charset, pg.CharsetSource
	d.MetaFollow, d.MetaIndex, d.NoArchive = !pg.Robots.NoFollow, !pg.Robots.NoIndex, pg.Robots.NoArchive
	if at := pg.Robots.UnavailableAfter; !at.IsZero() && !r.now().Before(at) {
		d.MetaIndex = false
	}
	if resp.Status != http.StatusOK || !parse.IsHTML(pg.Sniffed) {
		return
	}
	r.describeText(d, resp, pg)
}

// describeDocument sets the properties of a PDF or the like, from its HTML form.
func (r *pageReader) describeDocument(d *Document, shown *page.Response, work *parseState) error {
	kind := work.page.Sniffed
	if err := work.parser.Parse(shown, &work.page); err != nil {
		return err
	}
	r.describe(d, shown, &work.page)
	d.Type, d.Charset, d.CharsetHow = kind, "", ""
	return nil
}

// describeText sets title, text and language of a page.
func (r *pageReader) describeText(d *Document, resp *page.Response, pg *page.Page) {
	d.Title = pg.Title
	defer func() { d.Lang, d.Share, d.Confidence = pageLanguage(d.Text, pg.Lang) }()
	if r.text == nil {
		return
	}
	text := resp.Main
	if text == nil {
		text, _ = r.text(resp, pg) // a partial text is more useful than the error
	}
	if text != nil && text.Text != "" {
		d.Headline, d.Text = text.Headline, text.Text
		d.Simhash = simhash(text.Text)
	}
}
