package choices

import (
	"bytes"
	stdgzip "compress/gzip"
	"fmt"
	"io"
	"testing"

	"github.com/klauspost/compress/gzip"

	"kumo/internal/content/inflate"
)

// BenchmarkInflate inflates gzipped bodies in memory into a reused buffer.
func BenchmarkInflate(b *testing.B) {
	all := corpus(b)
	var bodies [][]byte
	text, coded := 0, 0
	for _, page := range all {
		bodies = append(bodies, gzipped(b, page))
		text, coded = text+len(page), coded+len(bodies[len(bodies)-1])
	}
	b.Logf("%d pages of %d bytes in the mean, gzipped to %d", len(all), text/len(all), coded/len(all))
	var d inflate.Decoder
	dst := make([]byte, 0, longestPage+1024)
	each := func(decode func(body []byte) (int, error)) func() error {
		return func() error {
			for i, body := range bodies {
				if n, err := decode(body); err != nil || n != len(all[i]) {
					return fmt.Errorf("%d bytes: %w", n, err)
				}
			}
			return nil
		}
	}
	in := new(bytes.Reader)
	fast, std := new(gzip.Reader), new(stdgzip.Reader)
	byTurns(b, "page", len(bodies),
		&contender{name: "kumo", run: each(func(body []byte) (int, error) {
			out, err := d.Gzip(dst[:0], body, 1<<20)
			return len(out), err
		})},
		&contender{name: "klauspost/compress", run: each(func(body []byte) (int, error) {
			in.Reset(body)
			if err := fast.Reset(in); err != nil {
				return 0, err
			}
			return readAll(fast, dst)
		})},
		&contender{name: "compress/gzip", run: each(func(body []byte) (int, error) {
			in.Reset(body)
			if err := std.Reset(in); err != nil {
				return 0, err
			}
			return readAll(std, dst)
		})},
	)
}

// readAll reads to the end into a buffer that is large enough.
func readAll(r io.Reader, room []byte) (int, error) {
	n, err := io.ReadFull(r, room[:cap(room)])
	if err == io.ErrUnexpectedEOF {
		err = nil
	}
	return n, err
}
