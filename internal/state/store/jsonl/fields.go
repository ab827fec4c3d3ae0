package jsonl

import (
	"encoding/json"
	"errors"
	"sync"
	"time"

	"kumo/internal/base/page"
	"kumo/internal/base/vfs"
	"kumo/internal/state/store"
)

var _ store.Store = (*Fields)(nil)

// Fields writes fields.jsonl: a line for each record that a rule has made of a page. It has url, rule, time (of the
// visit), warc and offset when the page lies in a WARC file, and fields, which is as the rule has it.
type Fields struct {
	*store.Logs
	lines sync.Pool // of *line
}

// FieldsName is the file's.
const FieldsName = "fields.jsonl"

// OpenFields opens the file, cut back to marks.
func OpenFields(disk vfs.FS, cfg Config, marks []store.Mark) (*Fields, error) {
	logs, err := store.OpenLogs(disk, cfg.Dir, marks, FieldsName)
	if err != nil {
		return nil, err
	}
	return &Fields{Logs: logs, lines: sync.Pool{New: func() any { return new(line) }}}, nil
}

// Put writes the lines of a page's records.
func (s *Fields) Put(rec *page.Record) error {
	if len(rec.Fields) == 0 {
		return nil
	}
	l := s.lines.Get().(*line)
	defer s.lines.Put(l)
	l.b = l.b[:0]
	for _, f := range rec.Fields {
		o := object{b: l.b, begin: len(l.b)}
		o.text("url", rec.URL)
		o.text("rule", f.Rule)
		o.time("time", rec.Time)
		if rec.Place.File != "" {
			o.text("warc", rec.Place.File)
			o.number("offset", rec.Place.Offset)
		}
		o.key("fields")
		o.b = append(o.b, f.Values...)
		l.b = o.end()
	}
	return s.Append(0, l.b)
}

// PutSkip does nothing: of what was not fetched there are no records.
func (s *Fields) PutSkip(*page.Skip) error { return nil }

// A FieldsLine is a line of fields.jsonl.
type FieldsLine struct {
	URL, Rule, WARC string
	Offset          int64
	Time            time.Time
	Fields          map[string]json.RawMessage
}

// ParseFields reads a line of fields.jsonl.
func ParseFields(line []byte) (f FieldsLine, err error) {
	if err = parse(line, &f); err == nil && (f.URL == "" || f.Rule == "" || f.Time.IsZero() || f.Fields == nil) {
		err = errors.New("the line lacks its URL, rule, time or fields")
	}
	return f, err
}
