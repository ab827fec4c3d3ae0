package follow

import (
	"encoding/base32"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"kumo/internal/archive/sink"
	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/vfs"
	"kumo/internal/state/store"
	"kumo/internal/state/store/jsonl"
)

// A reader builds records from a crawl's files. The lines of a page in pages.jsonl, text.jsonl and fields.jsonl are
// written within one batch of the journal, but not in the same order. The reader therefore looks ahead in text.jsonl
// and fields.jsonl, by more lines than a batch can have.
type reader struct {
	disk    vfs.FS
	dir     string
	rules   func(url string) []page.FieldRule // nil: unknown
	files   [len(names)]vfs.ReaderAt          // nil: not open
	ahead   [len(names)]lookahead             // of texts and fields
	used    [len(names)][]uint64              // of the current batch: entries to drop after it is sent
	at      position
	saved   position // last saved position
	savedAt time.Time
}

const defaultWindow = 1 << 16 // lines to look ahead

// A lookahead has the locations of the next lines of a file, by page.
type lookahead struct {
	limit int   // maximum number of lines
	read  int64 // offset up to which the file was scanned
	lines map[uint64][]span
	count int
	seen  int64 // lines scanned
	used  int64 // last of them that belongs to a page that was sent
}

type span struct {
	at, nth int64
	len     int32
}

func newReader(disk vfs.FS, dir string, rules func(url string) []page.FieldRule) reader {
	r := reader{disk: disk, dir: dir, rules: rules}
	for i := range r.ahead {
		r.ahead[i].limit, r.ahead[i].lines = defaultWindow, map[uint64][]span{}
	}
	return r
}

// resumeAt sets the position.
func (r *reader) resumeAt(p position) {
	r.at, r.saved = p, p
	for i := range r.ahead {
		r.ahead[i].read = p.Lengths[i]
	}
}

func (r *reader) close() (err error) {
	for i, f := range r.files {
		if f != nil {
			err = errors.Join(err, f.Close())
			r.files[i] = nil
		}
	}
	return err
}

func (r *reader) section(i int, from, to int64) (*io.SectionReader, error) {
	if r.files[i] == nil {
		f, err := r.disk.OpenAt(filepath.Join(r.dir, names[i]))
		if err != nil {
			return nil, err
		}
		r.files[i] = f
	}
	return io.NewSectionReader(r.files[i], from, to-from), nil
}

var seed = maphash.MakeSeed()

// key returns a hash that identifies a visit.
func key(url string, at time.Time) uint64 {
	return maphash.String(seed, url+"\x00"+at.UTC().Format(time.RFC3339Nano))
}

var errBatchFull = errors.New("the batch is full")

// read builds the next batch from the lines up to a length. It returns its end and its number of lines.
func (r *reader) read(upTo lengths) (batch []sink.Record, next, lines int64, err error) {
	for _, i := range []int{texts, fields} {
		if err := r.scanAhead(i, upTo[i]); err != nil {
			return nil, 0, 0, err
		}
		r.used[i] = r.used[i][:0]
	}
	next = r.at.Lengths[pages]
	src, err := r.section(pages, next, upTo[pages])
	if err != nil {
		return nil, 0, 0, err
	}
	begin, size := next, 0
	_, err = store.EachLine(src, func(line []byte, at int64) error {
		if len(batch) >= sink.BatchRecords || size >= sink.BatchBytes || lines >= 10*sink.BatchRecords {
			return errBatchFull
		}
		rec, is, err := r.record(line)
		rec.Line = begin + at
		if err != nil {
			return fmt.Errorf("%s at byte %d: %w", names[pages], begin+at, err)
		}
		if is {
			batch = append(batch, rec)
			size += rec.Size()
		}
		next, lines = begin+at+int64(len(line))+1, lines+1
		return nil
	})
	if errors.Is(err, errBatchFull) {
		err = nil
	}
	if err == nil && lines == 0 {
		err = fmt.Errorf("%s at byte %d: incomplete line", names[pages], begin)
	}
	return batch, next, lines, err
}

