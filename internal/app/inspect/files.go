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

// A View is a crawl in a folder, as who looks at it from outside finds it: what its Source answers, with what the
// crawl's files say.
type View struct {
	Source
	dir           string
	disk          vfs.FS // with the crawl's files as they count
	running       bool
	filesOnly     bool // there is nothing but the crawl's files
	lines         *LineIndex
	lastLineQuery atomic.Int64 // Unix time, in nanoseconds, at which lines were looked for last
	close         func() error
}

// NewView makes the view of the crawl in dir. Close calls close.
func NewView(src Source, dir string, disk vfs.FS, running bool, close func() error) *View {
	return &View{Source: src, dir: dir, disk: disk, running: running, close: close}
}

// FilesOnly says that the crawl's files are there and its state is not, so that it does not know what they say.
func (v *View) FilesOnly() *View {
	v.filesOnly = true
	return v
}

// LastLineQuery is when lines of the crawl's files were looked for last; zero if never.
func (v *View) LastLineQuery() (t time.Time) {
	if at := v.lastLineQuery.Load(); at != 0 {
		t = time.Unix(0, at)
	}
	return t
}

// Running reports whether the crawl runs, in a process of its own.
func (v *View) Running() bool { return v.running }

// Close ends the view.
func (v *View) Close() error { return v.close() }

const (
	viewTries = 5                      // at a URL that is just going from one place to another
	pageTries = 2                      // for a page, which can be asked for again
	viewPause = 100 * time.Millisecond // lines are in the files after a commit
)

// Explain says what became of a URL, with what the crawl's files say of it.
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
		if x.Unread > 0 { // nor would the files be read
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

// allowReading notes that a file is still being gone through: what it has may be missing, which is no error.
func (x *Explanation) allowReading(err error) error {
	if errors.Is(err, ErrReading) {
		x.Reading, err = true, nil
	}
	return err
}

// addFiles adds what the crawl's files say of a URL. They only grow, so it does not matter whether the crawl runs; what
// a killed one has not committed is not read.
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

// addDeferred adds why the URL is set aside, if it is.
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

// addPage adds the last visit's line, and the first visit's.
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

// addRobots adds what the host's robots.txt said, as far as the crawl does not have it in memory.
func (v *View) addRobots(ctx context.Context, x *Explanation) error {
	u, err := weburl.Parse(x.URL)
	if err != nil || x.Robots != nil && x.Robots.Ignored {
		return err
	}
	a, err := v.RobotsAnswer(ctx, u.Origin())
	if err := x.allowReading(err); err != nil || a == nil {
		return err
	}
	if x.Robots == nil {
		x.Robots = &Robots{}
		ok, by := a.Rules().Decide(u.RequestURI())
		x.Robots.Allowed, x.Robots.Line, x.Robots.Text = ok, by.Number, by.Text
	}
	x.Robots.File, x.Robots.Time = a.URL, a.Time
	return nil
}

// RobotsAnswer is what an origin's robots.txt said when it was read last; nil if it was not. With ErrReading that is as
// far as is known.
func (v *View) RobotsAnswer(ctx context.Context, origin string) (*statefile.RobotsAnswer, error) {
	var a statefile.RobotsAnswer
	found, err := v.lastLine(ctx, statefile.RobotsAnswersName, "origin", origin, &a)
	if !found {
		return nil, err
	}
	return &a, err
}

// lastLine reads the last line of a file in a crawl's folder whose first member has a value; false if there is none.
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
		return fmt.Errorf("%s: the line of %s: %w", name, value, err)
	}
	return nil
}

// firstLast are the first and the last of some lines, both nil if there are none.
type firstLast struct{ first, last []byte }

// findLines goes through the lines of a file in a crawl's folder whose first member has a value. A line that is just
// being written is none.
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
