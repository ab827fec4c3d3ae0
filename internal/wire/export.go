package wire

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"kumo/internal/advice"
	"kumo/internal/export"
	"kumo/internal/export/captures"
	exportsite "kumo/internal/export/site"
	"kumo/internal/export/table"
	"kumo/internal/export/target"
	"kumo/internal/folder"
	"kumo/internal/vfs"
	"kumo/internal/weburl"
)

// An Export says what to make of a crawl.
type Export struct {
	export.Config              // its Form is one of Forms
	Canon         weburl.Rules // of the crawl
	Start         []string     // its seeds
}

// Forms are the names of what can be made of a crawl.
func Forms() []string { return []string{"site", string(table.JSONL), string(table.CSV)} }

// ErrForm is a form that is not known.
var ErrForm = errors.New("no such form")

// RunExport makes another form of a crawl, which must not be running.
func RunExport(ctx context.Context, x Export) (_ *export.Report, err error) {
	if !slices.Contains(Forms(), x.Form) {
		return nil, advice.Usage("%q: %w", x.Form, ErrForm)
	}
	f := folder.At(x.Crawl, vfs.OS)
	if !f.IsCrawl() && !f.HasOutputs() {
		return nil, folder.NoCrawl(x.Crawl)
	}
	err = f.Share(0)
	if errors.Is(err, folder.ErrLocked) {
		return nil, advice.With(err, fmt.Sprintf("kumo snapshot %s copies it while it runs; a copy can be exported", x.Crawl))
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	r, err := export.Run(ctx, x.Config, func(to *target.Folder) (export.Exporter, error) {
		if x.Form != "site" {
			return table.New(ctx, to, table.Form(x.Form))
		}
		return exportsite.New(to, exportsite.Config{Canon: x.Canon, Start: x.Start, Temp: x.Temp})
	})
	if errors.Is(err, captures.ErrNone) {
		err = fmt.Errorf("%s: %w", x.Crawl, err)
	}
	return r, err
}
