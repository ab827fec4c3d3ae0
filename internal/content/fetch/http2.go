package fetch

import (
	"context"
	"crypto/tls"
	"sync"
	"time"
)

// HTTP/2 is spoken as HTTP/1 is: by the goroutine that asked, one exchange at a time on a connection, with the
// connection's deadlines for time limits. So nothing that a server sends can outlive them, and an abandoned exchange
// leaves nothing behind. A site that may have several connections has its requests on those, not on streams of one.

// smallRead is for the first reads of an exchange, which may wait long. What comes before an answer is short.
const smallRead = 256

// frameBuffers are buffers for frames, out of which bodies are taken.
var frameBuffers = sync.Pool{New: func() any { return new([maxFrame + frameHeader]byte) }}

// encrypt speaks TLS over a link, and reports whether the server has chosen HTTP/2, which is offered if second.
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

// readPending reads what TLS has read behind the last answer, and reports whether the connection can be used for another:
// over HTTP/2 a server may say something between two answers. What still lies in the socket is read with the next
// answer. The read deadline is over afterwards.
func (c *conn) readPending() bool {
	s := c.session
	_ = c.SetReadDeadline(longAgo) // what TLS holds comes although time is over; a timeout does not spoil it
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

// transferHTTP2 is converse for HTTP/2. It reports whether the connection can be used again.
func (x *exchange) transferHTTP2(c *conn) (reusable bool, err error) {
	x.setDeadline(c)
	if err := x.parent.Err(); err != nil { // it may have ended before the time limit was set anew
		return false, err
	}
	s := c.session
	s.begin()
	// The frames are built behind the request as it is recorded, in the same buffer.
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

// readFrames reads until the answer ends.
func (x *exchange) readFrames(c *conn, s *session) (reusable bool, err error) {
	in := s.small[:]
	for read := 0; ; {
		if x.paused { // the server was not read for a while
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
		if x.frame.body > had { // what brings nothing must not hold the exchange up
			x.setDeadline(c)
		}
		if err := x.parent.Err(); err != nil {
			return false, err
		}
	}
}

// sendReplies sends what the session has to say.
func (x *exchange) sendReplies(c *conn, s *session) error {
	if len(s.out) == 0 {
		return nil
	}
	_, err := c.Write(s.out)
	s.out = s.out[:0]
	return err
}

// handleFrames reads what has come.
func (x *exchange) handleFrames(s *session, in []byte) error {
	for {
		over := s.state == ended
		e, what, rest, err := s.step(in)
		if over && err != nil {
			s.goingAway = true // what is wrong behind an answer is the connection's concern
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

// handleFields reads an interim answer, the head, or trailers.
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
		x.resp.Malformed = protocolError("%s in an answer", sec.forbidden).Error()
	}
	err := x.frame.setHead(head{proto: "HTTP/2.0", status: sec.status, length: -1}, len(x.raw))
	x.storeCookies()
	return err
}

// growHead gives a head that grows more room: memory from the budget, for which it waits.
func (x *exchange) growHead(raw []byte, want int) ([]byte, error) {
	x.raw = raw
	err := x.waitForMemory(want)
	return x.raw, err
}

// appendBody adds to the body, as much at once as there is room for.
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

// whole reports an answer that has ended before its body did.
func (x *exchange) checkComplete() error {
	if x.frame.state == plainBody {
		return errShort
	}
	return nil
}
