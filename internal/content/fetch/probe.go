package fetch

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"
)

// Probe finds out whether a TCP connection to a host can be made in a time, the lookup of its name included, and how
// long that takes. host is a host key; where it names no port, 80 and 443 are tried at the same time. The guard of
// private addresses holds as for any request. The error is an *Error, or wraps ctx.Err().
//
// Nothing is sent: it costs the host a connection that is made and closed at once, two at most where it names no port
// and has addresses of one family, and an entry in its log where it keeps such a one. Behind a proxy, which alone
// knows, it is the proxy that is connected to.
func (c *Client) Probe(ctx context.Context, host string, timeout time.Duration) (connect time.Duration, err error) {
	patient, cancel := c.dialContext(ctx)
	defer cancel()
	patient, end := context.WithTimeout(patient, timeout)
	defer end()
	begin := time.Now()
	results := make(chan error, 2)
	doors := c.endpoints(host)
	for _, d := range doors {
		go func() { results <- c.tryConnect(patient, d, timeout) }()
	}
	for range doors {
		if err = <-results; err == nil {
			return time.Since(begin), nil
		}
	}
	if ctx.Err() != nil {
		return 0, fmt.Errorf("probe %s: %w", host, ctx.Err())
	}
	return 0, dialError("dial", err).withURL(host)
}

// A door is where a host may be connected to.
type endpoint struct {
	hostname, port string
	allowPrivate   bool // a private address will do
}

func (c *Client) endpoints(host string) []endpoint {
	hostname, port, err := net.SplitHostPort(host)
	if err != nil {
		hostname = host
	}
	if through := c.proxies.forHost(hostname, host); through != nil {
		return []endpoint{{through.hostname, through.port, true}}
	}
	free := c.allowed.Has(host) || c.cfg.AllowPrivate
	if err == nil {
		return []endpoint{{hostname, port, free}}
	}
	name := strings.Trim(host, "[]")
	return []endpoint{{name, c.probePorts[0], free}, {name, c.probePorts[1], free}}
}

// tryConnect makes a connection and closes it.
func (c *Client) tryConnect(ctx context.Context, d endpoint, limit time.Duration) error {
	conn, _, err := c.dialHost(ctx, d.hostname, d.port, d.allowPrivate, limit)
	if err != nil {
		return err
	}
	_ = conn.Close() // it was there
	c.sockets.release()
	return nil
}
