// Package export converts a crawl to other formats. The packages below it implement the formats.
//
// [Run] passes the newest good answer of each URL to an [Exporter], one at a time in URL order. The same crawl
// therefore produces the same bytes. Memory does not grow with the crawl, except for a few bytes per URL in formats
// that say so.
//
// Files appear complete or not at all. To resume an interrupted export, call Run again: it leaves existing files
// unchanged.
package export

import (
	"context"
	"errors"
	"io"

	"kumo/internal/archive/export/captures"
	"kumo/internal/archive/export/target"
	"kumo/internal/base/page"
	"kumo/internal/base/vfs"
	"kumo/internal/content/document"
)

// A Page is a URL with its newest good answer.
type Page struct {
	*captures.Capture
	// ReadResponse reads the response. If the record cannot be read, the error is a *captures.RecordError.
	ReadResponse func() (*page.Response, error)
	// ReadAnswer is ReadResponse, and also returns what is read of the response.
	ReadAnswer func() (*captures.Answer, error)
	// Text returns the main text that the crawl extracted from an answer, decoded with charset; nil if it has none.
	Text func(a *captures.Answer, charset string) (*page.MainText, error)
	// Prepared is the result of a Preparer for this page.
	Prepared any
}

// IsUnreadable reports whether an error of ReadResponse is due to a record that cannot be read.
func IsUnreadable(err error) bool {
	_, is := errors.AsType[*captures.RecordError](err)
	return is
}

// An Exporter writes a crawl into a folder in some format.
type Exporter interface {
	// Write writes a page. The page is valid until Write returns.
	Write(ctx context.Context, p *Page) error
	// Finish writes the rest after all pages, and completes the report.
	Finish(ctx context.Context, r *Report) error
	// Close releases resources, whether the export is finished or not.
	Close() error
}

// A Planner is an Exporter that needs all pages before it writes the first.
type Planner interface {
	Exporter
	// Plan processes a page, in the order of Write.
	Plan(ctx context.Context, p *Page) error
	// FinishPlan is called after the last Plan, before the first Write.
	FinishPlan(ctx context.Context) error
}

// A Preparer is an Exporter whose work on a page is independent of other pages. Several goroutines prepare pages; Write
// gets them in order, with their results.
type Preparer interface {
	Exporter
	// Prepare is called for each goroutine.
	Prepare() PrepareFunc
}

// A PrepareFunc processes a page. Its result must stay valid after the next call.
type PrepareFunc func(p *Page) (any, error)

// An ArchiveExporter is an Exporter that also needs the raw records.
type ArchiveExporter interface {
	Exporter
	// SetArchive is called before all other methods.
	SetArchive(a *captures.Archive)
}

// A Condition returns, for one goroutine, a function that reports whether a page is exported.
type Condition func() func(p *Page) (bool, error)

// A Config configures an export.
type Config struct {
	Crawl    string // the crawl's folder
	Dir      string // folder to fill; "" if the exporter writes no files
	Format   string // name of the format, which the folder records
	Disk     vfs.FS // disk with the crawl; default vfs.OS
	Temp     string // folder for temporary files of sorting; default the system's
	Progress func(Progress)
	Texts    vfs.FS // disk with text.jsonl, for an exporter that needs main texts; nil: not read
	// Documents reads PDFs, office documents and e-books; nil: they are treated as other files.
	Documents document.Reader
	Where     Condition // nil: all pages
	Stream    io.Writer // receives the file instead of Dir; only for formats with one file
	Workers   int       // goroutines that prepare pages; default the number of processors
}

// A Progress is the progress of a step, in URLs.
type Progress struct {
	Step        string
	Done, Total int64
}

// A Report has the figures of an export.
type Report struct {
	URLs                     int64  // exported
	Pages                    int64  // HTML pages among them
	Bytes                    int64  // of all files
	Written, Same, Removed   int64  // files: new or changed, unchanged, removed
	Open                     string // file to open first, in the folder; "" if there is none
	Notes                    []string
	Unreadable, Lost, Cutoff int64 // records: unreadable, with a missing body, truncated
	Unmatched                int64 // URLs that the condition excludes
}

// Add counts a page that was exported, or excluded because its record cannot be read.
func (r *Report) Add(p *Page, isPage, cutoff bool, unreadable error) {
	if unreadable != nil {
		r.Unreadable++
		r.AddNote(unreadable.Error())
		return
	}
	r.URLs++
	if cutoff {
		r.Cutoff++
	}
	if isPage {
		r.Pages++
	}
}

