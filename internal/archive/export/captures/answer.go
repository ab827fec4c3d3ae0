package captures

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"

	"kumo/internal/base/page"
	"kumo/internal/base/vfs"
	"kumo/internal/content/fetch"
	"kumo/internal/state/store/warc"
)

// MaxBody is how many bytes of a body are given. What is longer is cut off.
const MaxBody = 1 << 30

// An RecordError is a record that cannot be read. It says which.
type RecordError struct {
	Location
	Err error
}

func (e *RecordError) Error() string {
	return fmt.Sprintf("the record at %d of warc/%s cannot be read: %v", e.Offset, e.File, e.Err)
}

func (e *RecordError) Unwrap() error { return e.Err }

// ReadResponse reads a capture's answer: head, and body without transfer and content codings. Truncated and Malformed say
// what it lacks. What cannot be read is an [RecordError].
func (r *Reader) ReadResponse(c *Capture) (*page.Response, error) {
	head, err := r.files.record(c.Head)
	if err != nil {
		return nil, err
	}
	resp := &page.Response{URL: c.URL, Status: c.Status}
	resp.Truncated = page.Truncation(head.Fields["WARC-Truncated"])
	if c.Body == nil {
		return resp, r.read(resp, head, c.Head, true)
	}
	if len(head.Block) > 0 { // of one that says no more than that all is as before nothing is kept
		if err := r.read(resp, head, c.Head, true); err != nil {
			return nil, err
		}
	}
	body, err := r.files.record(*c.Body)
	if err != nil {
		return nil, err
	}
	resp.Truncated = page.Truncation(body.Fields["WARC-Truncated"])
	return resp, r.read(resp, body, *c.Body, resp.Header == nil)
}

// read fills resp from a record, with its header fields or with the body alone.
func (r *Reader) read(resp *page.Response, rec *warc.Record, at Location, fields bool) error {
	answer, err := rec.Response()
	if err != nil {
		return &RecordError{at, err}
	}
	defer answer.Body.Close()
	if fields {
		resp.Header = answer.Header
	}
	resp.Payload, err = io.ReadAll(io.LimitReader(answer.Body, r.maxBody))
	if err != nil && resp.Truncated == page.Whole {
		resp.Malformed = err.Error() // what there is of it will do
	}
	coded := page.Response{URL: resp.URL, Header: answer.Header, Payload: resp.Payload}
	if err := fetch.Decode(&coded, r.maxBody); err != nil {
		resp.Malformed = err.Error()
	}
	resp.Body = coded.Body
	return nil
}

// Redirects reports whether an answer with the status leads elsewhere.
func Redirects(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect,
		http.StatusPermanentRedirect:
		return true
	}
	return false
}

// files are the WARC files, a few of them open.
type files struct {
	disk      vfs.FS
	dir       string
	open      map[string]*file
	turn      int64
	maxRecord int64 // bytes of a record
}

type file struct {
	src  vfs.ReaderAt
	in   *warc.Reader
	used int64
}

const maxOpenFiles = 16 // files, each with two buffers

func newFiles(disk vfs.FS, dir string, most int64) *files {
	return &files{disk: disk, dir: filepath.Join(dir, "warc"), open: map[string]*file{}, maxRecord: most}
}

// record reads a record. It is valid until the next.
func (f *files) record(at Location) (*warc.Record, error) {
	in, err := f.reader(at.File)
	if err != nil {
		return nil, &RecordError{at, err}
	}
	in.SeekTo(at.Offset)
	rec, err := in.Next()
	if err != nil {
		return nil, &RecordError{at, err}
	}
	if n, err := strconv.ParseInt(rec.Fields["Content-Length"], 10, 64); err != nil || n != int64(len(rec.Block)) {
		return nil, &RecordError{at, errors.New("it is not whole")}
	}
	return rec, nil
}

func (f *files) reader(name string) (*warc.Reader, error) {
	f.turn++
	if was, ok := f.open[name]; ok {
		was.used = f.turn
		return was.in, nil
	}
	if len(f.open) >= maxOpenFiles {
		if err := f.evict(); err != nil {
			return nil, err
		}
	}
	src, size, err := f.openFile(name)
	if err != nil {
		return nil, err
	}
	in, err := warc.NewReader(src, size, name)
	if err != nil {
		return nil, errors.Join(err, src.Close())
	}
	in.SetLimit(f.maxRecord)
	f.open[name] = &file{src, in, f.turn}
	return in, nil
}

// openFile opens a file by the name that it has when it is closed.
func (f *files) openFile(name string) (vfs.ReaderAt, int64, error) {
	if strings.ContainsAny(name, `/\`) {
		return nil, 0, fmt.Errorf("%q is no file's name", name)
	}
	there := filepath.Join(f.dir, name)
	size, err := f.disk.Size(there)
	if errors.Is(err, fs.ErrNotExist) {
		there += openEnding
		size, err = f.disk.Size(there)
	}
	if err != nil {
		return nil, 0, err
	}
	src, err := f.disk.OpenAt(there)
	return src, size, err
}

// evict closes the file that was used least lately.
func (f *files) evict() error {
	oldest := ""
	for name, x := range f.open {
		if oldest == "" || x.used < f.open[oldest].used {
			oldest = name
		}
	}
	src := f.open[oldest].src
	delete(f.open, oldest)
	return src.Close()
}

func (f *files) close() (err error) {
	for _, x := range f.open {
		err = errors.Join(err, x.src.Close())
	}
	clear(f.open)
	return err
}
