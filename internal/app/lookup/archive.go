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
	"kumo/internal/state/store/jsonl"
)

// An Archive is the files of one crawl. Any number of goroutines may use it.
type Archive struct {
	disk  vfs.FS
	dir   string
	slots chan struct{} // whoever reads a record has one
}

// maxReaders is how many records are read at once: each may take [MaxBody] twice.
const maxReaders = 4

// New returns the archive of the crawl in dir.
func New(disk vfs.FS, dir string) *Archive {
	return &Archive{disk, dir, make(chan struct{}, maxReaders)}
}

const (
	pagesName   = "pages.jsonl"
	skippedName = "skipped.jsonl"
)

// A Record is a visit by its line in pages.jsonl, whose members are its fields in JSON.
type Record struct {
	ID int64 `json:"id"` // where its line begins
	jsonl.PageLine
}

// A Filter chooses records. The zero value takes all.
type Filter struct {
	Status string // 404; 4xx for all of a class; 0 for what was not answered
	Type   string // a media type, or how it begins: text/
	Prefix string // of the URL behind its scheme: a host, or more
	Lang   string // a language, or how its tag begins: en
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
		!strings.EqualFold(
			r.Lang[:len(f.Lang)],
			f.Lang,
		) || f.Day != "" && !strings.HasPrefix(r.Time.UTC().Format(time.DateOnly), f.Day) {
		return false
	}
	status := fmt.Sprint(r.Status)
	if class, is := strings.CutSuffix(f.Status, "xx"); is {
		return len(status) == 3 && status[:1] == class
	}
	return f.Status == "" || status == f.Status
}

// days are the times between which the filter's day, or month, is; the zero times if it has none.
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
	// a day that its month has not, of which there is nothing
	var day int
	if _, err := fmt.Sscanf(f.Day, "%d-%d-%d", new(int), new(int), &day); err == nil && len(f.Day) == len(time.DateOnly) &&
		1 <= day && day <= 31 {
		if from, err = time.Parse("2006-01", f.Day[:7]); err == nil {
			from = from.AddDate(0, 0, day-1)
			return from, from.AddDate(0, 0, 1), nil
		}
	}
	return from, to, fmt.Errorf("the day is %q: wanted is one such as 2026-11-21, or a month such as 2026-11", f.Day)
}

// Check says what is wrong with a filter.
func (f *Filter) Check() error {
	if _, _, err := f.days(); err != nil {
		return err
	}
	digits := strings.TrimSuffix(f.Status, "xx")
	if strings.Trim(digits, "0123456789") != "" || len(f.Status) > 3 || f.Status != digits && len(digits) != 1 {
		return fmt.Errorf("the status is %q: wanted is a number such as 404, a class such as 4xx, or 0 for what was not "+
			"answered", f.Status)
	}
	return nil
}

const (
	stepBytes = 256 << 10 // that are read at once
	scanBytes = 4 << 20   // that are gone through for one list
	lineBytes = 2 << 20   // of a line that is read: more is damage
)

// scanTime is how long one list takes on a slow disk, and one that is busy; the next goes on behind it.
var scanTime = 120 * time.Millisecond

// Last is the cursor of the newest record.
const Last = -1

// List gives up to n records that a filter takes, the newest first, from behind a cursor on, and the cursor of what
// follows; 0 if nothing does. It goes through a bounded part of the crawl's records: there may be fewer than n, or
// none, and more behind them.
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
	// What is further back is older than what is wanted once much is, one record after the other: those that kumo repair
	// has made again stand behind younger ones.
	over, young, may, until := false, int64(0), f.mayMatch, time.Now().Add(scanTime)
	if f.Day != "" {
		may = func([]byte) bool { return true } // the time of each is wanted
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

// Excluded returns up to n URLs within reach that a rule excluded, the newest first, from behind a cursor on, and the
// cursor of what follows; 0 if nothing does. With an empty rule it returns those of all. As List it reads a bounded
// part of the file: there may be fewer than n, or none, and more behind them.
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

// maxDisorder is by how much records may be out of the order of their times: these are those at which requests began.
const maxDisorder = time.Hour

// endOffset is where the lines of a file of the crawl end that are before a cursor; 0 if the file is not there.
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

// seekTime is where the records end, before a cursor, that are not all younger than a time; nearly so: none of these is
// behind it. It looks at a few records, however many there are.
func (a *Archive) seekTime(ctx context.Context, t time.Time, cursor int64) (int64, error) {
	cursor, err := a.endOffset(pagesName, cursor)
	if err != nil {
		return 0, err
	}
	// the last line before from is not younger, unless from is 0; the one behind to is, or is not there
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
		case last == nil || at < from: // one line goes from there to the middle
			return to, nil
		case last.Time.After(t):
			to = middle
		default:
			from = middle
		}
	}
	return to, nil
}

// mayMatch reports whether a filter may take the record of a line: others are not worth reading whole. A line begins
// with its URL.
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

// eachRecord calls f with the records from behind a cursor on, the newest first, until f has enough, and gives the cursor of
// what follows. gone is how many bytes of lines were gone through; for a line that may not be wanted, and for one that
// is damaged, which is kumo verify's to tell of, the record is nil.
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

// eachFileLineBack calls f with the lines of a file of the crawl before a cursor, the last first, where they begin and how many
// bytes were gone through with them, until f has enough. It returns the cursor of what follows.
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

// eachLineBack calls f with the lines before end, the last first, until f has enough. What is behind the last line's
// end is no line yet. A line holds until f returns.
func eachLineBack(src vfs.ReaderAt, end int64, f func(line []byte, at int64) (more bool, err error)) error {
	var tail []byte  // of the line whose beginning is not read yet
	var room []byte  // in which blocks are read
	var begins []int // of lines in a block, each behind a line's end
	whole := false   // tail ends where a line does
	for at := end; at > 0; {
		n := int(min(stepBytes, at))
		at -= int64(n)
		room = slices.Grow(room[:0], n+len(tail))[:n+len(tail)]
		copy(room[n:], tail) // which lies elsewhere
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
			return fmt.Errorf("a line of more than %d bytes", lineBytes)
		}
	}
	if whole && len(tail) > 0 {
		_, err := f(tail, 0)
		return err
	}
	return nil
}

// ErrNoRecord is a record that is not there.
var ErrNoRecord = errors.New("there is no such record")

// Record reads the record whose line begins at id.
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