// Merge copies the figures that a format has counted, except those that Run counts.
func (r *Report) Merge(of *Report) {
	lost, unmatched := r.Lost, r.Unmatched
	*r = *of
	r.Lost, r.Unmatched = lost, unmatched
}

const maxNotes = 10

// AddNote adds a note, unless there are too many.
func (r *Report) AddNote(text string) {
	if len(r.Notes) < maxNotes {
		r.Notes = append(r.Notes, text)
	}
}

// Run exports a crawl.
func Run(ctx context.Context, cfg Config, make func(*target.Folder) (Exporter, error)) (r *Report, err error) {
	if cfg.Progress == nil {
		cfg.Progress = func(Progress) {}
	}
	from := captures.Config{Dir: cfg.Crawl, Disk: cfg.Disk, Temp: cfg.Temp, Texts: cfg.Texts}
	if cfg.Documents != nil {
		from.Documents = func(f document.File) (*document.Document, error) {
			return cfg.Documents.Read(ctx, f, document.Default())
		}
	}
	a, err := captures.Open(ctx, from)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	r = &Report{Lost: a.MissingBodies()}
	if cfg.Where != nil {
		if r.Unmatched, err = applyCondition(ctx, &cfg, a); err != nil {
			return nil, err
		}
	}
	var to *target.Folder
	if cfg.Dir != "" {
		if to, err = target.Open(cfg.Dir, cfg.Format, cfg.Temp); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, to.Close()) }()
		to.Stream = cfg.Stream
	}
	e, err := make(to)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	if err := runExporter(ctx, &cfg, a, e); err != nil {
		return nil, err
	}
	if err := e.Finish(ctx, r); err != nil {
		return nil, err
	}
	if to != nil {
		r.Written, r.Same, r.Removed, r.Bytes = to.Written, to.Unchanged, to.Removed, to.Bytes
	}
	return r, nil
}

// runExporter passes all pages to an exporter.
func runExporter(ctx context.Context, cfg *Config, a *captures.Archive, e Exporter) error {
	if t, takes := e.(ArchiveExporter); takes {
		t.SetArchive(a)
	}
	if p, plans := e.(Planner); plans {
		if err := each(ctx, cfg, a, "plan", p.Plan); err != nil {
			return err
		}
		if err := p.FinishPlan(ctx); err != nil {
			return err
		}
	}
	if p, prepares := e.(Preparer); prepares {
		return runParallel(ctx, cfg, a, "write", p.Prepare, e.Write)
	}
	return each(ctx, cfg, a, "write", e.Write)
}

// applyCondition keeps the pages that match the condition, and returns the number of others.
func applyCondition(ctx context.Context, cfg *Config, a *captures.Archive) (unmatched int64, err error) {
	judge := func() PrepareFunc {
		is := cfg.Where()
		return func(p *Page) (any, error) { return is(p) }
	}
	err = a.Filter(func(keep func(*captures.Capture) error) error {
		return runParallel(ctx, cfg, a, "choose", judge, func(_ context.Context, p *Page) error {
			if p.Prepared.(bool) {
				return keep(p.Capture)
			}
			unmatched++
			return nil
		})
	})
	return unmatched, err
}

const progressInterval = 64 // URLs

func each(ctx context.Context, cfg *Config, a *captures.Archive, step string,
	f func(context.Context, *Page) error) error {
	done := int64(0)
	return a.Each(ctx, func(c *captures.Capture) error {
		cfg.reportProgress(step, done, a)
		done++
		return f(ctx, newPage(c, a.Reader))
	})
}

func newPage(c *captures.Capture, from *captures.Reader) *Page {
	return &Page{Capture: c, ReadResponse: func() (*page.Response, error) { return from.ReadResponse(c) },
		ReadAnswer: func() (*captures.Answer, error) { return from.ReadAnswer(c) },
		Text: func(a *captures.Answer, charset string) (*page.MainText, error) {
			return from.Text(c, a, charset)
		}}
}

func (cfg *Config) reportProgress(step string, done int64, a *captures.Archive) {
	if done%progressInterval == 0 {
		cfg.Progress(Progress{step, done, a.Len()})
	}
}
