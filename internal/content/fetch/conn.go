package fetch

import (
	"context"
	"net"
	"time"

	"kumo/internal/base/weburl"
)

// A conn is a connection to a server: what is spoken over, and the wire below.
type conn struct {
	net.Conn // the wire, or TLS on it
	wire     *wire
	site     site
	session  *session // for HTTP/2; nil where HTTP/1 is spoken
	reused   bool     // it had an earlier exchange

	socket *socket

	domain string                // registered, of the host
	idle   time.Time             // since when; in the pool
	links  [idleLists]neighbours // in the lists of the pool
}

// isUntouched reports whether an idle connection is as it was left: the server has neither closed it nor said anything
// unasked, which must not pass for the next answer. A session ticket that comes late costs its connection, too. The
// read deadline is over afterwards.
func (c *conn) isUntouched() bool {
	if !c.socket.quiet() {
		return false
	}
	if _, plain := c.Conn.(*wire); plain {
		return true
	}
	// TLS may have read on behind the answer. What it holds comes although time is over; a timeout does not spoil it.
	_ = c.SetReadDeadline(longAgo)
	var b [1]byte
	n, err := c.Read(b[:])
	return n == 0 && isTimeout(err)
}

var longAgo = time.Unix(1, 0)

// connect opens a connection to a target. HTTP/2 is offered if second.
func (c *Client) connect(ctx context.Context, t target, second bool) (*conn, error) {
	ctx, cancel := c.dialContext(ctx)
	defer cancel()
	l, err := c.connectTo(ctx, t)
	if err != nil {
		return nil, err
	}
	var chosen bool
	if t.scheme == "https" {
		if chosen, err = c.encrypt(ctx, &l, t, second); err != nil {
			return nil, err
		}
	}
	conn := &conn{Conn: l.conn, wire: l.wire, site: siteOf(t), domain: weburl.Domain(t.hostname),
		socket: newSocket(l.wire.Conn)}
	if chosen {
		conn.session = newSession(c.cfg.MaxHeader)
	}
	return conn, nil
}

// abort ends what is under way on the connection, which is not used again.
func (c *conn) abort() {
	c.wire.cancel()
	_ = c.wire.Conn.SetDeadline(longAgo) // it fails where the connection has ended already
}
