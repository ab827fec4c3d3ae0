// Package cdxj is the form of an export that is an index: one file, index.cdxj, of what the indexes of all WARC files
// say, sorted, each line once, as pywb reads it. It names WARC files as they are called when they are closed.
//
// It has every visit. Where a condition leaves pages out, it has the newest good answer of each of the others, and what
// these refer to. Records are not read.
package cdxj

import (
	"context"

	"kumo/internal/archive/export"
	"kumo/internal/archive/export/captures"
	"kumo/internal/archive/export/target"
	"kumo/internal/content/parse"
	"kumo/internal/state/store/warc"
)

const name = "index.cdxj"

var _ export.Archivist = (*Exporter)(nil)

// An Exporter writes the index.
type Exporter struct {
	archive *captures.Archive
	out     *target.File // nil once it is there, or given up
	report  export.Report
}

// New returns an exporter into a folder.
func New(ctx context.Context, to *target.Folder) (_ *Exporter, err error) {
	if err := to.Claim(ctx, func(add func(string) error) error { return add(name) }); err != nil {
		return nil, err
	}
	e := &Exporter{}
	e.out, err = to.Create(name)
	return e, err
}

// Close gives up what is not finished.
func (e *Exporter) Close() error {
	if e == nil || e.out == nil {
		return nil
	}
	return e.out.Abort()
}

// Take takes the crawl's records.
func (e *Exporter) Take(a *captures.Archive) { e.archive = a }

// Write counts a page.
func (e *Exporter) Write(_ context.Context, p *export.Page) error {
	e.report.Add(p, parse.IsHTML(p.Type), false, nil)
	return nil
}

// Finish writes the index.
func (e *Exporter) Finish(ctx context.Context, r *export.Report) error {
	err := e.archive.EachEntry(ctx, func(_ *warc.IndexLine, line []byte) error {
		if _, err := e.out.Write(line); err != nil {
			return err
		}
		return e.out.WriteByte('\n')
	})
	if err != nil {
		return err
	}
	r.Take(&e.report)
	r.Open = name
	out := e.out
	e.out = nil
	return out.Commit()
}
