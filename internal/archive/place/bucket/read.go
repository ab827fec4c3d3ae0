package bucket

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// readTries is how often a read is begun anew where it stands, without a byte read in between.
const readTries = 6

var (
	errChanged  = errors.New("its bytes are not those that were written: they were changed there, or on their way")
	errReplaced = errors.New("another file has taken its place meanwhile")
)

// byteRange is the Range header of length bytes from offset on, or of all from there on if length is negative; "" for a
// whole file.
func byteRange(offset, length int64) string {
	switch {
	case length >= 0:
		return fmt.Sprintf("bytes=%d-%d", offset, offset+length-1)
	case offset > 0:
		return fmt.Sprintf("bytes=%d-", offset)
	}
	return ""
}

// wholeSize returns the size of the whole file, of which a response may contain only a range.
func wholeSize(length int64, contentRange string) int64 {
	if _, total, is := strings.Cut(contentRange, "/"); is {
		if n, err := strconv.ParseInt(total, 10, 64); err == nil {
			return n
		}
	}
	return length
}

// Open opens a file for reading.
func (p *Place) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	key, err := p.key(name)
	if err != nil {
		return nil, err
	}
	r := &reader{place: p, ctx: ctx, name: name, key: key, at: offset, end: -1}
	if length == 0 || length > 0 && offset+length < 0 {
		length = min(length, 0)
	}
	if length == 0 { // whether there is such a file
		o, err := p.store.head(ctx, key)
		if err != nil {
			return nil, p.explain("open", name, err)
		}
		r.at, r.end = o.size, o.size
		return r, nil
	}
	if length > 0 {
		r.end = offset + length
	}
	if err := r.open(); err != nil {
		if !beyond(err) {
			return nil, p.explain("open", name, err)
		}
		r.end = r.at
	}
	return r, nil
}

// beyond reports whether nothing was read because the file ends before.
func beyond(err error) bool { return status(err) == http.StatusRequestedRangeNotSatisfiable }

type reader struct {
	place     *Place
	ctx       context.Context
	name, key string
	at, end   int64         // -1: not yet known
	body      io.ReadCloser // nil: not open
	found     bool          // the file, whose version and time follow
	version   string
	modified  time.Time
	whole     hash.Hash // of the bytes read so far; nil unless the whole file is read and the store has its digest
	want      string    // its digest in hex
	closed    bool
}

// open begins where the reader stands.
func (r *reader) open() error {
	length := int64(-1)
	if r.end >= 0 {
		length = r.end - r.at
	}
	body, err := r.place.store.get(r.ctx, r.key, r.at, length, r.version)
	if err != nil {
		if status(err) == http.StatusPreconditionFailed {
			return errReplaced
		}
		return err
	}
	switch {
	case !r.found:
		r.found, r.modified, r.version = true, body.modified, body.version
		if r.at == 0 && r.end < 0 {
			r.whole, r.want = body.digest, body.want
		}
		if r.end < 0 || r.end > body.size {
			r.end = body.size
		}
	case !r.modified.Equal(body.modified), r.version != body.version: // not all servers know preconditions
		return errors.Join(errReplaced, body.Close())
	}
	r.body = body
	return nil
}

func (r *reader) Read(b []byte) (int, error) {
	if r.closed {
		return 0, fs.ErrClosed
	}
	if r.at >= r.end {
		return 0, io.EOF
	}
	b = b[:min(int64(len(b)), r.end-r.at)]
	for try, pause := 1, r.place.pause; ; try, pause = try+1, 2*pause {
		n, err := r.read(b)
		r.at += int64(n)
		if r.whole != nil {
			r.whole.Write(b[:n])
			if r.at == r.end && n > 0 && hex.EncodeToString(r.whole.Sum(nil)) != r.want {
				err = errChanged
			}
		}
		if errors.Is(err, errChanged) {
			return n, r.place.explain("read", r.name, err)
		}
		if n > 0 || err == nil {
			return n, nil
		}
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if try == readTries || r.ctx.Err() != nil || errors.Is(err, errReplaced) || isNotFound(err) {
			return 0, r.place.explain("read", r.name, fmt.Errorf("from byte %d on: %w", r.at, err))
		}
		select {
		case <-time.After(pause):
		case <-r.ctx.Done():
			return 0, r.ctx.Err()
		}
	}
}

// read reads once, and gives the answer up when that fails.
func (r *reader) read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	if r.body == nil {
		if err := r.open(); err != nil {
			return 0, err
		}
	}
	n, err := r.body.Read(b)
	if err != nil {
		_ = r.body.Close() // it failed, or is at its end
		r.body = nil
	}
	return n, err
}

func (r *reader) Close() error {
	r.closed = true
	if r.body == nil {
		return nil
	}
	err := r.body.Close()
	r.body = nil
	return err
}
