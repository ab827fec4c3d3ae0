// Package lookup reads individual pages from the files in a crawl's folder. It returns records from the newest on, a
// record with its answer, links and text, and the location of a URL's newest answer.
//
// Nothing is kept in memory between queries. Each query is bounded, whatever the size of the crawl. The crawl can be
// running: newly fetched pages become visible within moments.
package lookup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kumo/internal/base/field"
	"kumo/internal/base/vfs"
	"kumo/internal/content/document"
	"kumo/internal/state/store/jsonl"
)

// An Archive gives access to the files of one crawl. It is safe for concurrent use.
type Archive struct {
	disk  vfs.FS
	dir   string
	slots chan struct{} // limits concurrent reads of records

	documents document.Reader // nil: documents are not read
}

// maxReaders limits the concurrent reads of records: each may need twice [MaxBody].
const maxReaders = 4

// New returns the archive of the crawl in dir. Its PDFs, office documents and e-books are read with documents; nil: they
// have no text.
func New(disk vfs.FS, dir string, documents document.Reader) *Archive {
	return &Archive{disk, dir, make(chan struct{}, maxReaders), documents}
}

const (
	pagesName   = "pages.jsonl"
	skippedName = "skipped.jsonl"
)

// A Record is a visit, as in its line in pages.jsonl, whose JSON members it has.
type Record struct {
	ID int64 `json:"id"` // offset of its line
	jsonl.PageLine
}

// A Filter selects records. The zero value selects all.
type Filter struct {
	Status string // 404; 4xx for a class; 0 for visits without a response
	Type   string // a media type or a prefix of it: text/
	Prefix string // of the URL without its scheme: a host, or more
	Lang   string // a language tag or a prefix of it: en
	Day    string // 2026-11-21, or a month: 2026-11
}

func (f *Filter) matches(r *Record) bool {
	if f.Prefix != "" {
		_, rest, _ := strings.Cut(r.URL, "://")
		if !strings.HasPrefix(rest, f.Prefix) && !strings.HasPrefix(r.URL, f.Prefix) {
			return false
		}
	}
	if !strings.HasPrefix(r.Type, f.Type) || len(r.Lang) < len(f.Lang) ||
		!strings.EqualFold(r.Lang[:len(f.Lang)],
			f.Lang) || f.Day != "" && !strings.HasPrefix(r.Time.UTC().Format(time.DateOnly), f.Day) {
		return false
	}
	status := fmt.Sprint(r.Status)
	if class, is := strings.CutSuffix(f.Status, "xx"); is {
		return len(status) == 3 && status[:1] == class
	}
	return f.Status == "" || status == f.Status
}

// days returns the beginning and end of the filter's day or month; zero times if it has none.
func (f *Filter) days() (from, to time.Time, err error) {
	if f.Day == "" {
		return from, to, nil
	}
	if from, err = time.Parse(time.DateOnly, f.Day); err == nil {
		return from, from.AddDate(0, 0, 1), nil
	}
	if from, err = time.Parse("2006-01", f.Day); err == nil {
		return from, from.AddDate(0, 1, 0), nil
	}
	// A day that does not exist in its month selects nothing.
	var day int
	if _, err := fmt.Sscanf(f.Day, "%d-%d-%d", new(int), new(int), &day); err == nil && len(f.Day) == len(time.DateOnly) &&
		1 <= day && day <= 31 {
		if from, err = time.Parse("2006-01", f.Day[:7]); err == nil {
			from = from.AddDate(0, 0, day-1)
			return from, from.AddDate(0, 0, 1), nil
		}
	}
	return from, to, fmt.Errorf("day %q: give a day such as 2026-11-21, or a month such as 2026-11", f.Day)
}

// Check returns an error if the filter is invalid.
func (f *Filter) Check() error {
	if _, _, err := f.days(); err != nil {
		return err
	}
	digits := strings.TrimSuffix(f.Status, "xx")
	if strings.Trim(digits, "0123456789") != "" || len(f.Status) > 3 || f.Status != digits && len(digits) != 1 {
		return fmt.Errorf("status %q: give a number such as 404, a class such as 4xx, or 0 for visits without a "+
			"response", f.Status)
	}
	return nil
}

const (
	stepBytes = 256 << 10 // of one read
	scanBytes = 4 << 20   // scanned for one list
	lineBytes = 2 << 20   // maximum length of a line; longer ones are damaged
)

