// Package seqfile writes and reads Hadoop SequenceFiles, version 6, with byte strings as keys and values
// (BytesWritable). Batch crawls store their data in this format with every runner.
//
// Records are compressed in blocks with zlib, so that Hadoop's own tools read the files without native libraries ("hdfs
// dfs -text"). Each block starts with a sync marker that is unique to the file, so that reading can start anywhere in
// the file.
//
// After the marker, a block has the number of its records and four compressed buffers: key lengths, keys, value lengths
// and values.
package seqfile

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zlib"

	"kumo/internal/archive/place"
)

const (
	magic      = "SEQ\x06"
	class      = "org.apache.hadoop.io.BytesWritable"
	codec      = "org.apache.hadoop.io.compress.DefaultCodec"
	blockSize  = 256 << 10 // bytes of keys and values after which a block is written
	markLen    = 16
	markEscape = "\xff\xff\xff\xff" // a length of -1: a sync marker follows
	maxField   = 1<<31 - 1 - 4      // maximum bytes of a key, and of a value
)

// A Writer writes a SequenceFile.
type Writer struct {
	w       io.Writer
	mark    [markLen]byte
	buffers [numBuffers]bytes.Buffer
	records int
	head    []byte
	packed  bytes.Buffer
}

const (
	keyLens = iota
	keys
	valueLens
	values
	numBuffers
)

// NewWriter starts a file. The caller closes it, and w afterwards.
func NewWriter(w io.Writer) (*Writer, error) {
	s := &Writer{w: w}
	_, _ = rand.Read(s.mark[:]) // never fails
	_, err := w.Write(append(fileHead(), s.mark[:]...))
	return s, err
}

// fileHead returns the header of a file, without its sync marker.
func fileHead() []byte {
	h := appendText(appendText([]byte(magic), class), class)
	h = appendText(append(h, 1, 1), codec) // compressed, by block
	return append(h, 0, 0, 0, 0)           // no metadata
}

func appendText(b []byte, s string) []byte { return append(appendVInt(b, len(s)), s...) }

// Append appends a record.
func (s *Writer) Append(key, value []byte) error {
	if len(key) > maxField || len(value) > maxField {
		return fmt.Errorf("a record of %d and %d bytes: neither may have more than %d", len(key), len(value), maxField)
	}
	s.field(keyLens, key)
	s.field(valueLens, value)
	s.records++
	if s.buffers[keys].Len()+s.buffers[values].Len() < blockSize {
		return nil
	}
	return s.flush()
}

// field appends a BytesWritable to a buffer, and its length to the buffer before.
func (s *Writer) field(lens int, b []byte) {
	s.buffers[lens].Write(appendVInt(s.head[:0], len(b)+4))
	s.buffers[lens+1].Write(binary.BigEndian.AppendUint32(s.head[:0], uint32(len(b))))
	s.buffers[lens+1].Write(b)
}

// flush writes a block.
func (s *Writer) flush() error {
	s.head = append(append(s.head[:0], markEscape...), s.mark[:]...)
	s.head = appendVInt(s.head, s.records)
	if _, err := s.w.Write(s.head); err != nil {
		return err
	}
	for i := range s.buffers {
		s.packed.Reset()
		if err := compress(&s.packed, s.buffers[i].Bytes()); err != nil {
			return err
		}
		s.head = appendVInt(s.head[:0], s.packed.Len())
		for _, b := range [...][]byte{s.head, s.packed.Bytes()} {
			if _, err := s.w.Write(b); err != nil {
				return err
			}
		}
		if s.buffers[i].Reset(); s.buffers[i].Cap() > 4*blockSize {
			s.buffers[i] = bytes.Buffer{} // grown by an unusually long record
		}
	}
	if s.packed.Cap() > 4*blockSize {
		s.packed = bytes.Buffer{}
	}
	s.records = 0
	return nil
}

// Close writes the last block.
func (s *Writer) Close() error {
	if s.records == 0 {
		return nil
	}
	return s.flush()
}

