package inflate

import (
	"bytes"
	stdflate "compress/flate"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zlib"
)

// exact returns a copy without spare capacity.
func exact(b []byte) []byte { return append(make([]byte, 0, len(b)), b...) }

func TestEdges(t *testing.T) {
	var d Decoder
	for _, e := range edges() {
		streams := [][]byte{exact(e.stream)}
		if !errors.Is(e.err, io.ErrUnexpectedEOF) { // the data after it selects the other decoding loop
			streams = append(streams, append(bytes.Clone(e.stream), make([]byte, 40)...))
		}
		for _, src := range streams {
			for _, room := range []int{0, len(e.want), len(e.want) + 1000} {
				limit := len(e.want)
				if e.err != nil {
					limit += 1000
				}
				got, used, err := d.Deflate(make([]byte, 0, room), src, limit)
				if !errors.Is(err, e.err) || string(got) != e.want {
					t.Errorf("%s: %v, %d bytes, %.100q", e.name, err, len(got), got)
				}
				if err == nil && used != len(e.stream) {
					t.Errorf("%s: took %d bytes of %d", e.name, used, len(e.stream))
				}
				if e.want == "" || e.err != nil {
					continue
				}
				got, _, err = d.Deflate(make([]byte, 0, room), src, limit-1)
				if !errors.Is(err, ErrLimit) || string(got) != e.want[:limit-1] {
					t.Errorf("%s: one byte too long: %v, %d bytes", e.name, err, len(got))
				}
			}
		}
		compare(t, e.stream, 1<<20, "raw")
	}
}

// Matches of each length at each short distance, so that they overlap themselves.
func TestOverlap(t *testing.T) {
	var d Decoder
	for distance := 1; distance <= 40; distance++ {
		for length := 3; length <= 258; length++ {
			start := make([]byte, distance)
			for i := range start {
				start[i] = byte('A' + i)
			}
			want := bytes.Repeat(start, 300)[:distance+length]
			src := stream().stored(0, string(start)).fixed(1).matchOf(length, distance).lit(256).b
			for _, behind := range []int{0, 40} { // decoded by both loops
				out, used, err := d.Deflate(nil, append(src, make([]byte, behind)...), 1<<20)
				if err != nil || used != len(src) || !bytes.Equal(out, want) {
					t.Fatalf("length %d, distance %d: %v, %q", length, distance, err, out)
				}
			}
		}
	}
}

func texts() map[string][]byte {
	r := rand.New(rand.NewPCG(1, 2))
	random, few, runs := make([]byte, 100_000), make([]byte, 100_000), []byte(nil)
	for i := range random {
		random[i], few[i] = byte(r.Uint32()), "abc"[r.IntN(3)]
	}
	for len(runs) < 200_000 {
		runs = append(runs, bytes.Repeat(random[r.IntN(1000):][:1+r.IntN(40)], 1+r.IntN(30))...)
	}
	return map[string][]byte{
		"nothing": nil, "a byte": []byte("x"), "html": newPages(2).page(300_000), "random": random, "few symbols": few,
		"runs":  runs,
		"zeros": make([]byte, 1_000_000), "mixed": slices.Concat(random[:40_000], make([]byte, 70_000), few, random[:40_000]),
	}
}

