// Package cdxj exports the index of a crawl as one sorted file, index.cdxj, in the format that pywb reads. It merges
// the indexes of all WARC files and drops duplicate lines. It uses the names that WARC files have after they are
// closed.
//
// The index contains every visit. If a condition excludes pages, it contains only the newest good answer of each
// remaining page and the records that these answers refer to. No records are read.
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

var _ export.ArchiveExporter = (*Exporter)(nil)

// An Exporter writes the index.
type Exporter struct {
	archive *captures.Archive
	out     *target.File
	report  export.Report
}

// New returns an exporter into a folder.
func New(ctx context.Context, to *target.Folder) (_ *Exporter, err error) {
	if err := to.DeclareFiles(ctx, func(add func(string) error) error { return add(name) }); err != nil {
		return nil, err
	}
	e := &Exporter{}
	e.out, err = to.Create(name)
	return e, err
}

// Close discards an unfinished file.
func (e *Exporter) Close() error { return e.out.Abort() }

// SetArchive sets the crawl's records.
func (e *Exporter) SetArchive(a *captures.Archive) { e.archive = a }

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
	r.Merge(&e.report)
	r.Open = name
	return e.out.Commit()
}
