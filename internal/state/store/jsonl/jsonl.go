// Package jsonl writes the results of a crawl as JSON lines, to pages.jsonl and skipped.jsonl.
//
// Each line of pages.jsonl is a page that answered. Each line of skipped.jsonl is a URL in scope that was excluded,
// with the reason. Times are UTC with milliseconds.
//
// # Pages
//
// A line of a page has the members of a [PageLine]. To add one, add a field to PageLine (or to [Visit], where exports
// have it, too), and fill and append it there.
//
// # Skipped URLs
//
// A line of a skipped URL has url, host, rule, why, from, depth and time.
package jsonl

import (
	"sync"

	"kumo/internal/base/page"
	"kumo/internal/base/vfs"
	"kumo/internal/state/store"
)

// Names of the files, in the order of Logs.
const (
	skipped = iota
	pages
)

var names = [...]string{skipped: "skipped.jsonl", pages: "pages.jsonl"}

// Config configures a Store.
type Config struct {
	Dir     string // the crawl's folder
	NoPages bool   // write skipped.jsonl only
}

var _ store.Store = (*Store)(nil)

// A Store writes pages.jsonl and skipped.jsonl.
type Store struct {
	*store.Logs
	noPages bool
	lines   sync.Pool // of *line
}

type line struct {
	b    []byte
	page PageLine // reused for each page
}

// Open opens the files and truncates them to marks.
func Open(disk vfs.FS, cfg Config, marks []store.Mark) (*Store, error) {
	open := names[:]
	if cfg.NoPages {
		open = names[:pages]
	}
	logs, err := store.OpenLogs(disk, cfg.Dir, marks, open...)
	if err != nil {
		return nil, err
	}
	return &Store{Logs: logs, noPages: cfg.NoPages, lines: sync.Pool{New: func() any { return new(line) }}}, nil
}

// Put writes a line for a page. A visit without a response and a robots.txt have no line.
func (s *Store) Put(rec *page.Record) error {
	if rec.Response == nil || rec.Robots || rec.Helper || s.noPages {
		return nil
	}
	l := s.lines.Get().(*line)
	defer s.lines.Put(l)
	l.page.set(rec)
	l.b = l.page.Append(l.b[:0])
	return s.Append(pages, l.b)
}

// PutSkip writes a line for a skipped URL.
func (s *Store) PutSkip(skip *page.Skip) error {
	l := s.lines.Get().(*line)
	defer s.lines.Put(l)
	l.b = appendSkip(l.b[:0], skip)
	return s.Append(skipped, l.b)
}

func appendSkip(b []byte, skip *page.Skip) []byte {
	l := object{b: b, begin: len(b)}
	l.text("url", skip.URL)
	l.text("host", skip.Host)
	l.text("rule", skip.Rule)
	l.text("why", skip.Why)
	l.text("from", skip.From)
	l.number("depth", int64(skip.Depth))
	l.time("time", skip.Time)
	return l.end()
}
