package inflate

import (
	"bufio"
	"bytes"
	stdflate "compress/flate"
	stdgzip "compress/gzip"
	"errors"
	"io"
	"testing"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
)

// library decodes with klauspost/compress or the standard library, and converts its errors to this package's.
func library(src []byte, limit int, format string, standard bool) (out []byte, err error) {
	in := bytes.NewReader(src)
	var r io.Reader
	switch {
	case format == "gzip" && standard:
		r, err = stdgzip.NewReader(in)
	case format == "gzip":
		r, err = gzip.NewReader(in)
	default:
		b := bufio.NewReader(in)
		if h, _ := b.Peek(2); format == "zlib" && zlibHeader(h) {
			b.Discard(2)
		}
		if r = flate.NewReader(b); standard {
			r = stdflate.NewReader(b)
		}
	}
	if err != nil {
		return nil, translated(err)
	}
	out, err = io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if len(out) > limit {
		return out[:limit], ErrLimit
	}
	return out, translated(err)
}

func translated(err error) error {
	var corrupt flate.CorruptInputError
	switch {
	case errors.Is(err, gzip.ErrHeader):
		return ErrHeader
	case errors.Is(err, gzip.ErrChecksum):
		return ErrChecksum
	case errors.Is(err, io.EOF): // of a first header that is truncated in a name
		return io.ErrUnexpectedEOF
	case errors.As(err, &corrupt):
		return ErrCorrupt
	}
	return err
}

func ours(d *Decoder, dst, src []byte, limit int, format string) (out []byte, err error) {
	switch format {
	case "gzip":
		return d.Gzip(dst, src, limit)
	case "zlib":
		return d.Zlib(dst, src, limit)
	}
	out, _, err = d.Deflate(dst, src, limit)
	return out, err
}

var fuzzed Decoder // reused, so that leftover state would be detected

// compare checks that the libraries and this package agree on the output and on whether there is an error. They differ
// for corrupt streams:
//
//   - The libraries need some bits more than a symbol has, and so may decode less of a truncated stream.
//   - They take a second member whose header is truncated in its name for the end.
//   - klauspost/compress decodes a tree without codes like the previous one; the standard library does not.
func compare(t *testing.T, src []byte, limit int, format string) {
	t.Helper()
	prefix := []byte("before")
	room := make([]byte, len(prefix), len(prefix)+len(src)%700) // from none to some
	copy(room, prefix)
	given := bytes.Clone(src)
	got, err := ours(&fuzzed, room, src, limit, format)
	if !bytes.Equal(given, src) || !bytes.HasPrefix(got, prefix) {
		t.Fatalf("%s: changed its input, or what was there: %x", format, given)
	}
	if got = got[len(prefix):]; len(got) > limit {
		t.Fatalf("%s: %d bytes, limit %d, of %x", format, len(got), limit, src)
	}
	want, wantErr := library(src, limit, format, false)
	if agree(got, want, err, wantErr) {
		return
	}
	standard, standardErr := library(src, limit, format, true)
	if !agree(got, standard, err, standardErr) && !(format == "gzip" && errors.Is(err, io.ErrUnexpectedEOF) &&
		standardErr == nil && cutInName(src)) {
		t.Fatalf("%s: %d bytes, %v; libraries %d, %v and %d, %v; limit %d, of %x", format, len(got), err, len(want), wantErr,
			len(standard), standardErr, limit, src)
	}
}

func agree(got, want []byte, err, wantErr error) bool {
	if errors.Is(err, ErrGarbage) {
		err = ErrHeader
	}
	if errors.Is(err, ErrLimit) && errors.Is(wantErr, io.ErrUnexpectedEOF) {
		err = wantErr // the bits that the library did not read exceeded the limit
	}
	for _, target := range []error{ErrLimit, ErrHeader, ErrChecksum} {
		if errors.Is(err, target) != errors.Is(wantErr, target) {
			return false
		}
	}
	if err != nil && len(got) > len(want) {
		got = got[:len(want)]
	}
	return (err == nil) == (wantErr == nil) && bytes.Equal(got, want)
}

// cutInName reports whether a gzip header with a name or comment could extend to the end.
func cutInName(src []byte) bool {
	for i := range src {
		if n, err := header(src[i:]); i > 0 && n == 0 && errors.Is(err, io.ErrUnexpectedEOF) && len(src)-i > headerLen &&
			src[i+3]&(hasName|hasComment) != 0 {
			return true
		}
	}
	return false
}

// Modes of FuzzDecode.
const (
	asItIs = iota
	coded
	mutated
	cut
	twice
)

func FuzzDecode(f *testing.F) {
	html := newPages(3).page(3000)
	for _, text := range [][]byte{nil, html, bytes.Repeat([]byte("ab"), 1000), make([]byte, 5000)} {
		for mode := coded; mode <= twice; mode++ {
			f.Add(text, uint8(mode), uint8(6), uint16(len(text)), uint16(100))
		}
	}
	for _, e := range edges() {
		f.Add(e.stream, uint8(asItIs), uint8(0), uint16(2000), uint16(0))
	}
	f.Fuzz(func(t *testing.T, data []byte, mode, level uint8, limit, at uint16) {
		if mode %= twice + 1; mode == asItIs {
			for _, format := range []string{"raw", "zlib", "gzip"} {
				compare(t, data, 1<<20, format)
				compare(t, data, int(limit), format)
			}
			return
		}
		src := gzipped(t, data, int(level)%13-3)
		switch at := int(at) % len(src); mode {
		case mutated:
			src[at] ^= 1 << (limit & 7)
		case cut:
			src = src[:at]
		case twice:
			src = append(src, gzipped(t, data, 6)...)
			src = append(src, src[:at%(len(src)/2)]...)
		}
		compare(t, src, 1<<20, "gzip")
		compare(t, src, int(limit), "gzip")
		if len(src) > headerLen {
			compare(t, src[headerLen:], 1<<20, "raw")
		}
	})
}
