package fetch

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"

	"kumo/internal/base/page"
	"kumo/internal/content/inflate"
)

// encode applies codings in the order given.
func encode(t testing.TB, text []byte, codings ...string) []byte {
	t.Helper()
	for _, name := range codings {
		var b bytes.Buffer
		var w io.WriteCloser
		switch name {
		case "gzip":
			w = gzip.NewWriter(&b)
		case "deflate":
			w = zlib.NewWriter(&b)
		case "raw":
			w, _ = flate.NewWriter(&b, 6)
		case "br":
			w = brotli.NewWriter(&b)
		case "zstd":
			w, _ = zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1))
		}
		w.Write(text)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		text = b.Bytes()
	}
	return text
}

func coded(payload []byte, codings ...string) *page.Response {
	return &page.Response{URL: "http://a.example/", Header: http.Header{"Content-Encoding": codings}, Payload: payload}
}

var sample = []byte(strings.Repeat("<p>A page of some length, 蜘蛛と雲。</p>\n", 300))

func TestDecode(t *testing.T) {
	tests := []struct {
		name    string
		payload []byte
		header  []string
	}{
		{"none", sample, nil},
		{"identity", sample, []string{"identity, "}},
		{"gzip", encode(t, sample, "gzip"), []string{"gzip"}},
		{"x-gzip", encode(t, sample, "gzip"), []string{" X-GZip "}},
		{"zlib", encode(t, sample, "deflate"), []string{"deflate"}},
		{"raw deflate", encode(t, sample, "raw"), []string{"deflate"}},
		{"br", encode(t, sample, "br"), []string{"br"}},
		{"zstd", encode(t, sample, "zstd"), []string{"zstd"}},
		{"two members", append(encode(t, sample[:5000], "gzip"), encode(t, sample[5000:], "gzip")...), []string{"gzip"}},
		{"stack in one field", encode(t, sample, "br", "gzip", "deflate"), []string{"br, gzip,deflate"}},
		{"stack in many fields", encode(t, sample, "zstd", "raw", "gzip", "gzip"),
			[]string{"zstd", "deflate", "identity", "gzip, gzip"}},
	}
	for range 2 { // with new decoders and with reused ones
		for _, tt := range tests {
			resp := coded(tt.payload, tt.header...)
			if err := Decode(resp, int64(len(sample))); err != nil || !bytes.Equal(resp.Body, sample) {
				t.Errorf("%s: %v, %d bytes", tt.name, err, len(resp.Body))
			}
			if resp.Body = nil; !bytes.Equal(tt.payload, resp.Payload) {
				t.Errorf("%s: the payload changed", tt.name)
			}
			err := Decode(resp, int64(len(sample))-1)
			if !errors.Is(err, ErrTooLong) || !bytes.Equal(resp.Body, sample[:len(sample)-1]) {
				t.Errorf("%s: one byte too long: %v, %d bytes", tt.name, err, len(resp.Body))
			}
		}
	}
}

func TestDecodeBroken(t *testing.T) {
	for _, name := range []string{"gzip", "deflate", "br", "zstd"} {
		whole := encode(t, sample, name)
		resp := coded(whole[:len(whole)-6], name)
		err := Decode(resp, 1<<20)
		var e *Error
		if !errors.As(err, &e) || e.Failure != page.Malformed || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		if !bytes.HasPrefix(sample, resp.Body) {
			t.Errorf("%s: body %.50q", name, resp.Body)
		}
	}
	for _, header := range []string{"utf-8", "gzip,gzip,gzip,gzip,gzip"} {
		resp := coded(sample, header)
		if err := Decode(resp, 1<<20); !errors.Is(err, ErrCoding) || !bytes.Equal(resp.Body, sample) {
			t.Errorf("%s: %v, %d bytes", header, err, len(resp.Body))
		}
	}
	resp := coded(sample, "gzip") // the body is not gzip
	if err := Decode(resp, 1<<20); err == nil || !bytes.Equal(resp.Body, sample) {
		t.Errorf("plain text called gzip: %v, %d bytes", err, len(resp.Body))
	}
	if err := Decode(coded(nil, "gzip"), 1<<20); err != nil {
		t.Errorf("empty: %v", err)
	}
}

// Data after a gzip member or a bad trailer does not lose the body, and is reported. A body that is not gzip is kept
// unchanged, up to the limit.
func TestDecodeGzipEnds(t *testing.T) {
	whole, empty := encode(t, sample, "gzip"), encode(t, nil, "gzip")
	broken := bytes.Clone(whole)
	broken[len(broken)-5] ^= 1
	for name, tt := range map[string]struct {
		payload, body []byte
		limit         int
		err           error
	}{
		"garbage":               {append(bytes.Clone(whole), "<!-- cached -->"...), sample, 1 << 20, inflate.ErrGarbage},
		"garbage at the limit":  {append(bytes.Clone(whole), "<!-- cached -->"...), sample, len(sample), inflate.ErrGarbage},
		"garbage after nothing": {append(bytes.Clone(empty), "<!-- cached -->"...), nil, 1 << 20, inflate.ErrGarbage},
		"a few bytes more":      {append(bytes.Clone(whole), 0, 0), sample, 1 << 20, io.ErrUnexpectedEOF},
		"wrong checksum":        {broken, sample, len(sample), inflate.ErrChecksum},
		"wrong, but too long":   {broken, sample[:100], 100, ErrTooLong},
		"no checksum":           {whole[:len(whole)-8], sample, 1 << 20, io.ErrUnexpectedEOF},
		"plain text":            {sample, sample[:100], 100, inflate.ErrHeader},
		"empty":                 {empty, nil, 0, nil},
	} {
		resp := coded(tt.payload, "gzip")
		if err := Decode(resp, int64(tt.limit)); !errors.Is(err, tt.err) || !bytes.Equal(resp.Body, tt.body) {
			t.Errorf("%s: %v, %d bytes", name, err, len(resp.Body))
		}
	}
}

