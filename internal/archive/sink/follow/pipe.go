package follow

import (
	"context"
	"sync"

	"kumo/internal/archive/sink"
	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/state/store"
)

var _ store.Store = (*Pipe)(nil)

// A Pipe is a store that sends each record to a sink once, when its page is done. It is for crawls without files.
type Pipe struct {
	mu     sync.Mutex
	to     sink.Sink
	failed func(error)
	over   bool
}

// NewPipe returns a store that puts records into a sink. After the first error it sends nothing more, and calls failed.
func NewPipe(to sink.Sink, failed func(error)) *Pipe { return &Pipe{to: to, failed: failed} }

// Put implements store.Store. Records have no line, because there is no pages.jsonl.
func (p *Pipe) Put(rec *page.Record) error {
	if rec.Response == nil || rec.Robots || rec.Helper || rec.Withheld != "" {
		return nil
	}
	r := recordOf(rec)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return nil
	}
	if err := p.to.Put(context.Background(), []sink.Record{r}); err != nil {
		p.over = true
		p.failed(err)
	}
	return nil
}

// PutSkip implements store.Store.
func (p *Pipe) PutSkip(*page.Skip) error { return nil }

// Mark implements store.Store.
func (p *Pipe) Mark() ([]store.Mark, error) { return nil, nil }

// Sync implements store.Store.
func (p *Pipe) Sync() error { return nil }

// Finalize implements store.Store.
func (p *Pipe) Finalize() error { return nil }

// Close implements store.Store.
func (p *Pipe) Close() error { return nil }

// recordOf converts a crawl's record.
func recordOf(rec *page.Record) sink.Record {
	read := rec.Page
	if read == nil {
		read = &page.Page{}
	}
	r := sink.Record{URL: rec.URL, Status: rec.Response.Status, Time: rec.Time, Type: read.Type, Charset: read.Charset,
		Lang: read.Lang, Title: read.Title, H1: read.Heading, Description: read.Description, Canonical: read.Canonical,
		Bytes: rec.Response.PayloadLen(), Digest: digest(rec.Digest), Links: len(read.Links),
		Truncated: string(rec.Response.Truncated), Host: item.HostOf(rec.URL), Depth: rec.Depth, NoIndex: rec.NoIndex,
		Usage: rec.Usage}
	if addr := rec.Response.ServerIP(); addr.IsValid() {
		r.ServerIP = addr.String()
	}
	if t := rec.Text; t != nil {
		r.Headline, r.Author, r.Published = t.Headline, t.Author, t.Published
		r.Kind, r.Text, r.Comments = t.Kind, t.Text, t.Comments
	}
	for _, f := range rec.Fields {
		r.Fields = append(r.Fields, sink.Fields{Rule: f.Rule, Values: f.Values})
	}
	r.Fit()
	return r
}
