package synthweb

import (
	"net"
	"net/http"
	"strconv"
	"time"
)

// A responder holds the buffers for one response. Connections share responders, because most connections are idle.
type responder struct {
	page writer
	out  outlet
}

// A framing describes how a response is transferred.
type framing struct {
	gzip, chunked bool
	length        int // length of the body as sent
	cutAfter      int // bytes of the body after which the connection is closed; 0: never
	last          bool
}

func (b *responder) framing(r *request, v *visit, h *host) framing {
	f := framing{chunked: !r.old && h.traits.has(Chunked) && v.ref.N%2 == 0, last: r.last || h.traits.has(Closing)}
	text := v.ref.Kind != Image && len(b.page.pieces) > 0
	f.gzip = text && r.gzip && h.traits.has(Gzip)
	f.length = b.page.size(f.gzip)
	if v.ref.Kind == Cut && f.length > 1 {
		f.cutAfter, f.last = f.length/2, true
	}
	return f
}

func (b *responder) head(a *answer, f framing, retry time.Duration) {
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
		b.out.buf = append(out, "\r\n"...) // no body, so no length
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

func (b *responder) body(f framing) {
	if f.gzip {
		b.page.gzipped(b.out.body)
	} else {
		b.page.plain(b.out.body)
	}
	if f.chunked && f.cutAfter == 0 {
		b.out.raw([]byte("0\r\n\r\n"))
	}
}

const outletFull = 64 << 10

// An outlet buffers a response and sends it in large writes. It holds back the last bytes until finish.
type outlet struct {
	conn    net.Conn
	buf     []byte
	chunked bool
	room    int // bytes left before the response is cut; negative: no limit
	sent    int64
	err     error
}

func (o *outlet) start(conn net.Conn, f framing) {
	*o = outlet{conn: conn, buf: o.buf[:0], chunked: f.chunked, room: -1}
	if f.cutAfter > 0 {
		o.room = f.cutAfter
	}
}

// body adds a part of the body, framed if the response is chunked.
func (o *outlet) body(p []byte) {
	if o.room >= 0 {
		p = p[:min(len(p), o.room)]
		o.room -= len(p)
	}
	if len(p) == 0 {
		return
	}
	if !o.chunked {
		o.raw(p)
		return
	}
	o.buf = append(strconv.AppendInt(o.buf, int64(len(p)), 16), "\r\n"...)
	o.raw(p)
	o.buf = append(o.buf, "\r\n"...)
}

func (o *outlet) raw(p []byte) {
	if len(o.buf) > 0 && len(o.buf)+len(p) > outletFull {
		o.finish()
	}
	o.buf = append(o.buf, p...)
}

// finish sends the rest.
func (o *outlet) finish() {
	if o.err == nil {
		var n int
		n, o.err = o.conn.Write(o.buf)
		o.sent += int64(n)
	}
	o.buf = o.buf[:0]
}
