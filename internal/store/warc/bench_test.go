package warc

import (
	"crypto/sha1"
	"fmt"
	"strings"
	"testing"

	"kumo/internal/page"
	"kumo/internal/store/storetest"
)

// BenchmarkPut stores a page of 30 KB with 40 links.
func BenchmarkPut(b *testing.B) {
	for _, compression := range []string{"gzip", "zstd", "none"} {
		b.Run(compression, func(b *testing.B) {
			s := openTest(b, b.TempDir(), func(c *Config) { c.Compression = compression })
			rec := bigRecord()
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
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

func bigRecord() *page.Record {
	rec := storetest.Record(1)
	res := rec.Response
	var text strings.Builder
	for i := 0; text.Len() < 30_000; i++ {
		fmt.Fprintf(&text, "<li class=\"item item-%d\"><a href=\"/section/%d/page.html\">Entry number %d</a> %x</li>\n",
			i%7, i*37, i, sha1.Sum([]byte{byte(i)}))
	}
	res.Raw = append(res.Raw[:res.HeadLen:res.HeadLen], text.String()...)
	res.Payload = res.Raw[res.HeadLen:]
	for i := range 40 {
		rec.Page.Links = append(rec.Page.Links, page.Link{URL: fmt.Sprintf("https://example.org/section/%d/page.html", i), Kind: page.Anchor})
	}
	return rec
}
