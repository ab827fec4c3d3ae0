package jsonl

import (
	"encoding/json"
	"errors"
	"time"

	"kumo/internal/base/page"
	"kumo/internal/base/vfs"
	"kumo/internal/state/store"
)

var _ store.Store = (*Fields)(nil)

// Fields writes fields.jsonl, with a line for each record that a rule extracted from a page. A line has url, rule, time
// (of the visit), warc and offset if the page is in a WARC file, and fields as extracted by the rule.
type Fields struct{ *store.Lines }

// FieldsName is the name of the file.
const FieldsName = "fields.jsonl"

// OpenFields opens the file and truncates it to marks.
func OpenFields(disk vfs.FS, cfg Config, marks []store.Mark) (*Fields, error) {
	lines, err := store.OpenLines(disk, cfg.Dir, marks, FieldsName, appendFields)
	return &Fields{lines}, err
}

func appendFields(b []byte, rec *page.Record) []byte {
	for _, f := range rec.Fields {
		o := object{b: b, begin: len(b)}
		o.text("url", rec.URL)
		o.text("rule", f.Rule)
		o.time("time", rec.Time)
		if rec.Location.File != "" {
			o.text("warc", rec.Location.File)
			o.number("offset", rec.Location.Offset)
		}
		o.key("fields")
		o.b = append(o.b, f.Values...)
		b = o.end()
	}
	return b
}

// A FieldsLine is a line of fields.jsonl.
type FieldsLine struct {
	URL, Rule, WARC string
	Offset          int64
	Time            time.Time
	Fields          map[string]json.RawMessage
}

// ParseFields parses a line of fields.jsonl.
func ParseFields(line []byte) (f FieldsLine, err error) {
	if err = parse(line, &f); err == nil && (f.URL == "" || f.Rule == "" || f.Time.IsZero() || f.Fields == nil) {
		err = errors.New("the line lacks its URL, rule, time or fields")
	}
	return f, err
}
