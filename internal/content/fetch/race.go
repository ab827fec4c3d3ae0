package fetch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"
)

// A dialer connects to one of several addresses of a host.
type dialer struct {
	client *Client
	net    net.Dialer
	port   uint16
}

type dialResult struct {
	conn net.Conn
	err  error
}

// race tries the addresses of the first family, and those of the other family after a failure or headStart. The first
// connection wins. If all fail, it returns the first error.
func (d *dialer) race(ctx context.Context, addrs []netip.Addr) (net.Conn, error) {
	first, second := families(addrs)
	if len(second) == 0 {
		return d.dialInTurn(ctx, first)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan dialResult, 2)
	start := func(addrs []netip.Addr) {
		conn, err := d.dialInTurn(ctx, addrs)
		results <- dialResult{conn, err}
	}
	go start(first)
	timer := time.NewTimer(headStart)
	defer timer.Stop()
	var failed error
	for running := 1; running > 0; {
		select {
		case <-timer.C:
		case r := <-results:
			running--
			if r.err == nil {
				cancel()
				d.closeLate(results, running)
				return r.conn, nil
			}
			failed = cmp.Or(failed, r.err)
		}
		if second != nil {
			go start(second)
			second = nil
			running++
		}
	}
	return nil, failed
}

// closeLate waits for the canceled dials and closes connections that succeeded nevertheless.
func (d *dialer) closeLate(results <-chan dialResult, running int) {
	for range running {
		if r := <-results; r.conn != nil {
			r.conn.Close()
			d.client.sockets.release()
		}
	}
}

// dialInTurn tries the addresses one after the other, each with its share of the remaining time.
func (d *dialer) dialInTurn(ctx context.Context, addrs []netip.Addr) (conn net.Conn, failed error) {
	deadline, _ := ctx.Deadline()
	for i, a := range addrs {
		share := time.Until(deadline) / time.Duration(len(addrs)-i)
		conn, err := d.dialOne(ctx, a, share)
		if err == nil {
			return conn, nil
		}
		failed = cmp.Or(failed, err)
	}
	return nil, failed
}

// dialOne dials an address. It retries while this machine lacks resources. The caller must release the socket of the
// connection.
func (d *dialer) dialOne(ctx context.Context, a netip.Addr, limit time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for wait := minRetryWait; ; wait = min(2*wait, maxRetryWait) {
		if err := d.client.sockets.acquire(ctx); err != nil {
			if !errors.Is(err, context.Canceled) {
				d.client.exhaustion.record(errNoSocket)
			}
			return nil, errNoSocket
		}
		conn, err := d.net.DialContext(ctx, "tcp", netip.AddrPortFrom(a, d.port).String())
		if err == nil {
			return conn, nil
		}
		d.client.sockets.release()
		if !isExhaustedAt(a, err) {
			return nil, err
		}
		if !d.client.waitForResources(ctx, err, wait) {
			return nil, fmt.Errorf("%w: %w", errNoSocket, err)
		}
	}
}

// families splits addrs, which must not be empty, by family. The first address's family is first.
func families(addrs []netip.Addr) (first, second []netip.Addr) {
	for _, a := range addrs {
		if a.Is4() == addrs[0].Is4() {
			first = append(first, a)
		} else {
			second = append(second, a)
		}
	}
	return first, second
}
