package place

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"time"
)

// resumeTries limits the tries of a read without progress.
const resumeTries = 6

// A ResumingReader reads a part of a file, and opens the file again at the current offset when a read has failed.
type ResumingReader struct {
	Ctx     context.Context
	At, End int64         // offsets in the file
	Pause   time.Duration // before the first retry; doubles each time
	// Reopen opens the file at At.
	Reopen func() (io.ReadCloser, error)
	// Check is called with the bytes just read, which end at At; may be nil. Its error ends the reader.
	Check func(b []byte) error
	// IsPermanent reports whether retrying after an error is useless.
	IsPermanent func(err error) bool
	// Explain converts the error that Read returns.
	Explain func(err error) error

	Body   io.ReadCloser // nil: not open
	closed bool
}

func (r *ResumingReader) Read(b []byte) (int, error) {
	if r.closed {
		return 0, fs.ErrClosed
	}
	if r.At >= r.End {
		return 0, io.EOF
	}
	b = b[:min(int64(len(b)), r.End-r.At)]
	for try, pause := 1, r.Pause; ; try, pause = try+1, 2*pause {
		n, err := r.read(b)
		r.At += int64(n)
		if r.Check != nil {
			if err := r.Check(b[:n]); err != nil {
				return n, r.Explain(err)
			}
		}
		if n > 0 || err == nil {
			return n, nil
		}
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF // the file has become shorter
		}
		if try == resumeTries || r.Ctx.Err() != nil || r.IsPermanent(err) {
			return 0, r.Explain(err)
		}
		if err := Sleep(r.Ctx, pause); err != nil {
			return 0, err
		}
	}
}

// read reads once, and closes Body after an error.
func (r *ResumingReader) read(b []byte) (int, error) {
	if err := r.Ctx.Err(); err != nil {
		return 0, err
	}
	if r.Body == nil {
		body, err := r.Reopen()
		if err != nil {
			return 0, err
		}
		r.Body = body
	}
	n, err := r.Body.Read(b)
	if err != nil {
		_ = r.Body.Close() // it failed, or is at its end
		r.Body = nil
	}
	return n, err
}

// Close closes the file.
func (r *ResumingReader) Close() error {
	r.closed = true
	body := r.Body
	if r.Body = nil; body == nil {
		return nil
	}
	return body.Close()
}

// Sleep waits for a duration or until the context ends.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
