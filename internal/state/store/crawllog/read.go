package crawllog

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An Entry is a line of the log.
type Entry struct {
	Time        time.Time // end of the visit, to the millisecond
	Status      int       // of the response, or a negative code; see [Code]
	Size        int64     // size of the payload in bytes
	URL         string
	Path, Via   string // "" where the line has "-"
	MIME        string
	Begin       time.Time
	Took        time.Duration
	Digest      string // with prefix "sha1:"; "" without a response
	Seed        string
	Annotations []string
}

// Has reports whether the entry has an annotation.
func (e *Entry) Has(annotation string) bool { return slices.Contains(e.Annotations, annotation) }

const thread = "#000"

// Parse parses a line as the store writes it, without its end.
func Parse(line []byte) (e Entry, err error) {
	f := strings.Fields(string(line))
	if len(f) != 12 {
		return e, fmt.Errorf("%d fields, want 12", len(f))
	}
	for i := range f {
		if f[i] == "-" {
			f[i] = ""
		}
	}
	e = Entry{URL: f[3], Path: f[4], Via: f[5], MIME: f[6], Digest: f[9], Seed: f[10]}
	if e.Time, err = time.Parse("2006-01-02T15:04:05.000Z", f[0]); err != nil {
		return e, err
	}
	if e.Status, err = strconv.Atoi(f[1]); err != nil {
		return e, err
	}
	if e.Size, err = strconv.ParseInt(f[2], 10, 64); err != nil {
		return e, err
	}
	if err = e.parseBegin(f[8]); err != nil {
		return e, err
	}
	if late := e.Time.Sub(e.Begin.Add(e.Took)); late < 0 || late > 2*time.Millisecond {
		return e, fmt.Errorf("end time %s does not match start+duration %s", f[0], f[8])
	}
	if f[7] != thread {
		return e, fmt.Errorf("thread %q, want %q", f[7], thread)
	}
	if f[11] != "" {
		e.Annotations = strings.Split(f[11], ",")
	}
	return e, nil
}

// parseBegin parses 20261121031213123+45.
func (e *Entry) parseBegin(text string) error {
	begin, took, ok := strings.Cut(text, "+")
	if !ok || len(begin) != 17 {
		return fmt.Errorf("%q is not a start time and duration", text)
	}
	var err error
	if e.Begin, err = time.Parse("20060102150405.000", begin[:14]+"."+begin[14:]); err != nil {
		return err
	}
	ms, err := strconv.ParseInt(took, 10, 64)
	e.Took = time.Duration(ms) * time.Millisecond
	return err
}
