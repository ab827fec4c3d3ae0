// Package exports selects the export format by name and runs the export. It is separate from wire, so that programs
// that import kumo do not link the dependencies of the formats.
package exports

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"kumo/internal/app/folder"
	"kumo/internal/archive/export"
	"kumo/internal/archive/export/captures"
	"kumo/internal/archive/export/cdxj"
	"kumo/internal/archive/export/links"
	"kumo/internal/archive/export/markdown"
	"kumo/internal/archive/export/parquet"
	"kumo/internal/archive/export/site"
	"kumo/internal/archive/export/sitemap"
	"kumo/internal/archive/export/table"
	"kumo/internal/archive/export/target"
	"kumo/internal/archive/export/wacz"
	"kumo/internal/archive/export/where"
	"kumo/internal/base/advice"
	"kumo/internal/base/vfs"
	"kumo/internal/base/weburl"
)

// An Export configures an export.
type Export struct {
	export.Config              // Form is one of Formats; Run sets Where from Condition
	Condition     string       // selects pages; "" for all
	Canon         weburl.Rules // of the crawl
	Start         []string     // its seeds
}

// Formats returns the names of the export formats.
func Formats() []string {
	return []string{"site", "jsonl", "csv", "parquet", "markdown", "wacz", "links", "cdxj", "sitemap"}
}

// withDocuments are the formats with titles, texts or links of documents.
var withDocuments = []string{"jsonl", "csv", "parquet", "markdown", "links"}

// ErrFormat means that a format is not known.
var ErrFormat = errors.New("unknown format")

// Run exports a crawl, which must not be running: the caller has locked its folder.
func Run(ctx context.Context, x Export) (_ *export.Report, err error) {
	if !slices.Contains(Formats(), x.Format) {
		return nil, advice.Usage("%q: %w", x.Format, ErrFormat)
	}
	if x.Condition != "" {
		condition, err := where.Parse(x.Condition)
		if err != nil {
			return nil, advice.Usage("--where %w", err)
		}
		x.Where = condition.Matcher
	}
	f := folder.At(x.Crawl, vfs.OS) // the settings are here, even if other files are not
	if !f.IsCrawl() && !f.HasOutputs() {
		return nil, folder.NoCrawlError(x.Crawl)
	}
	if x.Format == "parquet" {
		x.Texts = vfs.OS // extracting the texts again is faster than downloading text.jsonl
	}
	if !slices.Contains(withDocuments, x.Format) {
		x.Documents = nil
	}
	if x.Format == "wacz" && filepath.Ext(x.Dir) == ".wacz" {
		return x.file(ctx)
	}
	return x.folder(ctx)
}

// folder exports to a folder.
func (x *Export) folder(ctx context.Context) (*export.Report, error) {
	r, err := export.Run(ctx, x.Config, func(to *target.Folder) (export.Exporter, error) { return x.exporter(ctx, to) })
	if errors.Is(err, captures.ErrNoRecords) {
		err = fmt.Errorf("%s: %w", x.Crawl, err)
	}
	return r, err
}

// file exports to a single file. It is built in a folder next to it, which remains after an interruption so that the
// export can resume, and is deleted at the end. An existing file is only replaced if kumo created it.
func (x *Export) file(ctx context.Context) (_ *export.Report, err error) {
	place := x.Dir
	if info, err := os.Lstat(place); err == nil && (!info.Mode().IsRegular() || !wacz.IsOurs(place)) {
		return nil, advice.Usage("%s exists and is not a WACZ written by kumo: name another file", place)
	}
	in := *x
	in.Dir = place + ".part"
	r, err := in.folder(ctx)
	if err != nil {
		return nil, err
	}
	r.Open = ""
	made := filepath.Join(in.Dir, wacz.Name)
	if same, err := hasSame(made, place); err != nil {
		return nil, err
	} else if same {
		r.Written, r.Same = 0, 1
	} else if err := os.Rename(made, place); err != nil {
		return nil, err
	}
	return r, os.RemoveAll(in.Dir)
}

// hasSame reports whether two files have the same contents. The second may not exist.
func hasSame(a, b string) (bool, error) {
	one, err := os.Open(a)
	if err != nil {
		return false, err
	}
	defer one.Close()
	two, err := os.Open(b)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer two.Close()
	sums := [2]hash.Hash{sha256.New(), sha256.New()}
	for n, f := range []*os.File{one, two} {
		if _, err := io.Copy(sums[n], f); err != nil {
			return false, err
		}
	}
	return bytes.Equal(sums[0].Sum(nil), sums[1].Sum(nil)), nil
}

func (x *Export) exporter(ctx context.Context, to *target.Folder) (export.Exporter, error) {
	switch x.Format {
	case "site":
		return site.New(to, site.Config{Canon: x.Canon, Start: x.Start, Temp: x.Temp})
	case "parquet":
		return parquet.New(ctx, to)
	case "markdown":
		return markdown.New(to, x.Temp)
	case "wacz":
		return wacz.New(ctx, to, wacz.Config{Start: x.Start, Temp: x.Temp})
	case "links":
		return links.New(ctx, to, x.Canon, x.Temp)
	case "cdxj":
		return cdxj.New(ctx, to)
	case "sitemap":
		return sitemap.New(to, x.Temp, sitemap.Protocol)
	}
	return table.New(ctx, to, table.Format(x.Format))
}
