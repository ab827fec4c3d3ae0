package place

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"time"
)

// resumeTries is how often a read is begun anew where it stands, without a byte read in between.
const resumeTries = 6

// A Resumed is a reader of a part of a file that opens the file again, where it stands, when a read has failed.
type ResumingReader struct {
	Ctx     context.Context
	At, End int64         // in the file
	Pause   time.Duration // before it is opened again; then twice as long
	// Reopen opens the file at At.
	Reopen func() (io.ReadCloser, error)
	// Check looks at what was read, which At is behind; nil: nothing does. Its error ends the reader.
	Check func(b []byte) error
	// IsPermanent reports whether it is of no use to try again after an error.
	IsPermanent func(err error) bool
	// Explain makes the error that Read returns.
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
			err = io.ErrUnexpectedEOF // it was longer when it was opened
		}
		if try == resumeTries || r.Ctx.Err() != nil || r.IsPermanent(err) {
			return 0, r.Explain(err)
		}
		if err := Sleep(r.Ctx, pause); err != nil {
			return 0, err
		}
	}
}

// read reads once, and gives the body up when that fails.
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

// Close lets go of the file.
func (r *ResumingReader) Close() error {
	r.closed = true
	body := r.Body
	if r.Body = nil; body == nil {
		return nil
	}
	return body.Close()
}

// Sleep waits, unless the context ends before.
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