// record parses a line. It returns false if the response is not good: a server error, a rate limit, or unchanged
// content.
func (r *reader) record(line []byte) (rec sink.Record, is bool, err error) {
	l, err := jsonl.ParsePage(line)
	if err != nil {
		return rec, false, err
	}
	visit := key(l.URL, l.Time)
	r.used[texts], r.used[fields] = append(r.used[texts], visit), append(r.used[fields], visit)
	if l.Status >= http.StatusInternalServerError || l.Status == http.StatusTooManyRequests ||
		l.Status == http.StatusNotModified && l.Recrawl == string(page.Unchanged) || isRobotsTxt(l.URL) || l.Withheld != "" {
		return rec, false, nil
	}
	rec = sink.Record{URL: l.URL, Status: l.Status, Time: l.Time, Type: l.Type, Charset: l.Charset, Lang: l.Lang,
		Title: l.Title,
		H1:    l.H1, Description: l.Description, Canonical: l.Canonical, Bytes: l.Bytes, Digest: l.Digest, Links: l.Links,
		Truncated: l.Truncated, Host: item.HostOf(l.URL), Depth: l.Depth, NoIndex: l.NoIndex,
		Usage: l.Usage}
	if l.ServerIP.IsValid() {
		rec.ServerIP = l.ServerIP.String()
	}
	if r.rules != nil {
		rec.Rules = r.rules(l.URL)
	}
	for _, at := range r.ahead[texts].lines[visit] {
		var t struct{ Headline, Author, Published, Kind, Text, Comments string }
		if err := r.line(texts, at, &t); err != nil {
			return rec, false, err
		}
		rec.Headline, rec.Author, rec.Published = t.Headline, t.Author, t.Published
		rec.Kind, rec.Text, rec.Comments = t.Kind, t.Text, t.Comments
	}
	for _, at := range r.ahead[fields].lines[visit] {
		var f struct {
			Rule   string
			Fields json.RawMessage
		}
		if err := r.line(fields, at, &f); err != nil {
			return rec, false, err
		}
		rec.Fields = append(rec.Fields, sink.Fields{Rule: f.Rule, Values: f.Fields})
	}
	rec.Fit()
	return rec, true, nil
}

// isRobotsTxt reports whether a URL is a host's robots.txt, which is not sent as a page.
func isRobotsTxt(url string) bool {
	_, rest, _ := strings.Cut(url, "://")
	_, path, _ := strings.Cut(rest, "/")
	return path == "robots.txt"
}

func (r *reader) line(i int, at span, to any) error {
	src, err := r.section(i, at.at, at.at+int64(at.len))
	if err != nil {
		return err
	}
	line, err := io.ReadAll(src)
	if err == nil {
		err = json.Unmarshal(line, to)
	}
	if err != nil {
		return fmt.Errorf("%s at byte %d: %w", names[i], at.at, err)
	}
	return nil
}

// scanAhead finds the locations of the next lines of a file.
func (r *reader) scanAhead(i int, upTo int64) error {
	a := &r.ahead[i]
	if a.read >= upTo {
		return nil
	}
	if a.count >= a.limit {
		a.dropLate()
	}
	src, err := r.section(i, a.read, upTo)
	if err != nil {
		return err
	}
	begin := a.read
	_, err = store.EachLine(src, func(line []byte, at int64) error {
		if a.count >= a.limit {
			return errBatchFull
		}
		var of struct {
			URL  string
			Time time.Time
		}
		if err := json.Unmarshal(line, &of); err != nil {
			return fmt.Errorf("%s at byte %d: %w", names[i], begin+at, err)
		}
		visit := key(of.URL, of.Time)
		a.seen++
		a.lines[visit] = append(a.lines[visit], span{begin + at, a.seen, int32(len(line))})
		a.read, a.count = begin+at+int64(len(line))+1, a.count+1
		return nil
	})
	if errors.Is(err, errBatchFull) {
		return nil
	}
	return err
}

// dropLate drops lines of pages that were sent before. They are farther behind the last used line than lines of one
// journal batch can be.
func (a *lookahead) dropLate() {
	late := int64(a.limit / 4)
	for visit, lines := range a.lines {
		if lines[len(lines)-1].nth < a.used-late {
			a.count -= len(lines)
			delete(a.lines, visit)
		}
	}
}

// commit drops the lines of a batch that was sent.
func (r *reader) commit() {
	for i := range r.ahead {
		a := &r.ahead[i]
		for _, visit := range r.used[i] {
			for _, s := range a.lines[visit] {
				a.used = max(a.used, s.nth)
			}
			a.count -= len(a.lines[visit])
			delete(a.lines, visit)
		}
	}
	r.rollback()
}

// rollback keeps the lines of a batch that was not sent.
func (r *reader) rollback() {
	for i := range r.used {
		r.used[i] = r.used[i][:0]
	}
}

// dropUnmatched drops lines without a page, after all pages up to these lengths were read. They belong to pages that
// were sent before texts were enabled.
func (r *reader) dropUnmatched(upTo lengths) {
	for i := range r.ahead {
		r.ahead[i].read = max(r.ahead[i].read, upTo[i])
		clear(r.ahead[i].lines)
		r.ahead[i].count = 0
	}
}

// position returns the position to resume from: in each file, the first line that was not sent.
func (r *reader) position() (position, error) {
	p := r.at
	for _, i := range []int{texts, fields} {
		r.ahead[i].dropLate()
		p.Lengths[i] = r.ahead[i].read
		for _, lines := range r.ahead[i].lines {
			p.Lengths[i] = min(p.Lengths[i], lines[0].at)
		}
	}
	var err error
	p.Behind, err = r.tail(p.Lengths[pages])
	return p, err
}

// tail returns the bytes before an offset of pages.jsonl.
func (r *reader) tail(at int64) (string, error) {
	if at == 0 {
		return "", nil
	}
	src, err := r.section(pages, max(0, at-64), at)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	data, err := io.ReadAll(src)
	return hex.EncodeToString(data), err
}

// digest formats a digest as in pages.jsonl.
func digest(sum page.Digest) string { return "sha1:" + base32.StdEncoding.EncodeToString(sum[:]) }
