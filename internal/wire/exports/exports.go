// Package exports makes other forms of a crawl: the only switch between them. It is not in wire, so that a program that
// imports kumo does not link what they need.
package exports

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"kumo/internal/advice"
	"kumo/internal/export"
	"kumo/internal/export/captures"
	"kumo/internal/export/parquet"
	"kumo/internal/export/site"
	"kumo/internal/export/table"
	"kumo/internal/export/target"
	"kumo/internal/export/where"
	"kumo/internal/folder"
	"kumo/internal/vfs"
	"kumo/internal/weburl"
)

// An Export says what to make of a crawl.
type Export struct {
	export.Config              // its Form is one of Forms; its Where is made of Condition
	Condition     string       // of the pages that are exported; "" for all
	Canon         weburl.Rules // of the crawl
	Start         []string     // its seeds
}

// Forms are the names of what can be made of a crawl.
func Forms() []string { return []string{"site", "jsonl", "csv", "parquet"} }

// ErrForm is a form that is not known.
var ErrForm = errors.New("no such form")

// Run makes another form of a crawl, which must not be running.
func Run(ctx context.Context, x Export) (_ *export.Report, err error) {
	if !slices.Contains(Forms(), x.Form) {
		return nil, advice.Usage("%q: %w", x.Form, ErrForm)
	}
	if x.Condition != "" {
		condition, err := where.Parse(x.Condition)
		if err != nil {
			return nil, advice.Usage("--where %w", err)
		}
		x.Where = condition.Judge
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
	r, err := export.Run(ctx, x.Config, func(to *target.Folder) (export.Exporter, error) { return x.exporter(ctx, to) })
	if errors.Is(err, captures.ErrNone) {
		err = fmt.Errorf("%s: %w", x.Crawl, err)
	}
	return r, err
}

func (x *Export) exporter(ctx context.Context, to *target.Folder) (export.Exporter, error) {
	switch x.Form {
	case "site":
		return site.New(to, site.Config{Canon: x.Canon, Start: x.Start, Temp: x.Temp})
	case "parquet":
		return parquet.New(ctx, to)
	}
	return table.New(ctx, to, table.Form(x.Form))
}
