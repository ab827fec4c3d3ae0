package extsort

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"

	"github.com/klauspost/compress/s2"

	"kumo/internal/base/vfs"
)

// A run stores its parts one after another. Each part is an S2 stream with checksums. A record is the lengths of key
// and value as uvarints, then key and value.

const blockSize = 64 << 10 // of the compression

func writeRun(cfg *Config, name string, parts int, of func(part int) (source, error)) (run Run, err error) {
	if err := cfg.Disk.MkdirAll(cfg.Dir); err != nil {
		return Run{}, err
	}
	f, err := cfg.Disk.Append(name)
	if err != nil {
		return Run{}, err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			err = errors.Join(err, cfg.Disk.Remove(name))
		}
	}()
	run.Name = name
	w := &runWriter{counted: counter{w: f}}
	w.out = s2.NewWriter(&w.counted, s2.WriterConcurrency(1), s2.WriterBlockSize(blockSize))
	for part := range parts {
		begin := w.counted.n
		if err := w.part(cfg, part, of); err != nil {
			return run, err
		}
		run.Parts = append(run.Parts, Extent{begin, w.counted.n - begin})
	}
	return run, nil
}

type runWriter struct {
	counted counter
	out     *s2.Writer
	head    [2 * binary.MaxVarintLen64]byte
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

func (w *runWriter) part(cfg *Config, part int, of func(part int) (source, error)) (err error) {
	src, err := of(part)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	w.out.Reset(&w.counted)
	if cfg.Combine == nil {
		err = w.copy(src)
	} else {
		err = w.combine(src, cfg.Combine)
	}
	if err != nil {
		return err
	}
	return w.out.Close()
}

func (w *runWriter) copy(src source) error {
	for {
		key, value, err := src.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = w.write(key, value)
		}
		if err != nil {
			return err
		}
	}
}

func (w *runWriter) combine(src source, combine Combine) error {
	g := &grouping{src: src}
	for key, values := range g.groups {
		if err := combine(key, values, func(value []byte) error { return w.write(key, value) }); err != nil {
			return err
		}
	}
	return g.err
}

func (w *runWriter) write(key, value []byte) error {
	head := binary.AppendUvarint(w.head[:0], uint64(len(key)))
	head = binary.AppendUvarint(head, uint64(len(value)))
	for _, b := range [...][]byte{head, key, value} {
		if _, err := w.out.Write(b); err != nil {
			return err
		}
	}
	return nil
}

// A runReader reads one part of a run.
type runReader struct {
	file vfs.ReaderAt
	in   *s2.Reader
	key  []byte
	head []byte // the beginning of the current value
	rest int64  // number of bytes of the value after head
}

func openRun(disk vfs.FS, run *Run, part int) (*runReader, error) {
	f, err := disk.OpenAt(run.Name)
	if err != nil {
		return nil, err
	}
	e := run.Parts[part]
	in := bufio.NewReaderSize(io.NewSectionReader(f, e.Offset, e.Length), blockSize)
	return &runReader{file: f, in: s2.NewReader(in, s2.ReaderMaxBlockSize(blockSize), s2.ReaderAllocBlock(blockSize))}, nil
}

// advance reads the key of the next record and the beginning of its value.
func (r *runReader) advance() error {
	if r.rest > 0 { // the previous value was not read to its end
		if err := r.in.Skip(r.rest); err != nil {
			return unexpectedEOF(err)
		}
		r.rest = 0
	}
	n, err := binary.ReadUvarint(r.in)
	if err != nil {
		return err // io.EOF at the end of the part
	}
	size, err := binary.ReadUvarint(r.in)
	switch {
	case err != nil:
		return unexpectedEOF(err)
	case n >= maxRecord || size >= maxRecord:
		return errDamaged
	}
	if r.key, err = r.read(r.key[:0], int(n)); err != nil {
		return err
	}
	head := min(int(size), comparedBytes)
	r.rest = int64(size) - int64(head)
	r.head, err = r.read(r.head[:0], head)
	return err
}

var errDamaged = errors.New("sort run is damaged")

// read appends the next n bytes to b.
func (r *runReader) read(b []byte, n int) ([]byte, error) {
	b = extend(b, n)
	_, err := io.ReadFull(r.in, b[len(b)-n:])
	return b, unexpectedEOF(err)
}

// extend returns b extended by n bytes. Large buffers grow to the exact size.
func extend(b []byte, n int) []byte {
	if had := len(b); cap(b)-had >= n {
		return b[:had+n]
	}
	size := len(b) + n
	if size < maxChunk {
		size += size / 4
	}
	more := make([]byte, len(b)+n, size)
	copy(more, b)
	return more
}

// unexpectedEOF converts io.EOF, where a run ends within a record, to io.ErrUnexpectedEOF.
func unexpectedEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (r *runReader) record() (key, head []byte) { return r.key, r.head }

// value returns the whole value, in buf if it is long.
func (r *runReader) value(buf *[]byte) ([]byte, error) {
	if r.rest == 0 {
		return r.head, nil
	}
	b := append(extend((*buf)[:0], int(r.rest)+len(r.head))[:0], r.head...)
	b, err := r.read(b, int(r.rest))
	r.rest = 0
	*buf = b
	return b, err
}

func (r *runReader) close() error { return r.file.Close() }
