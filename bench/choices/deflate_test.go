package choices

import (
	stdgzip "compress/gzip"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"kumo/internal/state/seen/urlgen"
	"kumo/internal/state/store/warc/deflate"
)

// BenchmarkDeflate compresses WARC records, a member each: responses with a gzip body, responses with an uncompressed
// body, and small records such as a page's links. kumo uses its own encoder for the first and last kinds, and
// klauspost/compress at level 1 for the other.
func BenchmarkDeflate(b *testing.B) {
	var coded, plain [][]byte
	for _, text := range corpus(b) {
		coded = append(coded, record(gzipped(b, text), "gzip"))
		plain = append(plain, record(text, "identity"))
	}
	for _, kind := range []struct {
		name    string
		records [][]byte
	}{{"gzipped", coded}, {"plain", plain}, {"small", smallRecords(len(plain))}} {
		b.Run(kind.name, func(b *testing.B) { compressAll(b, kind.records) })
	}
}

// record returns a WARC response record.
func record(body []byte, coding string) []byte {
	head := fmt.Sprintf(`HTTP/1.1 200 OK
Server: nginx
Date: Sun, 22 Nov 2026 03:12:13 GMT
Content-Type: text/html; charset=utf-8
Content-Encoding: %s

`, coding)
	fields := fmt.Sprintf(`WARC/1.1
WARC-Type: response
WARC-Record-ID: <urn:uuid:3ad4ba1a-6f0a-4d2c-9a5e-3a9c0d3b8f11>
WARC-Target-URI: https://example.org/section/12/page.html
WARC-Date: 2026-11-22T03:12:13.123456Z
WARC-Payload-Digest: sha1:EGPDUUIRFVRKSDDJ4U7NMKNV6KWSYZ2B
WARC-Block-Digest: sha1:EGPDUUIRFVRKSDDJ4U7NMKNV6KWSYZ2C
Content-Type: application/http;msgtype=response
Content-Length: %d

`, len(head)+len(body))
	return fmt.Appendf(nil, "%s%s\r\n\r\n", strings.ReplaceAll(fields+head, "\n", "\r\n"), body)
}

// smallRecords returns metadata records with a page's links.
func smallRecords(n int) (all [][]byte) {
	urls := urlgen.New(1)
	for i := range n {
		rec := fmt.Appendf(nil, "WARC/1.1\r\nWARC-Type: metadata\r\nContent-Type: application/warc-fields\r\n"+
			"WARC-Target-URI: https://example.org/section/%d/page.html\r\n\r\n"+
			"via: https://example.org/\r\nfetchTimeMs: %d\r\n", i, i%997)
		for range 27 {
			rec = append(urls.Append(append(rec, "outlink: "...)), " L a/@href\r\n"...)
		}
		all = append(all, rec)
	}
	return all
}

func compressAll(b *testing.B, records [][]byte) {
	size := 0
	for _, r := range records {
		size += len(r)
	}
	b.Logf("%d records of %d bytes in the mean", len(records), size/len(records))
	var all []*contender
	add := func(name string, pack func(to io.Writer, record []byte) error) {
		c := &contender{name: name}
		c.run = func() error {
			var out counter
			for _, r := range records {
				if err := pack(&out, r); err != nil {
					return err
				}
			}
			c.note = fmt.Sprintf("%.1f %% of the size", 100*float64(out)/float64(size))
			return nil
		}
		all = append(all, c)
	}
	var own deflate.Encoder
	var made []byte
	add("kumo's encoder", func(to io.Writer, r []byte) error {
		made = append(made[:0], "\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff"...)
		made = own.Append(made, r)
		made = binary.LittleEndian.AppendUint32(made, crc32.ChecksumIEEE(r))
		made = binary.LittleEndian.AppendUint32(made, uint32(len(r)))
		_, err := to.Write(made)
		return err
	})
	for _, level := range []int{0, 1, 6} {
		z, err := gzip.NewWriterLevel(nil, level)
		check(b, err)
		add(fmt.Sprintf("klauspost/compress %d", level), func(to io.Writer, r []byte) error { return member(z, to, r) })
	}
	for _, level := range []int{1, 6} {
		z, err := stdgzip.NewWriterLevel(nil, level)
		check(b, err)
		add(fmt.Sprintf("compress/gzip %d", level), func(to io.Writer, r []byte) error { return member(z, to, r) })
	}
	fastest, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	check(b, err)
	var room []byte
	add("zstd 1", func(to io.Writer, r []byte) error {
		room = fastest.EncodeAll(r, room[:0])
		_, err := to.Write(room)
		return err
	})
	byTurns(b, "record", len(records), all...)
}

// A counter counts the bytes written to it.
type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

func member(z interface {
	io.WriteCloser
	Reset(io.Writer)
}, to io.Writer, record []byte) error {
	z.Reset(to)
	if _, err := z.Write(record); err != nil {
		return err
	}
	return z.Close()
}

func check(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
