package fetch

import (
	"context"
	"crypto/tls"
	"sync"
	"time"
)

// HTTP/2 works like HTTP/1: the requesting goroutine does all I/O, a connection carries one exchange at a time, and the
// connection's deadlines are the time limits. So nothing that a server sends can outlive them, and an abandoned
// exchange leaves nothing behind. Concurrent requests to a site use several connections, not several streams of one.

// smallRead is the buffer size for the first reads of an exchange, which may wait long. Frames before a response are
// short.
const smallRead = 256

// frameBuffers are read buffers. Bodies are copied out of them.
var frameBuffers = sync.Pool{New: func() any { return new([maxFrame + frameHeader]byte) }}

// encrypt performs a TLS handshake. If second is true, it offers HTTP/2. It reports whether the server chose HTTP/2.
func (c *Client) encrypt(ctx context.Context, l *link, t target, second bool) (chosen bool, err error) {
	begin := time.Now()
	protocols := []string{"h2", "http/1.1"}
	if !second {
		protocols = protocols[1:]
	}
	conn, err := c.handshake(ctx, *l, t.hostname, protocols...)
	if err != nil {
		return false, dialError("handshake", err)
	}
	l.wire.handshake = time.Since(begin)
	state := conn.ConnectionState()
	l.wire.tls = tls.VersionName(state.Version)
	l.conn = conn
	return state.NegotiatedProtocol == "h2", nil
}

// readPending processes the data that TLS has buffered after the last response, since an HTTP/2 server may send frames
// between two responses. It reports whether the connection can be reused. Data still in the socket is read with the
// next response. The read deadline has expired afterwards.
func (c *conn) readPending() bool {
	s := c.session
	// buffered data is returned despite the expired deadline; the timeout does not break the TLS connection
	_ = c.SetReadDeadline(longAgo)
	for {
		n, err := c.Read(s.small[:])
		if _, _, _, bad := s.step(s.small[:n]); bad != nil {
			return false
		}
		if err != nil {
			return isTimeout(err) && s.reusable()
		}
	}
}

// transferHTTP2 implements transfer for HTTP/2. It reports whether the connection can be reused.
func (x *exchange) transferHTTP2(c *conn) (reusable bool, err error) {
	x.setDeadline(c)
	if err := x.parent.Err(); err != nil { // the context may have ended before the deadline was set
		return false, err
	}
	s := c.session
	s.begin()
	// The frames are in the same buffer, after the request in its recorded form.
	n := len(x.out)
	b := x.client.appendFrames(x.out, s, x.live, &x.req, x.target, x.cookie)
	x.out = b[:n]
	if _, err := c.Write(b[n:]); err != nil && isTimeout(err) {
		return false, err
	}
	if err := c.socket.wait(); err != nil {
		return false, err
	}
	return x.readFrames(c, s)
}

// readFrames reads until the response ends.
func (x *exchange) readFrames(c *conn, s *session) (reusable bool, err error) {
	in := s.small[:]
	for read := 0; ; {
		if x.paused { // reading stopped for a while to wait for memory
			x.paused = false
			x.setDeadline(c)
		}
		n, err := c.Read(in)
		read += n
		had := x.frame.body
		if bad := x.handleFrames(s, in[:n]); bad != nil {
			return false, bad
		}
		if err == nil {
			err = x.sendReplies(c, s)
		}
		switch {
		case s.state == ended:
			return err == nil && s.reusable(), x.checkComplete()
		case err != nil:
			return false, err
		case read > x.maxRaw:
			return false, errFull
		case x.frame.end == 0:
			continue
		}
		if len(in) == smallRead {
			room := frameBuffers.Get().(*[maxFrame + frameHeader]byte)
			defer frameBuffers.Put(room)
			in = room[:]
		}
		if x.frame.body > had { // frames without body data do not extend the deadline
			x.setDeadline(c)
		}
		if err := x.parent.Err(); err != nil {
			return false, err
		}
	}
}

// sendReplies writes the frames that the session has queued.
func (x *exchange) sendReplies(c *conn, s *session) error {
	if len(s.out) == 0 {
		return nil
	}
	_, err := c.Write(s.out)
	s.out = s.out[:0]
	return err
}

// handleFrames processes input.
func (x *exchange) handleFrames(s *session, in []byte) error {
	for {
		over := s.state == ended
		e, what, rest, err := s.step(in)
		if over && err != nil {
			s.goingAway = true // an error after the response concerns only the connection
			return nil
		}
		if s.answered && x.resp.FirstByte == 0 {
			x.resp.FirstByte = time.Since(x.begin)
		}
		switch {
		case err != nil:
			return err
		case e == needInput:
			return nil
		case e == fieldBlock:
			err = x.handleFields(s, what)
		case e == bodyPart:
			err = x.appendBody(what)
		}
		if err != nil {
			return err
		}
		in = rest
	}
}

// handleFields processes an interim response, the head, or trailers.
func (x *exchange) handleFields(s *session, block []byte) error {
	x.arrive()
	sec := section{raw: x.raw, fields: x.frame.fields, grow: x.growHead}
	if err := s.decode(block, &sec); err != nil || sec.trailers {
		return err
	}
	if x.raw = sec.raw; sec.status/100 == 1 {
		x.raw = x.raw[:0]
	}
	if sec.forbidden != "" {
		x.resp.Malformed = protocolError("%s in a response", sec.forbidden).Error()
	}
	err := x.frame.setHead(head{proto: "HTTP/2.0", status: sec.status, length: -1}, len(x.raw))
	x.storeCookies()
	return err
}

// growHead enlarges the buffer of a head. It waits for memory from the budget.
func (x *exchange) growHead(raw []byte, want int) ([]byte, error) {
	x.raw = raw
	err := x.waitForMemory(want)
	return x.raw, err
}

// appendBody appends data to the body, in parts as large as the buffer space allows.
func (x *exchange) appendBody(part []byte) error {
	for {
		if err := x.makeRoom(max(len(part), x.frame.nextReadSize())); err != nil {
			return err
		}
		n := min(len(part), cap(x.raw)-len(x.raw))
		x.raw = append(x.raw, part[:n]...)
		end, err := x.frame.advance(x.raw)
		surplus := end < len(x.raw)
		x.raw = x.raw[:end]
		if err == nil && surplus {
			err = protocolError("more DATA than the Content-Length of %s", x.frame.fields.Get("Content-Length"))
		}
		if part = part[n:]; err != nil || len(part) == 0 {
			return err
		}
	}
}

// checkComplete returns an error if the response ended before its body did.
func (x *exchange) checkComplete() error {
	if x.frame.state == plainBody {
		return errShort
	}
	return nil
}