var zlibWriters = sync.Pool{New: func() any {
	z, _ := zlib.NewWriterLevel(io.Discard, zlib.BestSpeed) // the level is valid
	return z
}}

func compress(w io.Writer, b []byte) error {
	z := zlibWriters.Get().(*zlib.Writer)
	defer zlibWriters.Put(z)
	z.Reset(w)
	if _, err := z.Write(b); err != nil {
		return err
	}
	return z.Close()
}

// A Reader reads the records of a SequenceFile. Key and value are valid until the next call of Next.
type Reader struct {
	in      *bufio.Reader
	close   func() error
	mark    [markLen]byte
	at, end int64 // position of in, and the end of the blocks to read
	packed  bytes.Buffer
	buffers [numBuffers]bytes.Buffer
	rest    [numBuffers][]byte // unread parts of the buffers
	records int
	unpack  io.ReadCloser
}

// ErrDamaged is the error for a damaged file.
var ErrDamaged = errors.New("the SequenceFile is damaged")

// Open reads the blocks of a file that begin in [from, to); all blocks if to is negative. Reading adjacent ranges
// yields each block exactly once.
func Open(ctx context.Context, p place.Place, name string, from, to int64) (*Reader, error) {
	if to < 0 {
		to = 1<<63 - 1
	}
	src, err := p.Open(ctx, name, 0, -1)
	if err != nil {
		return nil, err
	}
	r, err := NewReader(src)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), src.Close())
	}
	r.close, r.end = src.Close, to
	if from <= r.at {
		return r, nil
	}
	if err := src.Close(); err != nil {
		return nil, err
	}
	if src, err = p.Open(ctx, name, from, -1); err != nil {
		return nil, err
	}
	r.in.Reset(src)
	r.close, r.at = src.Close, from
	if err := r.skipToMark(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), src.Close())
	}
	return r, nil
}

// NewReader reads a whole file. Close does not close src.
func NewReader(src io.Reader) (*Reader, error) {
	r := &Reader{in: bufio.NewReaderSize(src, 64<<10), end: 1<<63 - 1, close: func() error { return nil }}
	return r, r.header()
}

func (r *Reader) header() error {
	want := fileHead()
	got := make([]byte, len(want)+markLen)
	if err := r.full(got); err != nil || !bytes.Equal(got[:len(want)], want) {
		if err == nil || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			err = errors.New("not a SequenceFile of BytesWritables, block-compressed with zlib")
		}
		return err
	}
	copy(r.mark[:], got[len(want):])
	return nil
}

func (r *Reader) full(b []byte) error {
	n, err := io.ReadFull(r.in, b)
	r.at += int64(n)
	return err
}

// skipToMark skips to the beginning of the next block, or to the end.
func (r *Reader) skipToMark() error {
	want := append([]byte(markEscape), r.mark[:]...)
	for {
		have, err := r.in.Peek(r.in.Size())
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		i := bytes.Index(have, want)
		skip := i
		if i < 0 {
			if skip = len(have) - len(want) + 1; err != nil || skip <= 0 {
				skip = len(have) // end of the file
			}
		}
		n, serr := r.in.Discard(skip)
		if r.at += int64(n); i >= 0 || serr != nil || err != nil {
			return serr
		}
	}
}

// Next returns the next record, and io.EOF after the last.
func (r *Reader) Next() (key, value []byte, err error) {
	for r.records == 0 {
		if err := r.block(); errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, nil, fmt.Errorf("%w: it ends within a block", ErrDamaged)
		} else if err != nil {
			return nil, nil, err
		}
	}
	r.records--
	if key, err = r.field(keyLens); err == nil {
		value, err = r.field(valueLens)
	}
	return key, value, err
}

// field reads the next BytesWritable from a buffer.
func (r *Reader) field(lens int) ([]byte, error) {
	n, rest, ok := vint(r.rest[lens])
	if !ok || n < 4 || n > len(r.rest[lens+1]) {
		return nil, ErrDamaged
	}
	b := r.rest[lens+1][:n:n]
	r.rest[lens], r.rest[lens+1] = rest, r.rest[lens+1][n:]
	if int64(binary.BigEndian.Uint32(b)) != int64(n-4) {
		return nil, ErrDamaged
	}
	return b[4:], nil
}

