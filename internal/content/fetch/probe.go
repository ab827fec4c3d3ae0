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
	doors := c.doors(host)
	for _, d := range doors {
		go func() { results <- c.knock(patient, d, timeout) }()
	}
	for range doors {
		if err = <-results; err == nil {
			return time.Since(begin), nil
		}
	}
	if ctx.Err() != nil {
		return 0, fmt.Errorf("probe %s: %w", host, ctx.Err())
	}
	failed := dialError("dial", err)
	return 0, &Error{Failure: failed.Failure, Op: failed.Op, URL: host, Err: failed.Err}
}

// A door is where a host may be connected to.
type door struct {
	hostname, port string
	free           bool // a private address will do
}

func (c *Client) doors(host string) []door {
	hostname := host
	if name, _, err := net.SplitHostPort(host); err == nil {
		hostname = name
	}
	if through := c.proxies.ofHost(hostname, host); through != nil {
		return []door{{through.hostname, through.port, true}}
	}
	allowed := c.allowed.Has(host)
	free := allowed || c.cfg.AllowPrivate
	if name, port, err := net.SplitHostPort(host); err == nil {
		return []door{{name, port, free}}
	}
	name := strings.Trim(host, "[]")
	all := make([]door, len(c.ports))
	for i, port := range c.ports {
		all[i] = door{name, port, free}
	}
	return all
}

// knock makes a connection and closes it.
func (c *Client) knock(ctx context.Context, d door, limit time.Duration) error {
	conn, _, err := c.dialHost(ctx, d.hostname, d.port, d.free, limit)
	if err != nil {
		return err
	}
	_ = conn.Close() // it was there
	c.sockets.release()
	return nil
}
