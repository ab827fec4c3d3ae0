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

	"kumo/internal/archive/export/captures"
	"kumo/internal/archive/export/target"
	"kumo/internal/base/page"
	"kumo/internal/base/vfs"
)

// A Page is what the crawl has of a URL.
type Page struct {
	*captures.Capture
	// ReadResponse reads it. What cannot be read is a *captures.ErrRecord.
	ReadResponse func() (*page.Response, error)
	// Text returns the main text that the crawl has made of an answer read in a charset; nil if it has none.
	Text func(resp *page.Response, charset string) (*page.MainText, error)
	// Prepared is what a Preparer has made of it.
	Prepared any
}

// IsUnreadable reports whether an error of Answer is that of a record which cannot be read.
func IsUnreadable(err error) bool {
	_, is := errors.AsType[*captures.RecordError](err)
	return is
}

// An Exporter writes a form of a crawl into a folder.
type Exporter interface {
	// Write takes a page. What it is given holds until it returns.
	Write(ctx context.Context, p *Page) error
	// Finish writes what is left when all pages were given, and adds to the report what people are to know.
	Finish(ctx context.Context, r *Report) error
	// Close lets go of what the exporter holds, finished or not.
	Close() error
}

// A Planner is an Exporter that has to know all pages before it writes the first.
type Planner interface {
	Exporter
	// Plan takes a page, in the order of Write.
	Plan(ctx context.Context, p *Page) error
	// FinishPlan is called after the last Plan, before the first Write.
	FinishPlan(ctx context.Context) error
}

// A Preparer is an Exporter whose work on a page needs no other page: several goroutines do it, and Write is given the
// pages in their order, with what was made of each.
type Preparer interface {
	Exporter
	// PrepareFunc is called for each goroutine.
	Prepare() PrepareFunc
}

// PrepareFunc makes something of a page. What it returns must not change with the next.
type PrepareFunc func(p *Page) (any, error)

// An Archivist is an Exporter that also wants the records as they lie there.
type ArchiveExporter interface {
	Exporter
	// Take is called before all others.
	SetArchive(a *captures.Archive)
}

// A Condition makes, for a goroutine, what says whether a page is exported.
type Condition func() func(p *Page) (bool, error)

// A Config says what to export, and where to.
type Config struct {
	Crawl    string // the crawl's folder
	Dir      string // the folder to fill; "" where an exporter needs none, and is given none
	Format   string // its name, which the folder keeps
	Disk     vfs.FS // that the crawl is on; default vfs.OS
	Temp     string // where it is sorted what does not fit into memory; default the system's folder for that
	Progress func(Progress)
	Texts    vfs.FS    // the disk with text.jsonl, for an exporter that needs main texts; nil: it is not read
	Where    Condition // nil: all are
	Workers  int       // goroutines that prepare pages; default as many as there are processors
}

// A Progress says how far a step is, in URLs.
type Progress struct {
	Step        string
	Done, Total int64
}

// A Report says what was exported.
type Report struct {
	URLs                     int64  // that were exported
	Pages                    int64  // of them to read: HTML
	Bytes                    int64  // of all files
	Written, Same, Removed   int64  // files that are new or have changed; that were as they are; that are gone
	Open                     string // the file to begin with, in the folder; "" if there is none
	Notes                    []string
	Unreadable, Lost, Cutoff int64 // records that cannot be read; whose bodies are elsewhere; that were cut off
	Unmatched                int64 // URLs that the condition leaves out
}

// Add counts a page that was exported, or left out as its record cannot be read.
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

// Take takes over what a form has counted; what Run knows stays.
func (r *Report) Merge(of *Report) {
	lost, unmatched := r.Lost, r.Unmatched
	*r = *of
	r.Lost, r.Unmatched = lost, unmatched
}

const maxNotes = 10

// AddNote adds a note, unless there are many.
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
	a, err := captures.Open(ctx, captures.Config{Dir: cfg.Crawl, Disk: cfg.Disk, Temp: cfg.Temp, Texts: cfg.Texts})
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

// runExporter tells an exporter all pages.
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

// applyCondition leaves the pages that the condition is true of. It returns how many others there were.
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
		Text: func(resp *page.Response, charset string) (*page.MainText, error) { return from.Text(c, resp, charset) }}
}

func (cfg *Config) reportProgress(step string, done int64, a *captures.Archive) {
	if done%progressInterval == 0 {
		cfg.Progress(Progress{step, done, a.Len()})
	}
}
