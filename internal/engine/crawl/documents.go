package crawl

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/stats"
	"kumo/internal/content/document"
)

// A DocumentReader reads PDFs, office documents, e-books and images. Its methods are safe for concurrent use.
type DocumentReader interface {
	// Read reads a document. An error means that nothing of it could be read; document.ProblemOf tells why.
	Read(ctx context.Context, f document.File, lim document.Limits) (*document.Document, error)
	// Close ends processes that Read started. A later Read starts them again.
	Close() error
}

// documents reads documents for the workers.
type documents struct {
	reader   DocumentReader
	text     bool // texts are written, and not only links followed
	limits   document.Limits
	listener Listener
	turns    chan struct{} // held while a document is read: its text needs memory, and reading needs a processor

	mu     sync.Mutex // guards the field below
	counts stats.Documents
}

func newDocuments(r DocumentReader, mode document.Mode, l Listener) *documents {
	if r == nil {
		return nil
	}
	return &documents{reader: r, text: mode != document.Links, limits: document.Default(), listener: l,
		turns: make(chan struct{}, runtime.GOMAXPROCS(0))}
}

// read reads a document. The error is that of ctx.
func (d *documents) read(ctx context.Context, url string, format document.Format, f document.File) (*document.Document,
	error) {
	select {
	case d.turns <- struct{}{}:
	case <-ctx.Done():
		return nil, errNoSlot
	}
	defer func() { <-d.turns }()
	start := time.Now()
	doc, err := d.reader.Read(ctx, f, d.limits)
	if ctx.Err() != nil {
		return nil, errNoSlot
	}
	if err != nil {
		doc = document.Failed(format, err)
	}
	if !doc.IsOther() {
		d.count(url, doc, time.Since(start))
	}
	return doc, nil
}

// count counts a document.
func (d *documents) count(url string, doc *document.Document, took time.Duration) {
	d.mu.Lock()
	c := &d.counts
	if doc.Problem == "" {
		c.Read++
	} else {
		if c.WhyNot == nil {
			c.WhyNot = map[string]int64{}
		}
		c.WhyNot[string(doc.Problem)]++
	}
	c.Pages += int64(doc.Pages)
	c.Links += int64(doc.LinkCount())
	c.Seconds += took.Seconds()
	d.mu.Unlock()
	if doc.Problem == document.Crashed || doc.Problem == document.Timeout {
		d.listener.DocumentFailed(url, fmt.Errorf("%s: %s", doc.Problem, doc.Detail))
	}
}

// Documents returns the counts of documents that this run has read; nil if there was none.
func (e *Engine) Documents() *stats.Documents {
	d := e.runner.visits.documents
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	c := (*stats.Documents)(nil).Merge(&d.counts)
	if c.Read == 0 && len(c.WhyNot) == 0 {
		return nil
	}
	return c
}

// A spooledFile is a response's payload on disk.
type spooledFile struct{ page.Spool }

func (f spooledFile) Size() int64 { return f.Len() }

// fileOf returns the body of a response without content coding. It remains valid when the worker has no slot.
func fileOf(resp *page.Response) (document.File, error) {
	switch {
	case resp.Header.Get("Content-Encoding") != "" && resp.FullBody != nil:
		return nil, document.Errorf(document.TooLarge, "the body is longer than %d bytes without its content coding, "+
			"see --memory", len(resp.Body))
	case resp.Header.Get("Content-Encoding") != "":
		return bytes.NewReader(bytes.Clone(resp.Body)), nil
	case resp.Spooled != nil:
		return spooledFile{resp.Spooled.Payload}, nil
	}
	return bytes.NewReader(resp.Payload), nil
}

// truncatedBy says why a response is incomplete.
func truncatedBy(resp *page.Response) string {
	switch resp.Truncated {
	case page.Length:
		return fmt.Sprintf("only the first %d bytes were received, see --max-body", resp.PayloadLen())
	case page.Time:
		return fmt.Sprintf("only %d bytes were received in time", resp.PayloadLen())
	}
	return fmt.Sprintf("the connection ended after %d bytes", resp.PayloadLen())
}

// readDocument reads an answer that is a document, and then its HTML form as the page. It returns the response that was
// read. While the document is read, the worker has no slot.
func (p *pageReader) readDocument(ctx context.Context, rec *page.Record, it *item.Item) (*page.Response,
	error) {
	resp := rec.Response
	format := document.FormatOf(resp, p.answer.page.Sniffed)
	if format == "" || it.Kind == page.Sitemap {
		return resp, nil
	}
	file, err := fileOf(resp)
	if resp.Truncated != page.Whole && !format.IsImage() { // the metadata of images are at their beginning
		err = document.Errorf(document.Cut, "%s", truncatedBy(resp))
	}
	if err != nil {
		doc := document.Failed(format, err)
		p.documents.count(rec.URL, doc, 0)
		rec.Document = doc.Info()
		return resp, nil
	}
	declared, sniffed := p.answer.page.Type, p.answer.page.Sniffed
	body, full := bytes.Clone(resp.Body), resp.FullBody // it may be in the slot's buffer
	p.answer.returnSlot()
	p.answer.releaseTurn()
	doc, err := p.documents.read(ctx, rec.URL, format, file)
	if err != nil {
		return nil, err
	}
	if doc.IsOther() {
		return resp, p.readAnswer(ctx, resp, it)
	}
	if format.IsImage() && len(doc.Blocks) == 0 {
		err := p.readAnswer(ctx, resp, it)
		if p.answer.readSlot != nil {
			p.answer.page.Title = doc.Title
		}
		rec.Document = doc.Info()
		return resp, err
	}
	shown := doc.Shown(resp)
	if err := p.readAnswer(ctx, shown, it); err != nil {
		return nil, err
	}
	resp.Body, resp.FullBody = body, full
	pg := &p.answer.page
	pg.Type, pg.Sniffed, pg.Charset, pg.CharsetSource = declared, sniffed, "", ""
	pg.NeedsScript = page.NoScriptNeeded
	rec.Document, rec.Shown = doc.Info(), shown
	return shown, nil
}
