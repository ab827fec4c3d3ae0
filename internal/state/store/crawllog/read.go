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
	Time        time.Time // when the visit ended, to the millisecond
	Status      int       // of the answer, or a code below 0, see [Code]
	Size        int64     // of the payload
	URL         string
	Path, Via   string // "" for what the line has "-" for
	MIME        string
	Begin       time.Time
	Took        time.Duration
	Digest      string // with its "sha1:"; "" if no answer came
	Seed        string
	Annotations []string
}

// Has reports whether the line has an annotation.
func (e *Entry) Has(annotation string) bool { return slices.Contains(e.Annotations, annotation) }

const thread = "#000"

// Parse reads a line as the store writes it, without its end.
func Parse(line []byte) (e Entry, err error) {
	f := strings.Fields(string(line))
	if len(f) != 12 {
		return e, fmt.Errorf("it has %d fields, not 12", len(f))
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
	if late := e.Time.Sub(e.Begin.Add(e.Took)); late < 0 || late > 2*time.Millisecond || f[7] != thread {
		return e, fmt.Errorf("%s is not when a visit ended that began and took %s, or %q is not %q", f[0], f[8], f[7], thread)
	}
	if f[11] != "" {
		e.Annotations = strings.Split(f[11], ",")
	}
	return e, nil
}

// parseBegin reads 20261121031213123+45.
func (e *Entry) parseBegin(text string) error {
	begin, took, ok := strings.Cut(text, "+")
	if !ok || len(begin) != 17 {
		return fmt.Errorf("%q is no time and duration", text)
	}
	var err error
	if e.Begin, err = time.Parse("20060102150405.000", begin[:14]+"."+begin[14:]); err != nil {
		return err
	}
	ms, err := strconv.ParseInt(took, 10, 64)
	e.Took = time.Duration(ms) * time.Millisecond
	return err
}
