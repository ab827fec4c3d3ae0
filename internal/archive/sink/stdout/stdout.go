// Package stdout writes records to standard output as JSON Lines, for use in a pipe.
package stdout

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"syscall"

	"kumo/internal/archive/sink"
)

var _ sink.Sink = (*Sink)(nil)

// A Sink writes one line per record.
type Sink struct {
	w   *bufio.Writer
	enc *json.Encoder
}

// ErrClosed means that the reader of the pipe has closed it.
var ErrClosed = errors.New("the reader has closed the pipe")

// Open returns a sink that writes to w.
func Open(w io.Writer) *Sink {
	s := &Sink{w: bufio.NewWriterSize(w, 64<<10)}
	s.enc = json.NewEncoder(s.w)
	s.enc.SetEscapeHTML(false)
	return s
}

// Put writes the records.
func (s *Sink) Put(ctx context.Context, batch []sink.Record) error {
	for i := range batch {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := s.enc.Encode(&batch[i]); err != nil {
			return closed(err)
		}
	}
	return s.Flush(ctx)
}

// Flush writes buffered lines.
func (s *Sink) Flush(context.Context) error { return closed(s.w.Flush()) }

// Close does nothing; the caller owns the writer.
func (s *Sink) Close() error { return nil }

func closed(err error) error {
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) {
		return ErrClosed
	}
	return err
}
