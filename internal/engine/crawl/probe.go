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

// A Prober is a [visit.Fetcher] that can find out whether a host can be connected to, without asking it for anything.
type Prober interface {
	Probe(ctx context.Context, host string, timeout time.Duration) (connect time.Duration, err error)
}

var errNoProbe = errors.New("this crawl has no way to probe hosts")

// Probe returns how long a TCP connection to a host takes once the name is looked up, and the host's network, "" if it
// is unknown; see [fetch.Client.Probe]. It makes no request, and does not wait for the host's turn: the caller must not
// probe a host often.
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

// networkOf is the network of an address, as far as those who route between networks tell them apart, mostly.
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
