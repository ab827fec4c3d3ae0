package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"kumo/internal/base/field"
	"kumo/internal/base/vfs"
	"kumo/internal/base/weburl"
	"kumo/internal/state/statefile"
)

// A View combines the answers of a Source with the data in the crawl's files.
type View struct {
	Source
	dir           string
	disk          vfs.FS // with the committed contents of the files
	running       bool
	filesOnly     bool // the state is not available
	lines         *LineIndex
	lastLineQuery atomic.Int64 // Unix time in nanoseconds of the last search for lines
	close         func() error
}

// NewView returns a view of the crawl in dir. Close calls close.
func NewView(src Source, dir string, disk vfs.FS, running bool, close func() error) *View {
	return &View{Source: src, dir: dir, disk: disk, running: running, close: close}
}

// FilesOnly marks a view of a crawl whose state is not available.
func (v *View) FilesOnly() *View {
	v.filesOnly = true
	return v
}

// LastLineQuery returns the time of the last search in the crawl's files; zero if there was none.
func (v *View) LastLineQuery() (t time.Time) {
	if at := v.lastLineQuery.Load(); at != 0 {
		t = time.Unix(0, at)
	}
	return t
}

// Running reports whether the crawl runs, in a process of its own.
func (v *View) Running() bool { return v.running }

// Close closes the view.
func (v *View) Close() error { return v.close() }

const (
	viewTries = 5                      // for a URL that is just changing state
	pageTries = 2                      // for a web page, which the user can reload
	viewPause = 100 * time.Millisecond // lines appear in files after a commit
)

// Explain describes a URL's state, including the data in the crawl's files.
func (v *View) Explain(ctx context.Context, url string) (*Explanation, error) {
	tries := viewTries
	if v.lines != nil {
		tries = pageTries
	}
	for try := 1; ; try++ {
		x, err := v.Source.Explain(ctx, url)
		if err != nil {
			return nil, err
		}
		x.Running, x.Files = v.running, v.filesOnly
		if x.Unread > 0 { // the files would not be read either
			x.SetOutcome()
			return x, nil
		}
		if err := v.addFiles(ctx, x); err != nil {
			return nil, err
		}
		if x.SetOutcome(); x.Fate != Unaccounted || try == tries || x.Reading {
			return x, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(viewPause):
		}
	}
}

// allowReading turns ErrReading, which is no failure here, into the flag Reading.
func (x *Explanation) allowReading(err error) error {
	if errors.Is(err, ErrReading) {
		x.Reading, err = true, nil
	}
	return err
}

// addFiles adds the data on the URL in the crawl's files. They are append-only, so the crawl may be running. Data that
// a killed crawl did not commit is not read.
func (v *View) addFiles(ctx context.Context, x *Explanation) error {
	if x.Known == nil && x.Page == nil && !v.filesOnly {
		return v.addRobots(ctx, x)
	}
	if err := v.addPage(ctx, x); err != nil {
		return err
	}
	skip := Skip{}
	found, err := v.lastLine(ctx, "skipped.jsonl", "url", x.URL, &skip)
	if err := x.allowReading(err); err != nil {
		return err
	}
	if found {
		x.Skipped = &skip
	}
	if err := v.addDeferred(ctx, x); err != nil {
		return err
	}
	return v.addRobots(ctx, x)
}

// addDeferred adds the reason if the URL is deferred.
func (v *View) addDeferred(ctx context.Context, x *Explanation) error {
	if x.Known == nil || x.Known.State != "left out" {
		return nil
	}
	aside, err := statefile.FindDeferred(ctx, v.disk, v.dir, x.URL)
	if aside != nil {
		x.Aside = &Skip{Rule: aside.Rule, Why: aside.Why, From: aside.From, Depth: aside.Depth, Time: aside.Time}
	}
	return err
}

// addPage adds the last and the first visit.
func (v *View) addPage(ctx context.Context, x *Explanation) error {
	const name = "pages.jsonl"
	lines, err := v.findLines(ctx, name, "url", x.URL)
	if err := x.allowReading(err); err != nil || lines.last == nil {
		return err
	}
	page, first := Page{}, Page{}
	if err := readLine(name, x.URL, lines.last, &page); err != nil {
		return err
	}
	if err := readLine(name, x.URL, lines.first, &first); err != nil {
		return err
	}
	if first.Recrawl == "" {
		x.First = &first
	}
	if x.Page != nil && x.Page.Status == 0 {
		return nil
	}
	x.Page = &page
	if page.Final == x.URL {
		page.Final = ""
	}
	if page.WARC != "" {
		if _, err := v.disk.Size(filepath.Join(v.dir, "warc", page.WARC+".open")); err == nil {
			page.WARC += ".open"
		}
	}
	return nil
}

// addRobots adds the decision of the host's robots.txt, unless the crawl has it in memory.
func (v *View) addRobots(ctx context.Context, x *Explanation) error {
	u, err := weburl.Parse(x.URL)
	if err != nil || x.Robots != nil && x.Robots.Ignored {
		return err
	}
	a, err := v.RobotsAnswer(ctx, u.Origin())
	if err := x.allowReading(err); err != nil || a == nil {
		return err
	}
	rules := a.Rules()
	if x.Robots == nil {
		x.Robots = &Robots{}
		ok, by := rules.Decide(u.RequestURI())
		x.Robots.Allowed, x.Robots.Line, x.Robots.Text = ok, by.Number, by.Text
	}
	x.Robots.File, x.Robots.Time = a.URL, a.Time
	for _, s := range rules.Usage(u.RequestURI()) {
		x.Robots.Usage = append(x.Robots.Usage, s.Line)
	}
	return nil
}

// RobotsAnswer returns the last robots.txt of an origin; nil if it was not read. With ErrReading, there may be a newer
// one.
func (v *View) RobotsAnswer(ctx context.Context, origin string) (*statefile.RobotsAnswer, error) {
	var a statefile.RobotsAnswer
	found, err := v.lastLine(ctx, statefile.RobotsAnswersName, "origin", origin, &a)
	if !found {
		return nil, err
	}
	return &a, err
}

// lastLine decodes the last line of a file in the crawl's folder whose first member has the value; false if there is
// none.
func (v *View) lastLine(ctx context.Context, name, member, value string, into any) (bool, error) {
	lines, late := v.findLines(ctx, name, member, value)
	if late != nil && !errors.Is(late, ErrReading) || lines.last == nil {
		return false, late
	}
	if err := readLine(name, value, lines.last, into); err != nil {
		return false, err
	}
	return true, late
}

func readLine(name, value string, line []byte, into any) error {
	if err := json.Unmarshal(line, into); err != nil {
		return fmt.Errorf("%s: line of %s: %w", name, value, err)
	}
	return nil
}

// firstLast are the first and last of the matching lines, nil if there are none.
type firstLast struct{ first, last []byte }

// findLines finds the lines of a file in the crawl's folder whose first member has the value. It ignores an incomplete
// last line.
func (v *View) findLines(ctx context.Context, name, member, value string) (e firstLast, err error) {
	v.lastLineQuery.Store(time.Now().UnixNano())
	begin := append(field.JSON([]byte(`{"`+member+`":`), value), ',')
	return v.linesOf(ctx, filepath.Join(v.dir, name), begin)
}

func (e *firstLast) add(line []byte) {
	if e.first == nil {
		e.first = line
	}
	e.last = line
}
