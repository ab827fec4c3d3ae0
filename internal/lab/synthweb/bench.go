package synthweb

import (
	"net/http"
	"strconv"
	"time"
)

// A bench is what one answer is made on. Connections share them, as most wait most of the time.
type bench struct {
	page writer
	out  outlet
}

// A framing is how an answer goes over the wire.
type framing struct {
	gzip, chunked bool
	length        int // of the body as sent
	cutAfter      int // bytes of the body after which the connection ends; 0: none
	last          bool
}

func (b *bench) framing(r *request, v *visit, h *host) framing {
	f := framing{chunked: !r.old && h.traits.has(Chunked) && v.ref.N%2 == 0, last: r.last || h.traits.has(Closing)}
	text := v.ref.Kind != Image && len(b.page.pieces) > 0
	f.gzip = text && r.gzip && h.traits.has(Gzip)
	f.length = b.page.size(f.gzip)
	if v.ref.Kind == Cut && f.length > 1 {
		f.cutAfter, f.last = f.length/2, true
	}
	return f
}

func (b *bench) head(a *answer, f framing, retry time.Duration) {
	out := append(b.out.buf, "HTTP/1.1 "...)
	out = append(strconv.AppendInt(out, int64(a.status), 10), ' ')
	out = append(append(out, http.StatusText(a.status)...), "\r\nServer: synthweb\r\n"...)
	out = appendField(out, "Content-Type: ", a.contentType)
	out = appendField(out, "Location: ", a.location)
	out = appendField(out, "ETag: ", a.etag)
	out = appendField(out, "Last-Modified: ", a.modified)
	if retry >= 0 {
		out = append(strconv.AppendInt(append(out, "Retry-After: "...), int64(retry/time.Second), 10), "\r\n"...)
	}
	if f.gzip {
		out = append(out, "Content-Encoding: gzip\r\nVary: Accept-Encoding\r\n"...)
	}
	if f.last {
		out = append(out, "Connection: close\r\n"...)
	}
	if a.status == http.StatusNotModified {
		b.out.buf = append(out, "\r\n"...) // no body, and no word of its length
		return
	}
	if f.chunked {
		out = append(out, "Transfer-Encoding: chunked\r\n"...)
	} else {
		out = append(strconv.AppendInt(append(out, "Content-Length: "...), int64(f.length), 10), "\r\n"...)
	}
	b.out.buf = append(out, "\r\n"...)
}

func appendField(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	return append(append(append(b, name...), value...), "\r\n"...)
}

func (b *bench) body(f framing) {
	if f.gzip {
		b.page.gzipped(b.out.body)
	} else {
		b.page.plain(b.out.body)
	}
	if f.chunked && f.cutAfter == 0 {
		b.out.raw([]byte("0\r\n\r\n"))
	}
}
