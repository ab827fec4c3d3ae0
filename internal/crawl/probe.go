package crawl

import (
	"context"
	"errors"
	"time"
)

// A Prober is a [Fetcher] that can find out whether a host can be connected to, without asking it for anything.
type Prober interface {
	Probe(ctx context.Context, host string, timeout time.Duration) (connect time.Duration, err error)
}

var errNoProbe = errors.New("this crawl has no way to probe hosts")

// Probe finds out whether a TCP connection to a host can be made in a time, and how long that takes; see [fetch.Client.Probe]. The frontier is
// not asked whether it is the host's turn, as no request is made: what it costs the host is a connection that is closed at once, or two. Who
// probes sees to it that no host is probed often.
func (e *Engine) Probe(ctx context.Context, host string, timeout time.Duration) (connect time.Duration, err error) {
	p, ok := e.fetcher.(Prober)
	if !ok {
		return 0, errNoProbe
	}
	return p.Probe(ctx, host, timeout)
}