func testdata(t testing.TB, parts ...string) []byte {
	t.Helper()
	dir := os.Getenv("KUMO_TEST_DATA")
	if dir == "" {
		t.Skip("KUMO_TEST_DATA does not name the folder of conformance data")
	}
	b, err := os.ReadFile(filepath.Join(append([]string{dir}, parts...)...))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestDecodeConformance(t *testing.T) {
	html := coded(testdata(t, "http", "compressed", "html-gzip.bin"), "gzip")
	if err := Decode(html, 1<<20); err != nil {
		t.Fatal(err)
	}
	for file, header := range map[string]string{
		"html-br.bin": "br", "html-rawdeflate.bin": "deflate", "html-zlibdeflate.bin": "deflate",
		"html-gzip-deflate.bin": "gzip, deflate", "html-gzip-deflate-gzip.bin": "gzip, deflate, gzip",
		"html-zstd-static-content-size.bin": "zstd", "html-zstd-static-no-content-size.bin": "zstd",
		"html-zstd-streaming-no-content-size.bin": "zstd",
	} {
		resp := coded(testdata(t, "http", "compressed", file), header)
		err := Decode(resp, 1<<20)
		if err != nil || len(resp.Body) == 0 || !strings.Contains(string(resp.Body), "<html") {
			t.Errorf("%s: %v, %d bytes", file, err, len(resp.Body))
		}
		if header != "br" && header != "deflate" && !bytes.Equal(resp.Body, html.Body) {
			t.Errorf("%s: differs from html-gzip.bin", file)
		}
	}
	for _, file := range []string{"truncated-crc-error.gz", "truncated-crc-error-short.gz", "unexpected-eof.gz"} {
		resp := coded(testdata(t, "http", "compressed", file), "gzip")
		if err := Decode(resp, 1<<20); err == nil || len(resp.Body) == 0 {
			t.Errorf("%s: %v, %d bytes", file, err, len(resp.Body))
		}
		if file == "unexpected-eof.gz" && len(resp.Body) != 8576 { // what zlib decodes of it
			t.Errorf("%s: %d bytes", file, len(resp.Body))
		}
	}
	for _, name := range []string{"br", "deflate", "gzip", "zstd"} {
		resp := coded(testdata(t, "http", "compressed", "bomb-"+name+".bin"), name)
		limit := max(ratioFloor, maxRatio*len(resp.Payload))
		if err := Decode(resp, 32<<20); !errors.Is(err, ErrBomb) || len(resp.Body) != limit {
			t.Errorf("%s bomb: %v, %d bytes", name, err, len(resp.Body))
		}
	}
}

// A bomb of each coding, and of nested codings, is cut where its ratio exceeds the limit.
func TestBombs(t *testing.T) {
	zeros := make([]byte, 20<<20)
	for _, codings := range [][]string{{"gzip"}, {"deflate"}, {"raw"}, {"br"}, {"zstd"}, {"gzip", "gzip"},
		{"gzip", "br"}} {
		resp := coded(encode(t, zeros, codings...), strings.Replace(strings.Join(codings, ", "), "raw", "deflate", 1))
		if limit := max(ratioFloor, maxRatio*len(resp.Payload)); limit >= len(zeros) {
			t.Fatalf("%s: %d bytes are no bomb", codings, len(resp.Payload))
		} else if err := Decode(resp, 256<<20); !errors.Is(err, ErrBomb) || len(resp.Body) > limit {
			t.Errorf("%s: %v, %d bytes of %d", codings, err, len(resp.Body), len(resp.Payload))
		}
	}
}

// The bomb is in the inner coding: both the coded body and the outer coding's output are small.
func TestHiddenBomb(t *testing.T) {
	empty := encode(t, nil, "gzip")
	resp := coded(encode(t, bytes.Repeat(empty, 200_000), "br"), "gzip, br")
	if err := Decode(resp, 32<<20); !errors.Is(err, ErrBomb) {
		t.Errorf("%d bytes: %v", len(resp.Payload), err)
	}
}

func TestDecodeConcurrently(t *testing.T) {
	var wg sync.WaitGroup
	for _, name := range []string{"gzip", "deflate", "br", "zstd"} {
		payload := encode(t, sample, name)
		for range 4 {
			wg.Go(func() {
				resp := coded(payload, name)
				for range 20 {
					if err := Decode(resp, 1<<20); err != nil || !bytes.Equal(resp.Body, sample) {
						t.Errorf("%s: %v", name, err)
					}
				}
			})
		}
	}
	wg.Wait()
}