// The output of encoders at all levels is decoded, with and without spare capacity, and at the limit.
func TestWriters(t *testing.T) {
	type writer interface {
		io.WriteCloser
		Flush() error
	}
	makers := map[string]func(io.Writer, int) (writer, error){
		"klauspost": func(w io.Writer, level int) (writer, error) { return flate.NewWriter(w, level) },
		"standard":  func(w io.Writer, level int) (writer, error) { return stdflate.NewWriter(w, level) },
	}
	var d Decoder
	texts := texts()
	for maker, newWriter := range makers {
		for level := flate.HuffmanOnly; level <= flate.BestCompression; level++ {
			for text, want := range texts {
				var b bytes.Buffer
				w, err := newWriter(&b, level)
				if err != nil {
					t.Fatal(err)
				}
				w.Write(want[:len(want)/2])
				w.Flush()
				w.Write(want[len(want)/2:])
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
				name := fmt.Sprintf("%s, level %d, %s", maker, level, text)
				src := append(exact(b.Bytes()), "more"...)
				for _, room := range []int{0, len(want) / 2, len(want) + 1000} {
					got, used, err := d.Deflate(make([]byte, 0, room), src, len(want))
					if err != nil || used != b.Len() || !bytes.Equal(got, want) {
						t.Fatalf("%s: %v, %d bytes of %d, took %d of %d", name, err, len(got), len(want), used, b.Len())
					}
				}
				for _, limit := range []int{0, 1, len(want) / 3, len(want) - 1} {
					if limit < 0 || limit >= len(want) {
						continue
					}
					got, _, err := d.Deflate(nil, src, limit)
					if !errors.Is(err, ErrLimit) || !bytes.Equal(got, want[:limit]) {
						t.Fatalf("%s: %v, %d bytes of %d", name, err, len(got), limit)
					}
				}
			}
		}
	}
}

// Wherever a stream is truncated, the output up to there is kept, and it is at least as long as the libraries'.
func TestCuts(t *testing.T) {
	var d Decoder
	text := newPages(4).page(3000)
	whole := gzipped(t, text, 6)
	for n := range whole {
		out, err := d.Gzip(nil, exact(whole[:n]), 1<<20)
		if !errors.Is(err, io.ErrUnexpectedEOF) || !bytes.HasPrefix(text, out) {
			t.Fatalf("%d bytes of %d: %v, %d bytes", n, len(whole), err, len(out))
		}
		compare(t, whole[:n], 1<<20, "gzip")
	}
}

func TestGzip(t *testing.T) {
	a, b, empty := gzipped(t, []byte("hello"), 6), gzipped(t, []byte(" world"), 0), gzipped(t, nil, 6)
	// headed returns a header with flags and the data that they announce.
	headed := func(flags byte, fields ...string) []byte {
		head := append([]byte{0x1f, 0x8b, 8, flags}, a[4:headerLen]...)
		head = append(head, strings.Join(fields, "")...)
		if sum := crc32.ChecksumIEEE(head); flags&hasHeaderSum != 0 {
			head = append(head, byte(sum), byte(sum>>8))
		}
		return append(head, a[headerLen:]...)
	}
	changed := func(at int) []byte {
		c := bytes.Clone(a)
		c[(len(c)+at)%len(c)] ^= 1
		return c
	}
	extra := "\x03\x00abc"
	tests := []struct {
		name string
		src  []byte
		want string
		err  error
	}{
		{"a member", a, "hello", nil},
		{"members", slices.Concat(a, empty, b, empty), "hello world", nil},
		{"nothing", nil, "", io.ErrUnexpectedEOF},
		{"all fields", headed(hasExtra|hasName|hasComment|hasHeaderSum|1, extra, "a.html\x00", "\x00"), "hello", nil},
		{"a header cut in extra", headed(hasExtra, extra)[:14], "", io.ErrUnexpectedEOF},
		{"a header cut before extra", headed(hasExtra, extra)[:11], "", io.ErrUnexpectedEOF},
		{"a header cut in a name", headed(hasName, "abc\x00")[:12], "", io.ErrUnexpectedEOF},
		{"a header cut before its checksum", headed(hasHeaderSum)[:11], "", io.ErrUnexpectedEOF},
		{"a long name", headed(hasName, strings.Repeat("n", 511), "\x00"), "hello", nil},
		{"too long a name", headed(hasName, strings.Repeat("n", 512), "\x00"), "", ErrHeader},
		{"a header's wrong checksum", slices.Concat(headed(hasHeaderSum)[:10], []byte("no"), a[10:]), "", ErrHeader},
		{"unknown flags", headed(0x20), "", ErrHeader},
		{"not gzip", []byte("<html><body>"), "", ErrHeader},
		{"another method", changed(2), "", ErrHeader},
		{"a wrong checksum", changed(-8), "hello", ErrChecksum},
		{"a wrong length", changed(-1), "hello", ErrChecksum},
		{"no checksum", a[:len(a)-8], "hello", io.ErrUnexpectedEOF},
		{"a cut checksum", a[:len(a)-1], "hello", io.ErrUnexpectedEOF},
		{"garbage behind", append(bytes.Clone(a), "\n<!-- 12 ms -->"...), "hello", ErrGarbage},
		{"garbage behind nothing", append(bytes.Clone(empty), "\n<!-- 12 ms -->"...), "", ErrGarbage},
		{"little garbage behind", append(bytes.Clone(a), 0), "hello", io.ErrUnexpectedEOF},
		{"a second member's wrong checksum", append(bytes.Clone(b), changed(-8)...), " worldhello", ErrChecksum},
		{"a second member cut in its name", append(bytes.Clone(a), headed(hasName, "abc\x00")[:12]...), "hello",
			io.ErrUnexpectedEOF},
	}
	var d Decoder
	for _, tt := range tests {
		got, err := d.Gzip([]byte("x"), exact(tt.src), 1<<20)
		if !errors.Is(err, tt.err) || string(got) != "x"+tt.want {
			t.Errorf("%s: %v, %q", tt.name, err, got)
		}
		compare(t, tt.src, 1<<20, "gzip")
		for limit := range tt.want {
			got, err := d.Gzip(nil, tt.src, limit)
			if !errors.Is(err, ErrLimit) || string(got) != tt.want[:limit] {
				t.Errorf("%s, limit %d: %v, %q", tt.name, limit, err, got)
			}
		}
	}
	// A member cannot copy from the output of the previous one.
	back := stream().fixed(1).match(257, 0, 0, 0, 0, 0).lit(256).b
	if got, err := d.Gzip(nil, slices.Concat(a, a[:headerLen], back, make([]byte, 50)), 1<<20); !errors.Is(err,
		ErrCorrupt) || string(got) != "hello" {
		t.Errorf("a distance into another member: %v, %q", err, got)
	}
}

