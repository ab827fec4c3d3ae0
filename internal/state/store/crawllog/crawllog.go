// Package crawllog writes crawl.log, one line per visit, in the format of Heritrix 3.
//
// So tools for Heritrix logs can read it. A line has twelve fields: time of the line, status, size of the payload, URL,
// discovery path, via, type, thread, begin and duration, digest, seed, annotations. Fields are separated by spaces; an
// empty field is "-". kumo has no threads to report and writes "#000".
//
// If there was no response, the status is one of Heritrix's negative codes; see [Code].
package crawllog

import (
	"encoding/base32"
	"net/http"
	"strconv"
	"strings"
	"time"

	"kumo/internal/base/field"
	"kumo/internal/base/page"
	"kumo/internal/base/vfs"
	"kumo/internal/state/store"
)

// Config configures a Store.
type Config struct {
	Dir string // the crawl's folder
}

var _ store.Store = (*Store)(nil)

// A Store writes crawl.log.
type Store struct{ *store.Lines }

// Open opens the log and truncates it to its mark. The log has a line for each visit, with or without a response.
func Open(disk vfs.FS, cfg Config, marks []store.Mark) (*Store, error) {
	lines, err := store.OpenLines(disk, cfg.Dir, marks, "crawl.log", appendRecord)
	return &Store{lines}, err
}

func appendRecord(b []byte, rec *page.Record) []byte {
	b = rec.Time.Add(rec.Took).UTC().AppendFormat(b, "2006-01-02T15:04:05.000Z")
	b = appendPadded(append(b, ' '), status(rec), 5)
	b = appendPadded(append(b, ' '), size(rec), 10)
	b = field.Token(append(b, ' '), rec.URL)
	b = field.Token(append(b, ' '), rec.Path)
	b = field.Token(append(b, ' '), rec.From)
	b = field.Token(append(b, ' '), mime(rec))
	b = append(b, " #000 "...)
	b = appendBegin(b, rec.Time, rec.Took)
	b = appendDigest(append(b, ' '), rec)
	b = field.Token(append(b, ' '), rec.Seed)
	b = appendAnnotations(append(b, ' '), rec)
	return append(b, '\n')
}

// appendPadded appends n, right-aligned to width columns.
func appendPadded(b []byte, n int64, width int) []byte {
	var digits [20]byte
	text := strconv.AppendInt(digits[:0], n, 10)
	for i := len(text); i < width; i++ {
		b = append(b, ' ')
	}
	return append(b, text...)
}

func size(rec *page.Record) int64 {
	if rec.Response == nil {
		return 0
	}
	return rec.Response.PayloadLen()
}

func mime(rec *page.Record) string {
	switch {
	case rec.Page != nil:
		return rec.Page.Type
	case rec.Response != nil && (rec.Robots || rec.Helper): // not parsed; other responses without a page are unmodified
		t, _, _ := strings.Cut(rec.Response.Header.Get("Content-Type"), ";")
		return strings.ToLower(strings.TrimSpace(t))
	}
	return ""
}

// appendBegin appends the start of a visit in 17 digits and its duration in milliseconds: 20261121031213123+45.
func appendBegin(b []byte, began time.Time, took time.Duration) []byte {
	if began.IsZero() {
		return append(b, '-')
	}
	began = began.UTC()
	b = began.AppendFormat(b, "20060102150405")
	ms := began.Nanosecond() / 1e6
	b = append(b, byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10), '+')
	return strconv.AppendInt(b, took.Milliseconds(), 10)
}

func appendDigest(b []byte, rec *page.Record) []byte {
	if rec.Response == nil {
		return append(b, '-')
	}
	return base32.StdEncoding.AppendEncode(append(b, "sha1:"...), rec.Digest[:])
}

// appendAnnotations appends annotations, separated by commas: "3t" (three tries), "robots" (fetched for its rules), "rendering" (requested by a rendered page),
// "duplicate:notModified" (304), "duplicate:digest" (same payload), "noarchive" (not stored), "lenTrunc", "timeTrunc",
// "disconnectTrunc", "malformed", and the failure.
func appendAnnotations(b []byte, rec *page.Record) []byte {
	start := len(b)
	if rec.Tries > 1 {
		b = append(strconv.AppendInt(b, int64(rec.Tries), 10), 't', ',')
	}
	if rec.Robots {
		b = append(b, "robots,"...)
	}
	if rec.Helper {
		b = append(b, "rendering,"...)
	}
	switch {
	case rec.Response != nil && rec.Response.Status == http.StatusNotModified:
		b = append(b, "duplicate:notModified,"...)
	case rec.Revisit != nil:
		b = append(b, "duplicate:digest,"...)
	}
	if rec.NoArchive {
		b = append(b, "noarchive,"...)
	}
	if res := rec.Response; res != nil {
		b = append(b, truncations[res.Truncated]...)
		if res.Malformed != "" && rec.Failure != page.Malformed {
			b = append(b, "malformed,"...)
		}
	}
	if rec.Failure != page.None {
		b = append(field.Token(b, strings.ReplaceAll(string(rec.Failure), ",", ";")), ',')
	}
	if len(b) == start {
		return append(b, '-')
	}
	return b[:len(b)-1]
}

var truncations = map[page.Truncation]string{
	page.Length:     "lenTrunc,",
	page.Time:       "timeTrunc,",
	page.Disconnect: "disconnectTrunc,",
}
