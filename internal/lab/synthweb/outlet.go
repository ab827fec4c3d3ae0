package synthweb

import (
	"net"
	"strconv"
)

const outletFull = 64 << 10

// An outlet gathers an answer and sends it in large writes. It always keeps the last bytes back until finish.
type outlet struct {
	conn    net.Conn
	buf     []byte
	chunked bool
	room    int // bytes that may still be sent before the answer is cut; negative: all
	sent    int64
	err     error
}

func (o *outlet) start(conn net.Conn, f framing) {
	*o = outlet{conn: conn, buf: o.buf[:0], chunked: f.chunked, room: -1}
	if f.cutAfter > 0 {
		o.room = f.cutAfter
	}
}

// body takes a part of the body, framed if the answer is chunked.
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

// finish sends what is left.
func (o *outlet) finish() {
	if o.err == nil {
		var n int
		n, o.err = o.conn.Write(o.buf)
		o.sent += int64(n)
	}
	o.buf = o.buf[:0]
}
