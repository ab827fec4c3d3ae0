package fetch

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"
)

// Probe tests whether a TCP connection to a host can be made within timeout, including the name lookup, and returns how
// long connecting took. host is a host key. Without a port, Probe tries 80 and 443 at the same time. The guard against
// private addresses applies. The error is an *Error, or wraps ctx.Err().
//
// Probe sends no data. The host sees a connection that is closed at once: at most two without a port and with addresses
// of one family. Behind a proxy, Probe connects to the proxy, since only the proxy can reach the host.
func (c *Client) Probe(ctx context.Context, host string, timeout time.Duration) (connect time.Duration, err error) {
	if c.cfg.Transport != nil {
		return 0, nil
	}
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

// An endpoint is an address to connect to.
type endpoint struct {
	hostname, port string
	allowPrivate   bool // private addresses are allowed
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

// tryConnect opens a connection and closes it.
func (c *Client) tryConnect(ctx context.Context, d endpoint, limit time.Duration) error {
	conn, _, err := c.dialHost(ctx, d.hostname, d.port, d.allowPrivate, limit)
	if err != nil {
		return err
	}
	_ = conn.Close() // the connection was established
	c.sockets.release()
	return nil
}