func TestZlib(t *testing.T) {
	text := newPages(5).page(5000)
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	w.Write(text)
	w.Close()
	whole := b.Bytes()
	noSum := append(bytes.Clone(whole[:len(whole)-4]), "any"...)
	bare := whole[2 : len(whole)-4]
	var d Decoder
	for name, src := range map[string][]byte{"whole": whole, "checksum": noSum, "bare": bare} {
		if got, err := d.Zlib(nil, src, len(text)); err != nil || !bytes.Equal(got, text) {
			t.Errorf("%s: %v, %d bytes", name, err, len(got))
		}
		compare(t, src, 1000, "zlib")
	}
	for _, src := range []string{"", "x", "x\x9c", "x\xbb", "\x78\x20"} { // one of them with a dictionary
		compare(t, []byte(src), 1000, "zlib")
	}
}

// A false length claim does not cause large allocations, and none is made if there is enough capacity.
func TestMemory(t *testing.T) {
	var d Decoder
	liar := gzipped(t, []byte("hello"), 6)
	copy(liar[len(liar)-4:], "\xff\xff\xff\x7f")
	if got, err := d.Gzip(nil, liar, 1<<30); !errors.Is(err, ErrChecksum) || cap(got) > 4096 {
		t.Errorf("%v, capacity %d", err, cap(got))
	}
	zeros := gzipped(t, make([]byte, 1<<20), 6)
	if got, err := d.Gzip(nil, zeros, 100_000); !errors.Is(err, ErrLimit) || cap(got) > 120_000 {
		t.Errorf("%v, capacity %d", err, cap(got))
	}
	text := newPages(6).page(40_000)
	src, dst := gzipped(t, text, 6), make([]byte, 0, 41_000)
	var err error
	if n := testing.AllocsPerRun(10, func() { _, err = d.Gzip(dst, src, 1<<20) }); n != 0 || err != nil {
		t.Errorf("%v allocations, %v", n, err)
	}
	if d.src != nil || d.buf != nil {
		t.Error("holds on to what it was given")
	}
}