// scanTime limits the time for one list on a slow or busy disk; the next list continues after it.
var scanTime = 120 * time.Millisecond

// Last is the cursor of the newest record.
const Last = -1

// List returns up to n records that match a filter, newest first, starting at a cursor, and the cursor for the next
// call; 0 at the end. It scans a bounded part of the records: there may be fewer than n, or none, and more after them.
func (a *Archive) List(ctx context.Context, f Filter, cursor int64, n int) (records []Record, next int64, err error) {
	from, to, err := f.days()
	if err != nil {
		return nil, 0, err
	}
	if f.Day != "" {
		if cursor, err = a.seekTime(ctx, to.Add(maxDisorder), cursor); err != nil || cursor == 0 {
			return nil, 0, err
		}
	}
	// Stop when a long run of records is too old. Single old records may be followed by newer ones, because kumo repair
	// appends restored records.
	over, young, may, until := false, int64(0), f.mayMatch, time.Now().Add(scanTime)
	if f.Day != "" {
		may = func([]byte) bool { return true } // the time of each record is needed
	}
	next, err = a.eachRecord(ctx, cursor, may, func(r *Record, gone int64) (bool, error) {
		if r != nil && f.matches(r) {
			records = append(records, *r)
		}
		if f.Day == "" || r != nil && !r.Time.Before(from.Add(-maxDisorder)) {
			young = gone
		}
		over = gone-young > 4*stepBytes
		return !over && len(records) < n && (gone < scanBytes || len(records) == 0 && gone < 4*scanBytes) &&
			(gone < stepBytes || time.Now().Before(until)), nil
	})
	if over {
		next = 0
	}
	return records, next, err
}

// Excluded returns up to n URLs in scope that a rule excluded, newest first, starting at a cursor, and the cursor for
// the next call; 0 at the end. An empty rule selects all. Like List, it scans a bounded part of the file: there may be
// fewer than n, or none, and more after them.
func (a *Archive) Excluded(ctx context.Context, rule string, cursor int64, n int) (all []jsonl.SkipLine,
	next int64, err error) {
	until := time.Now().Add(scanTime)
	next, err = a.eachFileLineBack(ctx, skippedName, cursor, func(line []byte, _, gone int64) (bool, error) {
		var x jsonl.SkipLine
		if json.Unmarshal(line, &x) == nil && (rule == "" || x.Rule == rule) {
			all = append(all, x)
		}
		return len(all) < n && gone < 4*scanBytes && (gone < stepBytes || time.Now().Before(until)), nil
	})
	return all, next, err
}

// maxDisorder is the maximum difference in order and time of records. Their times are those of the requests, and they
// are in the order of completion.
const maxDisorder = time.Hour

