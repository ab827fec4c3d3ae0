package fetch

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"testing"

	"kumo/internal/base/page"
)

// prose returns text that compresses about as well as a page.
func prose(n int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	var b bytes.Buffer
	for b.Len() < n {
		fmt.Fprintf(&b, "<p class=\"c%d\"><a href=\"/page/%d\">%x</a> and more text</p>\n", r.IntN(9), r.IntN(1e6),
			r.Uint32())
	}
	return b.Bytes()[:n]
}

func BenchmarkGet(b *testing.B) {
	body := encode(b, prose(30_000), "gzip")
	answer := append(fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Encoding: "+
		"gzip\r\n"+
		"Date: Sat, 21 Nov 2026 03:00:00 GMT\r\nServer: bench\r\nContent-Length: %d\r\n\r\n", len(body)), body...)
	url := "http://" + serve(b, func(_ int, conn net.Conn) {
		request := make([]byte, 4096)
		for {
			if n, err := conn.Read(request); err != nil || !bytes.HasSuffix(request[:n], []byte("\r\n\r\n")) {
				return
			}
			conn.Write(answer)
		}
	}) + "/a/page"
	c, resp := newClient(b, Config{}), new(page.Response)
	b.ReportAllocs()
	for b.Loop() {
		if err := c.Get(b.Context(), Request{URL: url}, resp); err != nil || len(resp.Payload) != len(body) {
			b.Fatalf("%v, %d bytes", err, len(resp.Payload))
		}
	}
}

// BenchmarkGetHTTP2 fetches the same page over HTTP/2. The server reads requests only to find their end.
func BenchmarkGetHTTP2(b *testing.B) {
	body := encode(b, prose(30_000), "gzip")
	url := "https://" + serveSecond(b, func(_ int, p *peer) {
		p.WriteSettings()
		for stream := p.request(); stream != 0; stream = p.request() {
			p.head(stream, false, ":status", "200", "content-type", "text/html; charset=utf-8", "content-encoding", "gzip",
				"date", "Sat, 21 Nov 2026 03:00:00 GMT", "server", "bench", "content-length", fmt.Sprint(len(body)))
			p.WriteData(stream, true, body)
		}
	}) + "/a/page"
	c, resp := newClient(b, Config{InsecureTLS: true}), new(page.Response)
	b.ReportAllocs()
	for b.Loop() {
		if err := c.Get(b.Context(), Request{URL: url}, resp); err != nil || len(resp.Payload) != len(body) ||
			resp.Proto != "HTTP/2.0" {
			b.Fatalf("%v, %d bytes, %s", err, len(resp.Payload), resp.Proto)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	text := prose(30_000)
	for _, name := range []string{"gzip", "br", "zstd"} {
		b.Run(name, func(b *testing.B) {
			resp := coded(encode(b, text, name), name)
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if err := Decode(resp, 1<<20); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkFramer(b *testing.B) {
	raw := bytes.Repeat([]byte("1000\r\n"+string(make([]byte, 0x1000))+"\r\n"), 8)
	raw = append([]byte("HTTP/1.1 200 OK\r\nServer: x\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n"),
		raw...)
	b.SetBytes(int64(len(raw)))
	fields, chunks := http.Header{}, []byte(nil)
	for b.Loop() {
		f := framer{maxHead: 1 << 20, maxBody: 1 << 20, fields: fields, chunks: chunks[:0]}
		if n, err := f.advance(raw); n != len(raw) || err != nil {
			b.Fatal("cut short", err)
		}
		chunks = f.chunks
		clear(fields)
	}
}
