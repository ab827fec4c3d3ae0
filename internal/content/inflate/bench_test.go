package inflate

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/klauspost/compress/gzip"
)

var writers = map[int]*gzip.Writer{} // by compression level

func gzipped(t testing.TB, text []byte, level int) []byte {
	t.Helper()
	var b bytes.Buffer
	w, ok := writers[level]
	if !ok {
		var err error
		if w, err = gzip.NewWriterLevel(&b, level); err != nil {
			t.Fatal(err)
		}
		writers[level] = w
	}
	w.Reset(&b)
	w.Write(text)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// BenchmarkGzip decodes pages in turn, too many for the branch predictor, and compares with the library used before.
func BenchmarkGzip(b *testing.B) {
	for _, size := range []int{8 << 10, 33 << 10, 242 << 10} {
		p := newPages(1)
		var bodies [][]byte
		var coded int
		for range 4 << 20 / size {
			bodies = append(bodies, gzipped(b, p.page(size), 6))
			coded += len(bodies[len(bodies)-1])
		}
		ratio := float64(len(bodies)*size) / float64(coded)
		dst := make([]byte, 0, size+1000)
		b.Run(fmt.Sprintf("ours/%d", size), func(b *testing.B) {
			var d Decoder
			b.SetBytes(int64(size))
			for i := 0; b.Loop(); i++ {
				out, err := d.Gzip(dst, bodies[i%len(bodies)], 1<<20)
				if err != nil || len(out) != size {
					b.Fatal(len(out), err)
				}
			}
			b.ReportMetric(ratio, "x")
		})
		b.Run(fmt.Sprintf("library/%d", size), func(b *testing.B) {
			var r gzip.Reader
			in := new(bytes.Reader)
			b.SetBytes(int64(size))
			for i := 0; b.Loop(); i++ {
				in.Reset(bodies[i%len(bodies)])
				if err := r.Reset(in); err != nil {
					b.Fatal(err)
				}
				if n, err := io.ReadFull(&r, dst[:size+1]); err != io.ErrUnexpectedEOF || n != size {
					b.Fatal(n, err)
				}
			}
		})
	}
}
