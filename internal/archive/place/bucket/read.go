package bucket

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"kumo/internal/archive/place"
	"net/http"
	"strconv"
	"strings"
	"time"
)

var (
	errChanged  = errors.New("content does not match its digest: it was changed in the store or during transfer")
	errReplaced = errors.New("the file was replaced while it was read")
)

// byteRange returns the Range header for length bytes from offset, or for all bytes from offset if length is negative;
// "" for a whole file.
func byteRange(offset, length int64) string {
	switch {
	case length >= 0:
		return fmt.Sprintf("bytes=%d-%d", offset, offset+length-1)
	case offset > 0:
		return fmt.Sprintf("bytes=%d-", offset)
	}
	return ""
}

// wholeSize returns the size of the whole file, also if a response contains only a range.
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
	r := &reader{ResumingReader: place.ResumingReader{Ctx: ctx, At: offset, End: -1, Pause: p.pause},
		store: p.store, key: key}
	r.Reopen, r.Check, r.IsPermanent = r.open, r.check, func(err error) bool {
		return errors.Is(err, errReplaced) || isNotFound(err)
	}
	r.Explain = func(err error) error {
		if !errors.Is(err, errChanged) {
			err = fmt.Errorf("from byte %d on: %w", r.At, err)
		}
		return p.explain("read", name, err)
	}
	if length == 0 || length > 0 && offset+length < 0 {
		length = min(length, 0)
	}
	if length == 0 { // still check that the file exists
		o, err := p.store.head(ctx, key)
		r.At, r.End = o.size, o.size
		return opened(r, p.explain("open", name, err))
	}
	if length > 0 {
		r.End = offset + length
	}
	if r.Body, err = r.open(); isBeyondEnd(err) {
		r.End, err = r.At, nil
	}
	return opened(r, p.explain("open", name, err))
}

func opened(r *reader, err error) (io.ReadCloser, error) {
	if err != nil {
		return nil, err
	}
	return r, nil
}

// isBeyondEnd reports whether an error means that the offset is at or after the end of the file.
func isBeyondEnd(err error) bool { return status(err) == http.StatusRequestedRangeNotSatisfiable }

type reader struct {
	place.ResumingReader
	store    store
	key      string
	found    bool // version and modified are known
	version  string
	modified time.Time
	whole    hash.Hash // hash of the bytes read so far; nil unless the whole file is read and the store has its digest
	want     string    // expected digest in hex
}

// open starts reading at the reader's offset. The first call determines the end.
func (r *reader) open() (io.ReadCloser, error) {
	length := int64(-1)
	if r.End >= 0 {
		length = r.End - r.At
	}
	body, err := r.store.get(r.Ctx, r.key, r.At, length, r.version)
	if err != nil {
		if status(err) == http.StatusPreconditionFailed {
			return nil, errReplaced
		}
		return nil, err
	}
	switch {
	case !r.found:
		r.found, r.modified, r.version = true, body.modified, body.version
		if r.At == 0 && r.End < 0 {
			r.whole, r.want = body.digest, body.want
		}
		if r.End < 0 || r.End > body.size {
			r.End = body.size
		}
	case !r.modified.Equal(body.modified), r.version != body.version: // not all servers support preconditions
		return nil, errors.Join(errReplaced, body.Close())
	}
	return body, nil
}

// check compares the digest after the last byte of the file.
func (r *reader) check(b []byte) error {
	if r.whole == nil {
		return nil
	}
	r.whole.Write(b)
	if r.At == r.End && len(b) > 0 && hex.EncodeToString(r.whole.Sum(nil)) != r.want {
		return errChanged
	}
	return nil
}