// block reads the next block. It returns io.EOF if there is none, or if it is beyond the range.
func (r *Reader) block() error {
	if r.at >= r.end {
		return io.EOF
	}
	var head [len(markEscape) + markLen]byte
	if err := r.full(head[:]); err != nil {
		return err // io.EOF at the end
	}
	if string(head[:len(markEscape)]) != markEscape || !bytes.Equal(head[len(markEscape):], r.mark[:]) {
		return ErrDamaged
	}
	var err error
	if r.records, err = r.vint(); err != nil {
		return err
	}
	for i := range r.buffers {
		if err := r.buffer(i); err != nil {
			return err
		}
		r.rest[i] = r.buffers[i].Bytes()
	}
	return nil
}

func (r *Reader) buffer(i int) error {
	n, err := r.vint()
	if err != nil {
		return err
	}
	if n < 0 {
		return ErrDamaged
	}
	if err = fill(&r.packed, io.LimitReader(r.in, int64(n))); err != nil {
		return err
	}
	r.at += int64(r.packed.Len())
	if r.packed.Len() != n {
		return io.ErrUnexpectedEOF
	}
	src := bytes.NewReader(r.packed.Bytes())
	if r.unpack == nil {
		r.unpack, err = zlib.NewReader(src)
	} else {
		err = r.unpack.(zlib.Resetter).Reset(src, nil)
	}
	if err == nil {
		err = fill(&r.buffers[i], r.unpack)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return nil
}

// fill reads all of src. The buffer grows with the data, whatever length a damaged file claims.
func fill(b *bytes.Buffer, src io.Reader) error {
	if b.Reset(); b.Cap() > 8*blockSize {
		*b = bytes.Buffer{} // grown by an unusually long record
	}
	_, err := b.ReadFrom(src)
	return err
}

// Close closes the file.
func (r *Reader) Close() error { return r.close() }

// vint reads an integer from the file.
func (r *Reader) vint() (int, error) {
	var b [9]byte
	if err := r.full(b[:1]); err != nil {
		return 0, io.ErrUnexpectedEOF
	}
	more := vintExtraBytes(b[0])
	if err := r.full(b[1 : 1+more]); err != nil {
		return 0, io.ErrUnexpectedEOF
	}
	n, _, ok := vint(b[:1+more])
	if !ok {
		return 0, ErrDamaged
	}
	return n, nil
}

// appendVInt appends a non-negative integer as Hadoop's WritableUtils encodes it: small ones as one byte, others as a
// byte with their length, then the bytes, the highest first.
func appendVInt(b []byte, n int) []byte {
	if n <= 127 {
		return append(b, byte(n))
	}
	var be [8]byte
	binary.BigEndian.PutUint64(be[:], uint64(n))
	digits := bytes.TrimLeft(be[:], "\x00")
	return append(append(b, byte(-112-len(digits))), digits...)
}

// vintExtraBytes returns the number of bytes after the first.
func vintExtraBytes(first byte) int {
	switch n := int(int8(first)); {
	case n >= -112:
		return 0
	case n >= -120:
		return -112 - n
	default: // negative, not supported here
		return -120 - n
	}
}

// vint decodes a non-negative integer at the front of b.
func vint(b []byte) (n int, rest []byte, ok bool) {
	if len(b) == 0 {
		return 0, nil, false
	}
	more := vintExtraBytes(b[0])
	if int8(b[0]) >= 0 {
		return int(b[0]), b[1:], true
	}
	if more == 0 || int8(b[0]) < -120 || more > 7 || len(b) < 1+more {
		return 0, nil, false
	}
	for _, c := range b[1 : 1+more] {
		n = n<<8 | int(c)
	}
	return n, b[1+more:], true
}
