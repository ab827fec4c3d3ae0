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

// headStart is what the first address family gets before the other is tried beside it (RFC 8305, with one race in place
// of one per address).
const headStart = 300 * time.Millisecond

// dialContext ends with the client too.
func (c *Client) dialContext(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(c.ctx, cancel)
	return ctx, func() { stop(); cancel() }
}

// handshake closes the connection if it fails.
func (c *Client) handshake(ctx context.Context, l link, hostname string, protocols ...string) (*tls.Conn, error) {
	ctx, cancel := context.WithDeadline(ctx, l.wire.connectDeadline)
	defer cancel()
	cfg := c.tls.Clone()
	cfg.ServerName, cfg.NextProtos = strings.TrimSuffix(hostname, "."), protocols
	conn := tls.Client(l.conn, cfg)
	if err := conn.HandshakeContext(ctx); err != nil {
		l.conn.Close()
		if !c.cfg.LegacyTLS && mayBeLegacy(err) {
			err = fmt.Errorf("%w (the server may know only old TLS, which --tls-legacy accepts)", err)
		}
		return nil, err
	}
	return conn, nil
}

// mayBeLegacy reports whether a handshake may have failed for want of a version or a suite that both sides know. The
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

// dial looks a name up and connects to one of its addresses. If free, private ones will do.
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

// dialHost is dial without what follows a connection: limit is for the connection alone, and found is when the name was
// known. With the connection the caller has a socket, to be released when that is closed.
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

// addresses returns where a host is to be found, in the order to try. fixed tells that the Config says so.
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

// mayBeAddress spares names the error of not being one.
func mayBeAddress(hostname string) bool {
	return strings.Contains(hostname, ":") || hostname != "" && hostname[len(hostname)-1] >= '0' &&
		hostname[len(hostname)-1] <= '9'
}
