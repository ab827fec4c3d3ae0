package fetch

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// A wire is a TCP connection with its properties.
type wire struct {
	net.Conn
	limit  *rate.Limiter // nil: no limit
	ctx    context.Context
	cancel context.CancelFunc // ends a wait for the limiter
	opened time.Time
	// readDeadline is the deadline of reads, in nanoseconds since opened by the monotonic clock; 0: none. SOCKS sets it
	// from two goroutines.
	readDeadline atomic.Int64
	slot         *sockets // where its socket was acquired
	closed       atomic.Bool
	peerClosed   atomic.Bool // a read has met the end of the TCP connection

	addr                    netip.AddrPort
	tls                     string    // TLS version, "": none
	connectDeadline         time.Time // deadline for connecting, including all handshakes
	dns, connect, handshake time.Duration
}

// A link is a connection to a target or a proxy: a wire, or TLS or a tunnel over it.
type link struct {
	conn net.Conn
	wire *wire
}

func (c *Client) newWire(conn net.Conn) *wire {
	w := &wire{Conn: conn, limit: c.limit, opened: time.Now()}
	if a, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		ap := a.AddrPort()
		w.addr = netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
	}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

// newLimit returns the limiter that all connections share. Reads are limited to a fiftieth of a second's worth of
// bytes, so that many connections share a low rate fairly within the time limits.
func newLimit(bandwidth int64) *rate.Limiter {
	if bandwidth <= 0 {
		return nil
	}
	return rate.NewLimiter(rate.Limit(bandwidth), int(min(max(bandwidth/50, 1<<10), 64<<10)))
}

func (w *wire) Read(p []byte) (int, error) {
	if w.limit != nil {
		p = p[:min(len(p), w.limit.Burst())]
	}
	n, err := w.Conn.Read(p)
	if errors.Is(err, io.EOF) {
		w.peerClosed.Store(true)
	}
	if n > 0 && w.limit != nil {
		if late := w.wait(n); late != nil && err == nil {
			err = late
		}
	}
	return n, err
}

// wait waits for the limiter, at most until the read deadline.
func (w *wire) wait(n int) error {
	ctx := w.ctx
	if until := w.readDeadline.Load(); until != 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, w.opened.Add(time.Duration(until)))
		defer cancel()
	}
	switch err := w.limit.WaitN(ctx, n); {
	case err == nil:
		return nil
	case w.ctx.Err() != nil:
		return net.ErrClosed
	}
	return os.ErrDeadlineExceeded
}

func (w *wire) SetDeadline(t time.Time) error {
	w.endReads(t)
	return w.Conn.SetDeadline(t)
}

func (w *wire) SetReadDeadline(t time.Time) error {
	w.endReads(t)
	return w.Conn.SetReadDeadline(t)
}

func (w *wire) endReads(t time.Time) {
	if t.IsZero() {
		w.readDeadline.Store(0)
		return
	}
	until := int64(t.Sub(w.opened))
	if until == 0 {
		until = -1
	}
	w.readDeadline.Store(until)
}

func (w *wire) Close() error {
	w.cancel()
	err := w.Conn.Close()
	if !w.closed.Swap(true) {
		w.slot.release()
	}
	return err
}
