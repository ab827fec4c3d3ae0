package captures

import (
	"bytes"
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
	"kumo/internal/content/document"
	"kumo/internal/content/fetch"
	"kumo/internal/content/parse"
	"kumo/internal/state/store/warc"
)

// MaxBody limits the bytes of a body that are returned. Longer bodies are truncated.
const MaxBody = 1 << 30

// A RecordError is the error of a record that cannot be read.
type RecordError struct {
	Location
	Err error
}

func (e *RecordError) Error() string {
	return fmt.Sprintf("cannot read the record at byte %d of warc/%s: %v", e.Offset, e.File, e.Err)
}

func (e *RecordError) Unwrap() error { return e.Err }

// ReadResponse reads the response of a capture: the head, and the body without transfer and content codings. Truncated
// and Malformed tell how it is incomplete. If the record cannot be read, the error is a [RecordError].
func (r *Reader) ReadResponse(c *Capture) (*page.Response, error) {
	resp, _, err := r.readResponse(c)
	return resp, err
}

// An Answer is the response of a capture, and what is read of it.
type Answer struct {
	*page.Response
	// Shown is the response from which the page is read: of a page that the crawl has rendered, the document after its
	// scripts; of a PDF or the like, its HTML form; otherwise Response.
	Shown *page.Response
	// Document is what was read of a PDF, an office document or an e-book; nil if Response is none, and if documents are
	// not read.
	Document *document.Document
}

// ReadAnswer is ReadResponse, and also returns what is read of the response.
func (r *Reader) ReadAnswer(c *Capture) (*Answer, error) {
	resp, after, err := r.readResponse(c)
	if err != nil {
		return nil, err
	}
	a := &Answer{Response: resp, Shown: resp}
	if after != nil {
		html, err := r.files.conversion(after)
		if err != nil {
			return nil, err
		}
		if html != nil {
			a.Shown = resp.Rendered(html)
			return a, nil
		}
	}
	if r.documents != nil {
		if a.Document = document.ReadResponse(resp, r.documents); a.Document != nil {
			a.Shown = a.Document.Shown(resp)
		}
	}
	return a, nil
}

// A successor is the location after the response record of a visit whose page may be rendered.
type successor struct {
	Location
	id string // of the response record
}

func (r *Reader) readResponse(c *Capture) (resp *page.Response, after *successor, err error) {
	head, err := r.files.record(c.Head)
	if err != nil {
		return nil, nil, err
	}
	if c.mayBeRendered() {
		after = successorOf(c.Head.File, head)
	}
	resp = &page.Response{URL: c.URL, Status: c.Status}
	resp.Truncated = page.Truncation(head.Fields["WARC-Truncated"])
	if c.Body == nil {
		return resp, after, r.read(resp, head, c.Head, true)
	}
	isUnmodified := head.IsUnmodified()
	if len(head.Block) > 0 { // a revisit may have no head; then the one of the other record is used
		if err := r.read(resp, head, c.Head, true); err != nil {
			return nil, nil, err
		}
	}
	body, err := r.files.record(*c.Body)
	if err != nil {
		return nil, nil, err
	}
	if isUnmodified && (c.Visit == nil || c.BodyRendered) { // the server has said that the page is as it was
		after = successorOf(c.Body.File, body)
	}
	resp.Truncated = page.Truncation(body.Fields["WARC-Truncated"])
	return resp, after, r.read(resp, body, *c.Body, resp.Header == nil)
}

// mayBeRendered reports whether the visit may have rendered the page.
func (c *Capture) mayBeRendered() bool {
	if c.Visit != nil {
		return c.Visit.Rendered
	}
	return (c.Type == "" || parse.IsHTML(c.Type)) && c.Status == http.StatusOK
}

func successorOf(file string, rec *warc.Record) *successor {
	return &successor{Location{File: file, Offset: rec.Offset + rec.Length}, rec.ID()}
}

// read fills resp from a record: the body, and if fields is set the header fields.
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
		resp.Malformed = err.Error() // use the part that could be decoded
	}
	coded := page.Response{URL: resp.URL, Header: answer.Header, Payload: resp.Payload}
	if err := fetch.Decode(&coded, r.maxBody); err != nil {
		resp.Malformed = err.Error()
	}
	resp.Body = coded.Body
	return nil
}

// Redirects reports whether a status is a redirect.
func Redirects(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect,
		http.StatusPermanentRedirect:
		return true
	}
	return false
}

// files are the WARC files. A few of them are open.
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

// record reads a record. It is valid until the next call.
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
		return nil, &RecordError{at, errors.New("the record is incomplete")}
	}
	return rec, nil
}

// conversion returns the document of a rendered page; nil if the page was not rendered. The records of a visit are
// adjacent: response, request, metadata, conversion.
func (f *files) conversion(at *successor) ([]byte, error) {
	in, err := f.reader(at.File)
	if err != nil {
		return nil, &RecordError{at.Location, err}
	}
	in.SeekTo(at.Offset)
	for {
		next := in.Offset()
		rec, err := in.Next()
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, warc.ErrTorn):
			return nil, nil
		case err != nil:
			return nil, &RecordError{Location{File: at.File, Offset: next}, err}
		case rec.ResponseID() != at.id:
			return nil, nil
		}
		switch rec.Fields["WARC-Type"] {
		case "conversion":
			return bytes.Clone(rec.Block), nil
		case "metadata":
			if !bytes.Contains(rec.Block, []byte("\nrendered: ")) {
				return nil, nil
			}
		}
	}
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

// openFile opens a WARC file by its final name, whether it is closed yet or not.
func (f *files) openFile(name string) (vfs.ReaderAt, int64, error) {
	if strings.ContainsAny(name, `/\`) {
		return nil, 0, fmt.Errorf("invalid file name %q", name)
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

// evict closes the least recently used file.
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
