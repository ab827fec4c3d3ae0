package jsonl

import (
	"kumo/internal/base/page"
	"kumo/internal/base/vfs"
	"kumo/internal/state/store"
)

var _ store.Store = (*Texts)(nil)

// Texts writes text.jsonl, with a line for each page with a main text. A line has url, time, lang, title, headline,
// author, published (RFC 3339, or a date only) and text, whose paragraphs are separated by a line feed. Missing values
// are "".
type Texts struct{ *store.Lines }

// TextsName is the name of the file.
const TextsName = "text.jsonl"

// OpenTexts opens the file and truncates it to marks.
func OpenTexts(disk vfs.FS, cfg Config, marks []store.Mark) (*Texts, error) {
	lines, err := store.OpenLines(disk, cfg.Dir, marks, TextsName, appendText)
	return &Texts{lines}, err
}

func appendText(b []byte, rec *page.Record) []byte {
	if rec.Text == nil {
		return b
	}
	o := object{b: b, begin: len(b)}
	o.text("url", rec.URL)
	o.time("time", rec.Time)
	o.text("lang", rec.Text.Lang)
	o.text("title", rec.Text.Title)
	o.text("headline", rec.Text.Headline)
	o.text("author", rec.Text.Author)
	o.text("published", rec.Text.Published)
	o.text("kind", rec.Text.Kind)
	o.text("text", rec.Text.Text)
	o.text("comments", rec.Text.Comments)
	return o.end()
}
