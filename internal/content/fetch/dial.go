package fetch

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// headStart is the time until the second address family is tried in parallel with the first (RFC 8305, with one race
// instead of one per address).
const headStart = 300 * time.Millisecond

// dialContext returns a context that also ends when the client is closed.
func (c *Client) dialContext(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(c.ctx, cancel)
	return ctx, func() { stop(); cancel() }
}

// handshake performs a TLS handshake. It closes the connection on failure.
func (c *Client) handshake(ctx context.Context, l link, hostname string, protocols ...string) (*tls.Conn, error) {
	ctx, cancel := context.WithDeadline(ctx, l.wire.connectDeadline)
	defer cancel()
	cfg := c.tls.Clone()
	cfg.ServerName, cfg.NextProtos = strings.TrimSuffix(hostname, "."), protocols
	conn := tls.Client(l.conn, cfg)
	if err := conn.HandshakeContext(ctx); err != nil {
		l.conn.Close()
		if !c.cfg.LegacyTLS && mayBeLegacy(err) {
			err = fmt.Errorf("%w (the server may support only old TLS: try --tls-legacy)", err)
		}
		return nil, err
	}
	return conn, nil
}

// mayBeLegacy reports whether a handshake may have failed because the two sides share no version or cipher suite. The
// errors of crypto/tls have no types.
func mayBeLegacy(err error) bool {
	return slices.ContainsFunc([]string{"remote error: tls: handshake failure", "tls: protocol version not supported",
		"tls: server selected unsupported protocol version", "remote error: tls: insufficient security level"},
		func(part string) bool { return strings.Contains(err.Error(), part) })
}

// reachNet connects to t over the network.
func (c *Client) reachNet(ctx context.Context, t target) (link, error) {
	if t.proxy != nil {
		return t.proxy.reach(ctx, c, t)
	}
	allowed := c.allowed.Has(t.host)
	w, err := c.dial(ctx, t.hostname, t.port, allowed || c.cfg.AllowPrivate)
	return link{w, w}, err
}

// dial looks up a name and connects to one of its addresses. Private addresses are allowed if free is true.
func (c *Client) dial(ctx context.Context, hostname, port string, free bool) (*wire, error) {
	begin := time.Now()
	limit := c.live.Load().connect
	conn, found, err := c.dialHost(ctx, hostname, port, free, limit)
	if err != nil {
		return nil, err
	}
	w := c.newWire(conn)
	w.slot = c.sockets
	w.dns, w.connect, w.connectDeadline = found.Sub(begin), time.Since(found), found.Add(limit)
	return w, nil
}

// dialHost looks up a name and connects to one of its addresses. limit applies to the connection alone; found is the
// time when the lookup ended. The caller owns the connection and a socket, which it must release after closing the
// connection.
func (c *Client) dialHost(ctx context.Context, hostname, port string, free bool, limit time.Duration) (conn net.Conn,
	found time.Time, err error) {
	addrs, fixed, err := c.addresses(ctx, hostname, port)
	if err != nil {
		return nil, found, dialError("resolve", err)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, found, dialError("dial", err)
	}
	found = time.Now()
	ctx, cancel := context.WithDeadline(ctx, found.Add(limit))
	defer cancel()
	d := dialer{client: c, port: uint16(number)}
	if !free && !fixed {
		d.net.ControlContext = guard
	}
	if conn, err = d.race(ctx, addrs); err != nil {
		return nil, found, dialError("dial", err)
	}
	return conn, found, nil
}

// addresses returns the addresses of a host, in the order to try. fixed reports whether Config sets them.
func (c *Client) addresses(ctx context.Context, hostname, port string) (addrs []netip.Addr, fixed bool, err error) {
	if addrs = c.fixed.lookup(hostname, port); addrs != nil {
		return addrs, true, nil
	}
	if mayBeAddress(hostname) {
		if a, err := netip.ParseAddr(hostname); err == nil {
			return []netip.Addr{a}, false, nil
		}
	}
	addrs, err = c.resolver.resolve(ctx, hostname)
	return addrs, false, err
}

// mayBeAddress reports whether a host may be an IP address. It avoids the cost of a parse error for names.
func mayBeAddress(hostname string) bool {
	return strings.Contains(hostname, ":") || hostname != "" && hostname[len(hostname)-1] >= '0' &&
		hostname[len(hostname)-1] <= '9'
}
