package fetch

import (
	"context"
	"net"
	"time"

	"kumo/internal/base/weburl"
)

// A conn is a connection to a server.
type conn struct {
	net.Conn // the wire, or TLS over it
	wire     *wire
	site     site
	session  *session // HTTP/2 state; nil for HTTP/1
	reused   bool     // it has carried an earlier exchange

	socket *socket

	domain string                // registered domain of the host
	idle   time.Time             // idle since; set while in the pool
	links  [idleLists]neighbours // positions in the pool's lists
}

// isUntouched reports whether the server has neither closed an idle connection nor sent data on it. Unsolicited data
// must not be read as the next response. A late TLS session ticket also makes the connection unusable. The read
// deadline has expired afterwards.
func (c *conn) isUntouched() bool {
	if !c.socket.quiet() {
		return false
	}
	if _, plain := c.Conn.(*wire); plain {
		return true
	}
	// TLS may have read data beyond the last response. Buffered data is returned despite the expired deadline, and the
	// timeout error does not break the TLS connection.
	_ = c.SetReadDeadline(longAgo)
	var b [1]byte
	n, err := c.Read(b[:])
	return n == 0 && isTimeout(err)
}

var longAgo = time.Unix(1, 0)

// connect opens a connection to a target. If second is true, it offers HTTP/2.
func (c *Client) connect(ctx context.Context, t target, second bool) (*conn, error) {
	ctx, cancel := c.dialContext(ctx)
	defer cancel()
	l, err := c.connectTo(ctx, t)
	if err != nil {
		return nil, err
	}
	var chosen bool
	if t.scheme == "https" && c.cfg.Transport == nil {
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

// abort interrupts reads and writes on the connection, which must not be used again.
func (c *conn) abort() {
	c.wire.cancel()
	_ = c.wire.Conn.SetDeadline(longAgo) // fails if the connection is already closed
}