// endOffset returns the end of the lines before a cursor in a file of the crawl; 0 if the file does not exist.
func (a *Archive) endOffset(name string, cursor int64) (int64, error) {
	size, err := a.disk.Size(filepath.Join(a.dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if cursor < 0 || cursor > size {
		cursor = size
	}
	return cursor, err
}

// seekTime returns an approximate end of the records before a cursor that are not newer than a time; it is never too
// low. It reads only a few records.
func (a *Archive) seekTime(ctx context.Context, t time.Time, cursor int64) (int64, error) {
	cursor, err := a.endOffset(pagesName, cursor)
	if err != nil {
		return 0, err
	}
	// Invariant: the last record before from is not newer, unless from is 0; the one after to is newer, or does not
	// exist.
	from, to := int64(0), cursor
	for to-from > stepBytes {
		middle := from + (to-from)/2
		var at int64
		var last *Record // before the middle
		if at, err = a.eachRecord(ctx, middle, func([]byte) bool { return true },
			func(r *Record, _ int64) (bool, error) { last = r; return r == nil, nil }); err != nil {
			return 0, err
		}
		switch {
		case last == nil || at < from: // a single line spans from that record to the middle
			return to, nil
		case last.Time.After(t):
			to = middle
		default:
			from = middle
		}
	}
	return to, nil
}

// mayMatch reports whether a line may match the filter, without decoding all of it. A line begins with its URL.
func (f *Filter) mayMatch(line []byte) bool {
	url, is := bytes.CutPrefix(line, []byte(`{"url":"`))
	if f.Prefix == "" || !is {
		return true
	}
	begin := field.JSON(nil, f.Prefix)
	begin = begin[1 : len(begin)-1]
	if i := bytes.Index(url[:min(len(url), len("https://"))], []byte("://")); i >= 0 && bytes.HasPrefix(url[i+len("://"):],
		begin) {
		return true
	}
	return bytes.HasPrefix(url, begin)
}

// eachRecord calls f with the records before a cursor, newest first, until f returns false, and returns the cursor for
// the next call. gone is the number of bytes scanned. The record is nil for a line that may rejects, and for a damaged
// line, which kumo verify reports.
func (a *Archive) eachRecord(ctx context.Context, cursor int64, may func(line []byte) bool,
	f func(r *Record, gone int64) (more bool, err error)) (next int64, err error) {
	return a.eachFileLineBack(ctx, pagesName, cursor, func(line []byte, at, gone int64) (bool, error) {
		if !may(line) {
			return f(nil, gone)
		}
		r := &Record{ID: at}
		if json.Unmarshal(line, r) != nil {
			r = nil
		}
		return f(r, gone)
	})
}

// eachFileLineBack calls f with the lines of a file before a cursor, last first, with their offsets and the number of
// bytes scanned, until f returns false. It returns the cursor for the next call.
func (a *Archive) eachFileLineBack(ctx context.Context, name string, cursor int64,
	f func(line []byte, at, gone int64) (more bool, err error)) (next int64, err error) {
	if cursor, err = a.endOffset(name, cursor); err != nil || cursor == 0 {
		return 0, err
	}
	src, err := a.disk.OpenAt(filepath.Join(a.dir, name))
	if err != nil {
		return 0, err
	}
	defer func() { _ = src.Close() }() // it is only read
	err = eachLineBack(src, cursor, func(line []byte, at int64) (bool, error) {
		if next = at; ctx.Err() != nil {
			return false, ctx.Err()
		}
		return f(line, at, cursor-at)
	})
	if err != nil {
		err = fmt.Errorf("read %s: %w", name, err)
	}
	return next, err
}

// eachLineBack calls f with the lines before end, last first, until f returns false. Text after the last newline is
// ignored. A line is valid until f returns.
func eachLineBack(src vfs.ReaderAt, end int64, f func(line []byte, at int64) (more bool, err error)) error {
	var tail []byte  // end of the line whose beginning is not read yet
	var room []byte  // buffer for blocks
	var begins []int // offsets of lines in the block, each after a newline
	whole := false   // tail ends at a newline
	for at := end; at > 0; {
		n := int(min(stepBytes, at))
		at -= int64(n)
		room = slices.Grow(room[:0], n+len(tail))[:n+len(tail)]
		copy(room[n:], tail) // it is in a separate buffer
		if _, err := src.ReadAt(room[:n], at); err != nil {
			return err
		}
		begins = begins[:0]
		for i := 0; i < n; {
			next := bytes.IndexByte(room[i:n], '\n')
			if next < 0 {
				break
			}
			i += next + 1
			begins = append(begins, i)
		}
		block := room
		for _, begin := range slices.Backward(begins) {
			if whole && begin < len(block) {
				if more, err := f(block[begin:], at+int64(begin)); !more || err != nil {
					return err
				}
			}
			block, whole = block[:begin-1], true
		}
		if tail = append(tail[:0], block...); len(tail) > lineBytes {
			return fmt.Errorf("a line has more than %d bytes", lineBytes)
		}
	}
	if whole && len(tail) > 0 {
		_, err := f(tail, 0)
		return err
	}
	return nil
}

// ErrNoRecord means that there is no record with the id.
var ErrNoRecord = errors.New("there is no such record")

// Record reads the record whose line begins at offset id.
func (a *Archive) Record(id int64) (*Record, error) {
	src, err := a.disk.OpenAt(filepath.Join(a.dir, pagesName))
	if errors.Is(err, fs.ErrNotExist) || id < 0 {
		return nil, ErrNoRecord
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = src.Close() }() // it is only read
	from := max(id-1, 0)
	for room := 4 << 10; room <= lineBytes; room *= 8 {
		b := make([]byte, room)
		n, err := src.ReadAt(b, from)
		b = b[:n]
		if id > 0 && (n == 0 || b[0] != '\n') {
			return nil, ErrNoRecord
		}
		line, _, ended := bytes.Cut(b[id-from:], []byte("\n"))
		r := Record{ID: id}
		switch {
		case ended && json.Unmarshal(line, &r) == nil:
			return &r, nil
		case ended || err != nil:
			return nil, ErrNoRecord
		}
	}
	return nil, ErrNoRecord
}
