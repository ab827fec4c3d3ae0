package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"kumo/internal/app/wire/exports"
	"kumo/internal/app/wire/uploads"
	"kumo/internal/archive/audit"
	"kumo/internal/archive/links"
	"kumo/internal/view/web/ui"
)

// withFiles adds what the web page does with the files in a crawl's folder.
func withFiles(c ui.Crawl) ui.Crawl {
	dir := c.Dir
	c.Audit = func(ctx context.Context, to string, progress func(string)) (*audit.Summary, error) {
		return auditFolder(ctx, dir, to, progress)
	}
	c.Export = func(ctx context.Context, format string, w io.Writer) error { return streamExport(ctx, dir, format, w) }
	return c
}

// auditFolder audits the crawl in a folder with the default limits.
func auditFolder(ctx context.Context, dir, to string, progress func(string)) (_ *audit.Summary, err error) {
	j, err := savedJob(ctx, dir)
	if err != nil {
		return nil, err
	}
	f, err := links.Open(ctx, links.Config{Dir: dir, Canon: j.Crawl.Canon, Progress: func(p links.Progress) {
		progress(fmt.Sprintf("%s, %d of %d MB", p.Step, p.Done>>20, p.Total>>20))
	}})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return audit.WriteCSV(ctx, f, to, "", audit.Defaults)
}

// streamExport writes an export with one file. A crawl that is started meanwhile waits.
func streamExport(ctx context.Context, dir, format string, w io.Writer) (err error) {
	src, err := uploads.OpenSources(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	if err := src.Share(); err != nil {
		return err
	}
	j, err := savedJob(ctx, src.Dir)
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "kumo-download-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	x := exports.Export{Canon: j.Crawl.Canon, Start: canonical(j.Seeds)}
	x.Format, x.Crawl, x.Dir, x.Disk, x.Stream = format, src.Dir, temp, src.Disk, w
	x.Documents = sharedDocuments()
	_, err = exports.Run(ctx, x)
	return err
}
