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
	o := object{b: l.b[:0]}
	o.text("url", rec.URL)
	o.time("time", rec.Time)
	o.text("lang", rec.Text.Lang)
	o.text("title", rec.Text.Title)
	o.text("headline", rec.Text.Headline)
	o.text("author", rec.Text.Author)
	o.text("published", rec.Text.Published)
	o.text("text", rec.Text.Text)
	l.b = o.end()
	return s.Append(0, l.b)
}

// PutSkip does nothing: what was not fetched has no text.
func (s *Texts) PutSkip(*page.Skip) error { return nil }
