package jsonl

import (
	"sync"

	"kumo/internal/base/page"
	"kumo/internal/base/vfs"
	"kumo/internal/state/store"
)

var _ store.Store = (*Texts)(nil)

// Texts writes text.jsonl: a line for each page that has a main text. It has url, time, lang, title, headline, author,
// published (RFC 3339, or only the date) and text, whose paragraphs are separated by a line feed; "" is what the page
// does not say.
type Texts struct {
	*store.Logs
	lines sync.Pool // of *line
}

// TextsName is the file of main texts in a crawl's folder.
const TextsName = "text.jsonl"

// OpenTexts opens the file, cut back to marks.
func OpenTexts(disk vfs.FS, cfg Config, marks []store.Mark) (*Texts, error) {
	logs, err := store.OpenLogs(disk, cfg.Dir, marks, TextsName)
	if err != nil {
		return nil, err
	}
	return &Texts{Logs: logs, lines: sync.Pool{New: func() any { return new(line) }}}, nil
}

// Put writes the line of a record with a text.
func (s *Texts) Put(rec *page.Record) error {
	if rec.Text == nil {
		return nil
	}
	l := s.lines.Get().(*line)
	defer s.lines.Put(l)
	l.b = l.b[:0]
	l.text("url", rec.URL)
	l.time("time", rec.Time)
	l.text("lang", rec.Text.Lang)
	l.text("title", rec.Text.Title)
	l.text("headline", rec.Text.Headline)
	l.text("author", rec.Text.Author)
	l.text("published", rec.Text.Published)
	l.text("text", rec.Text.Text)
	l.end()
	return s.Append(0, l.b)
}

// PutSkip does nothing: what was not fetched has no text.
func (s *Texts) PutSkip(*page.Skip) error { return nil }
