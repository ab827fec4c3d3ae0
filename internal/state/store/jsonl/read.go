package jsonl

import (
	"encoding/json"
	"fmt"
	"time"
)

// A SkipLine is a line of skipped.jsonl.
type SkipLine struct {
	URL, Host, Rule, Why, From string
	Depth                      int
	Time                       time.Time
}

// ParsePage parses a line of pages.jsonl.
func ParsePage(line []byte) (p PageLine, err error) {
	if err = parse(line, &p); err == nil && (p.URL == "" || p.Time.IsZero()) {
		err = fmt.Errorf("the line of %q lacks its URL or time", p.URL)
	}
	return p, err
}

// ParseSkip parses a line of skipped.jsonl.
func ParseSkip(line []byte) (s SkipLine, err error) {
	if err = parse(line, &s); err == nil && (s.URL == "" || s.Rule == "" || s.Time.IsZero()) {
		err = fmt.Errorf("the line of %q lacks its URL, rule or time", s.URL)
	}
	return s, err
}

// parse ignores unknown members, which later versions may write.
func parse(line []byte, v any) error { return json.Unmarshal(line, v) }
