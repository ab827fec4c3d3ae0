package fetch

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"time"

	"golang.org/x/time/rate"
)

// A wire is a TCP connection and what is known of how it came to be.
type wire struct {
	net.Conn
	limit  *rate.Limiter // nil for no limit
	ctx    context.Context
	cancel context.CancelFunc // ends a wait for the limiter

	addr                    netip.AddrPort
	tls                     string    // version, "" without
	due                     time.Time // when connecting, with whatever handshakes it takes, must have ended
	dns, connect, handshake time.Duration
}

// A link is a connection to a target or a proxy: a wire, or TLS or a tunnel on it.
type link struct {
	conn net.Conn
	wire *wire
}

func (c *Client) newWire(conn net.Conn) *wire {
	w := &wire{Conn: conn, limit: c.limit}
	if a, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		ap := a.AddrPort()
		w.addr = netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
	}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

// newLimit makes the limiter that all connections share. Reads are cut into a fiftieth of a second's worth, so that even many
// connections at a low rate each get their turn well within the time limits.
func newLimit(bandwidth int64) *rate.Limiter {
	if bandwidth <= 0 {
		return nil
	}
	return rate.NewLimiter(rate.Limit(bandwidth), int(min(max(bandwidth/50, 1<<10), 64<<10)))
}

func (w *wire) Read(p []byte) (int, error) {
	if w.limit == nil {
		return w.Conn.Read(p)
	}
	n, err := w.Conn.Read(p[:min(len(p), w.limit.Burst())])
	if n > 0 && w.limit.WaitN(w.ctx, n) != nil && err == nil {
		err = net.ErrClosed
	}
	return n, err
}

func (w *wire) Close() error {
	w.cancel()
	return w.Conn.Close()
}

// wireOf finds the wire under a connection that this package dialled.
func wireOf(conn net.Conn) *wire {
	switch c := conn.(type) {
	case *wire:
		return c
	case *tap:
		return c.wire
	case *tls.Conn:
		return wireOf(c.NetConn())
	}
	return nil
}
