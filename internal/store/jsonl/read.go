package jsonl

import (
	"bytes"
	"encoding/json"
	"errors"
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
	err = parse(line, &p)
	return p, err
}

// ParseSkip reads a line of skipped.jsonl.
func ParseSkip(line []byte) (s SkipLine, err error) {
	err = parse(line, &s)
	return s, err
}

// parse is strict: members that nobody writes are a fault, too.
func parse(line []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if d.More() {
		return errors.New("it goes on behind its object")
	}
	return nil
}
