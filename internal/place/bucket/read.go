package bucket

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
)

// readTries is how often a read is begun anew where it stands, without a byte read in between.
const readTries = 6

var (
	errChanged  = errors.New("its bytes are not those that were written: they were changed there, or on their way")
	errReplaced = errors.New("another file has taken its place meanwhile")
)

func byteRange(first, last int64) string { return fmt.Sprintf("bytes=%d-%d", first, last) }

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
		info, err := p.bucket.Attributes(ctx, key)
		if err != nil {
			return nil, p.explain("open", name, err)
		}
		r.at, r.end = info.Size, info.Size
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
func beyond(err error) bool {
	return code(err) == "InvalidRange" || strings.Contains(err.Error(), "StatusCode: 416") || // S3's words, and Google's
		strings.Contains(err.Error(), "response code 416")
}

type reader struct {
	place     *Place
	ctx       context.Context
	name, key string
	at, end   int64 // -1: not yet known
	body      *blob.Reader
	etag      string
	modified  time.Time
	whole     hash.Hash // of what was read, where all of a file is that has its digest with it; otherwise nil
	want      string    // its digest in hex
	closed    bool
}

// open begins where the reader stands.
func (r *reader) open() error {
	opts := &blob.ReaderOptions{BeforeRead: func(as func(any) bool) error {
		var in *s3.GetObjectInput
		if r.etag != "" && as(&in) {
			in.IfMatch = &r.etag
		}
		return nil
	}}
	length := int64(-1)
	if r.end >= 0 {
		length = r.end - r.at
	}
	body, err := r.place.bucket.NewRangeReader(r.ctx, r.key, r.at, length, opts)
	if err != nil {
		if gcerrors.Code(err) == gcerrors.FailedPrecondition {
			return errReplaced
		}
		return err
	}
	var out s3.GetObjectOutput
	isS3 := body.As(&out)
	switch {
	case r.modified.IsZero():
		r.modified = body.ModTime()
		if isS3 {
			r.etag = aws.ToString(out.ETag)
			if want := out.Metadata[digestKey]; want != "" && r.at == 0 && r.end < 0 {
				r.whole, r.want = sha256.New(), want
			}
		}
		if r.end < 0 || r.end > body.Size() {
			r.end = body.Size()
		}
	case !r.modified.Equal(body.ModTime()), isS3 && r.etag != aws.ToString(out.ETag): // not all servers know If-Match
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
		if try == readTries || r.ctx.Err() != nil || errors.Is(err, errReplaced) || isGone(err) {
			return 0, r.place.explain("read", r.name, fmt.Errorf("from byte %d on: %w", r.at, err))
		}
		select {
		case <-time.After(pause):
		case <-r.ctx.Done():
			return 0, r.ctx.Err()
		}
	}
}

func isGone(err error) bool { return gcerrors.Code(err) == gcerrors.NotFound }

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
