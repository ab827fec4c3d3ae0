// Package stream runs a task of a job over pipes, as started by Hadoop Streaming. Records are read from standard input
// and written to standard output in the format "rawbytes". Counters and status are written to standard error.
//
// A record is the length of its key (four bytes, big-endian), the key, and the same for its value. A reducer receives
// records sorted by key.
package stream

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"

	"kumo/internal/base/extsort"
	"kumo/internal/batch"
)

// maxField limits the length of a key or value, in case a length is damaged.
const maxField = 1<<31 - 1

// A Reader reads records. Key and value are valid until the next call.
type Reader struct {
	in         *bufio.Reader
	key, value []byte
}

// NewReader returns a reader.
func NewReader(r io.Reader) *Reader { return &Reader{in: bufio.NewReaderSize(r, 256<<10)} }

// Next returns the next record, io.EOF after the last.
func (r *Reader) Next() (key, value []byte, err error) {
	if r.key, err = r.field(r.key); err != nil {
		return nil, nil, err
	}
	if r.value, err = r.field(r.value); errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return r.key, r.value, err
}

// maxKeptBuffer is the buffer size that is kept from one record to the next.
const maxKeptBuffer = 4 << 20

func (r *Reader) field(b []byte) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r.in, head[:]); err != nil {
		return nil, err // io.EOF at the end
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxField {
		return nil, fmt.Errorf("field of %d bytes: this is not a rawbytes stream", n)
	}
	if cap(b) > maxKeptBuffer {
		b = nil
	}
	for b = b[:0]; len(b) < int(n); { // grow with the data, whatever the length claims
		chunk := min(int(n)-len(b), max(maxKeptBuffer, len(b)))
		if cap(b)-len(b) < chunk {
			b = append(make([]byte, 0, len(b)+chunk), b...)
		}
		got, err := io.ReadFull(r.in, b[len(b):len(b)+chunk])
		b = b[:len(b)+got]
		if err != nil {
			return b, io.ErrUnexpectedEOF
		}
	}
	return b, nil
}

// A Writer writes records.
type Writer struct {
	out  *bufio.Writer
	head [4]byte
}

// NewWriter returns a writer. The caller flushes it.
func NewWriter(w io.Writer) *Writer { return &Writer{out: bufio.NewWriterSize(w, 256<<10)} }

// Write writes a record.
func (w *Writer) Write(key, value []byte) error {
	for _, b := range [...][]byte{key, value} {
		if len(b) > maxField {
			return fmt.Errorf("field of %d bytes: the maximum is %d", len(b), maxField)
		}
		binary.BigEndian.PutUint32(w.head[:], uint32(len(b)))
		if _, err := w.out.Write(w.head[:]); err != nil {
			return err
		}
		if _, err := w.out.Write(b); err != nil {
			return err
		}
	}
	return nil
}

// Flush writes buffered data.
func (w *Writer) Flush() error { return w.out.Flush() }

// Map runs a map task: all records of in.
func Map(ctx context.Context, j *batch.Job, t *batch.Task, in *Reader, emit batch.Emit) error {
	for {
		key, value, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = j.Map(ctx, t, batch.Record{Key: key, Value: value}, emit)
		}
		if err != nil {
			return err
		}
	}
}

// Combine runs a combiner over sorted records. If the job has none, it copies them.
func Combine(ctx context.Context, j *batch.Job, in *Reader, emit batch.Emit) error {
	groups, failed := extsort.Groups(in)
	for key, values := range groups {
		combine := j.Combine
		if combine == nil {
			combine = func(_ []byte, values iter.Seq[[]byte], emit func([]byte) error) error {
				for v := range values {
					if err := emit(v); err != nil {
						return err
					}
				}
				return nil
			}
		}
		if err := combine(key, values, func(value []byte) error { return emit(key, value) }); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return failed()
}

// Reduce runs a reduce task over sorted records.
func Reduce(ctx context.Context, j *batch.Job, t *batch.Task, in *Reader, emit batch.Emit) error {
	groups, failed := extsort.Groups(in)
	err := j.Reduce(ctx, t, groups, emit)
	return errors.Join(err, failed())
}
