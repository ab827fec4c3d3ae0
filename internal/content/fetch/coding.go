package fetch

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"kumo/internal/content/inflate"
)

// maxWindow limits a zstd decoder's memory. RFC 9659 does not allow servers more.
const maxWindow = 8 << 20

// A coding is a content coding with a pool of its decoders. Some codings can also be decoded in one call, without a
// reader.
type coding struct {
	name  string
	pool  *sync.Pool
	wide  bool // its decoder needs a window of several megabytes
	whole func(d *inflate.Decoder, dst, src []byte, limit int) ([]byte, error)
}

func (c coding) isWide() bool { return c.wide }

var inflaters = sync.Pool{New: func() any { return new(inflate.Decoder) }}

type decoder interface {
	io.Reader
	Reset(io.Reader) error
}

var knownCodings = func() map[string]coding {
	gz := newCoding("gzip", func() decoder { return new(gzip.Reader) })
	gz.whole = (*inflate.Decoder).Gzip
	deflate := newCoding("deflate", func() decoder { return new(inflater) })
	deflate.whole = (*inflate.Decoder).Zlib
	br := newCoding("br", func() decoder { return brotli.NewReader(nil) })
	zst := newCoding("zstd", newZstd)
	br.wide, zst.wide = true, true
	return map[string]coding{"gzip": gz, "x-gzip": gz, "deflate": deflate, "br": br, "zstd": zst}
}()

func newCoding(name string, make func() decoder) coding {
	return coding{name: name, pool: &sync.Pool{New: func() any { return make() }}}
}

// newZstd returns a decoder without goroutines. It needs no Close: the garbage collector frees it.
func newZstd() decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecodeBuffersBelow(0))
	if err != nil {
		panic(err) // the options are constants
	}
	return d
}

// An inflater reads the coding that servers call deflate: the zlib format, as the standard requires, or the bare
// stream. Like browsers, it does not verify the zlib checksum.
type inflater struct {
	in    bufio.Reader
	flate io.ReadCloser
}

func (f *inflater) Reset(r io.Reader) error {
	f.in.Reset(r)
	if h, _ := f.in.Peek(2); len(h) == 2 && h[0]&0x8f == 8 && (uint(h[0])<<8|uint(h[1]))%31 == 0 && h[1]&0x20 == 0 {
		_, _ = f.in.Discard(2) // Peek has buffered them
	}
	if f.flate == nil {
		f.flate = flate.NewReader(&f.in)
		return nil
	}
	return f.flate.(flate.Resetter).Reset(&f.in, nil)
}

func (f *inflater) Read(p []byte) (int, error) { return f.flate.Read(p) }

// bounded fails when a decoder's output exceeds its limit, so that no layer of a stack can grow unnoticed.
type bounded struct {
	r      io.Reader
	left   int64
	excess error
	name   string
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, b.excess
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("%s: %w", b.name, err)
	}
	return n, err
}
