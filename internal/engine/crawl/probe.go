package crawl

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"time"

	"kumo/internal/base/item"
)

// A Prober is a [visit.Fetcher] that can test the connection to a host without sending a request.
type Prober interface {
	Probe(ctx context.Context, host string, timeout time.Duration) (connect time.Duration, err error)
}

var errNoProbe = errors.New("this crawl cannot probe hosts")

// Probe returns how long a TCP connection to a host takes once its name is looked up, and the host's network, "" if it
// is unknown; see [fetch.Client.Probe]. It makes no request, and does not wait for the host's turn, so callers must
// probe a host only rarely.
func (e *Engine) Probe(ctx context.Context, host string, timeout time.Duration) (connect time.Duration, network string,
	err error) {
	p, ok := e.runner.visits.fetcher.(Prober)
	if !ok {
		return 0, "", errNoProbe
	}
	host = item.HostOfSlice(host)
	begin := time.Now()
	hostname, port, err := net.SplitHostPort(host)
	if err != nil {
		hostname, port = strings.Trim(host, "[]"), "80"
	}
	soon, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	addr, err := e.runner.visits.fetcher.Resolve(soon, hostname, port)
	if err == nil {
		network = networkOf(addr)
	} else if soon.Err() != nil {
		return time.Since(begin), "", err
	}
	connect, err = p.Probe(ctx, host, max(timeout-time.Since(begin), time.Millisecond))
	return connect, network, err
}

// networkOf returns the prefix of an address that is usually routed as a unit: /24 or /48.
func networkOf(a netip.Addr) string {
	bits := 48
	if a = a.Unmap(); a.Is4() {
		bits = 24
	}
	p, err := a.Prefix(bits)
	if err != nil {
		return ""
	}
	return p.String()
}
