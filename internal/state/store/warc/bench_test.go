package warc

import (
	"bytes"
	"compress/gzip"
	"crypto/sha1"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"kumo/internal/base/page"
	"kumo/internal/base/vfs"
	"kumo/internal/state/store/storetest"
)

// BenchmarkPut stores a page of 33 KB with 40 links, plain and as most servers send it: gzipped to 8 KB.
func BenchmarkPut(b *testing.B) {
	for _, compression := range []string{"gzip", "zstd", "none"} {
		for _, coding := range []string{"identity", "gzip"} {
			b.Run(compression+"/body="+coding, func(b *testing.B) { benchmarkPut(b, compression, bigRecord(coding)) })
		}
	}
}

func benchmarkPut(b *testing.B, compression string, rec *page.Record) {
	cfg := Config{Dir: b.TempDir(), Hostname: "host1", Compression: compression, MaxSize: 1 << 60}
	s, err := Open(devNull{}, cfg, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(rec.Response.Raw)))
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		rec := *rec
		for pb.Next() {
			if err := s.Put(&rec); err != nil {
				b.Error(err)
			}
		}
	})
	b.ReportMetric(float64(s.cur.records.Len())/float64(b.N), "filebytes/op")
	if err := s.cur.close(); err != nil {
		b.Fatal(err)
	}
}

// devNull is a disk that discards everything.
type devNull struct{ vfs.FS }

func (devNull) MkdirAll(string) error           { return nil }
func (devNull) List(string) ([]string, error)   { return nil, nil }
func (devNull) Append(string) (vfs.File, error) { return nullFile{}, nil }
func (devNull) Size(string) (int64, error)      { return 0, fs.ErrNotExist }

type nullFile struct{}

func (nullFile) Write(p []byte) (int, error) { return len(p), nil }
func (nullFile) Sync() error                 { return nil }
func (nullFile) Close() error                { return nil }

// bigRecord returns a page of 33 KB without equal lines and with 40 links. coding is the content coding.
func bigRecord(coding string) *page.Record {
	rec := storetest.Record(1)
	var text strings.Builder
	for i := 0; text.Len() < 33_000; i++ {
		fmt.Fprintf(&text, "<li class=\"item item-%d\"><a href=\"/section/%d/page.html\">Entry number %d</a> %x</li>\n",
			i%7, i*37, i, sha1.Sum(fmt.Append(nil, i)))
	}
	body := []byte(text.String())
	head := "HTTP/1.1 200 OK\r\nServer: nginx\r\nDate: Sat, 21 Nov 2026 03:12:13 GMT\r\nContent-Type: text/html; " +
		"charset=utf-8\r\n" +
		"Connection: keep-alive\r\nVary: Accept-Encoding\r\nLast-Modified: Fri, 20 Nov 2026 11:02:03 GMT\r\n" +
		"Cache-Control: max-age=600\r\nETag: W/\"5f3a-6412d9e7b2c40\"\r\n"
	if coding == "gzip" {
		var coded bytes.Buffer
		z := gzip.NewWriter(&coded)
		_, _ = z.Write(body) // to memory
		_ = z.Close()
		head += "Content-Encoding: gzip\r\n"
		body = coded.Bytes()
	}
	head += fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body))
	res := rec.Response
	res.Raw, res.HeadLen = append([]byte(head), body...), len(head)
	res.Payload = res.Raw[res.HeadLen:]
	rec.Digest = sha1.Sum(res.Payload)
	res.RequestRaw = []byte("GET /page-00001/ HTTP/1.1\r\nHost: example.org\r\n" +
		"User-Agent: Mozilla/5.0 (compatible; kumo/0.1.0; +https://example.org/bot)\r\n" +
		"Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\nAccept-Encoding: gzip, deflate, br, " +
		"zstd\r\n\r\n")
	for i := range 40 {
		url := fmt.Sprintf("https://example.org/section/%d/page-%x.html", i/5, i*i*77)
		rec.Page.Links = append(rec.Page.Links, page.Link{URL: url, Kind: page.Anchor})
	}
	return rec
}
