package jsonl

import (
	"encoding/json"
	"fmt"
	"time"
)

// A PageLine is a line of pages.jsonl; the package comment says what its members are.
type PageLine struct {
	URL, Final, Type, Charset, Lang, Title, From, Digest string
	Status, Depth, Links                                 int
	Bytes, Offset                                        int64
	Importance                                           float64
	WARC, Truncated, Malformed, Revisit, Sniffed, Robots string
	NearDuplicate                                        string `json:"near_duplicate_of"`
	LinksCut                                             string `json:"links_cut"`
	Recrawl                                              string
	H1, Description, Canonical                           string
	HrefLang                                             []Variant
	ConnectMS                                            int64 `json:"connect_ms"`
	FirstByteMS                                          int64 `json:"first_byte_ms"`
	TotalMS                                              int64 `json:"total_ms"`
	NoIndex, NoArchive                                   bool
	Time                                                 time.Time
}

// A Variant is where the page is in another language.
type Variant struct{ Lang, URL string }

// A SkipLine is a line of skipped.jsonl.
type SkipLine struct {
	URL, Host, Rule, Why, From string
	Depth                      int
	Time                       time.Time
}

// ParsePage reads a line of pages.jsonl.
func ParsePage(line []byte) (p PageLine, err error) {
	if err = parse(line, &p); err == nil && (p.URL == "" || p.Time.IsZero()) {
		err = fmt.Errorf("the line of %q lacks its URL or time", p.URL)
	}
	return p, err
}

// ParseSkip reads a line of skipped.jsonl.
func ParseSkip(line []byte) (s SkipLine, err error) {
	if err = parse(line, &s); err == nil && (s.URL == "" || s.Rule == "" || s.Time.IsZero()) {
		err = fmt.Errorf("the line of %q lacks its URL, rule or time", s.URL)
	}
	return s, err
}

// parse ignores members that it does not know: a newer kumo has written them.
func parse(line []byte, v any) error { return json.Unmarshal(line, v) }
