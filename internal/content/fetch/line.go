package fetch

import (
	"context"
	"errors"
	"strings"
	"time"

	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
)

// These checks distinguish a host that is down from an outage of the local network: they test hosts that worked before.

// minOpenTime is how long a new connection must stay open to count as working. A proxy or router in front of a dead
// server accepts connections and closes them at once; a server waits for a request.
const minOpenTime = 250 * time.Millisecond

// CheckHost tests whether a host that worked before can be reached now. It connects, with TLS for https, and checks
// that the server keeps the connection open. It sends no request. Behind a proxy it connects through the proxy. The
// error is an *Error, or wraps ctx.Err().
func (c *Client) CheckHost(ctx context.Context, url string) error {
	t, err := c.parseTarget(url)
	if err != nil {
		return &Error{Failure: page.Internal, Op: "check", URL: url, Err: err}
	}
	patient, cancel := context.WithTimeout(ctx, 2*c.cfg.ConnectTimeout+minOpenTime)
	defer cancel()
	conn, err := c.connect(patient, t, true)
	if err == nil {
		err = checkStaysOpen(conn)
		conn.Close()
	}
	return checkError(ctx, url, err)
}

// checkStaysOpen returns an error if the server closes a connection on which nothing was sent.
func checkStaysOpen(conn *conn) error {
	conn.SetDeadline(time.Now().Add(minOpenTime))
	var b [1]byte
	if _, err := conn.Read(b[:]); err != nil && !isTimeout(err) {
		return &Error{Failure: page.Reset, Op: "get", Err: err}
	}
	return nil
}

// CheckName tests whether the name of a host that worked before can be resolved now. It ignores the cache.
func (c *Client) CheckName(ctx context.Context, hostname string) error {
	if c.cfg.Transport != nil {
		return nil
	}
	_, err := c.resolver.lookUpUncached(ctx, strings.ToLower(hostname))
	if err != nil {
		err = dialError("resolve", err)
	}
	return checkError(ctx, hostname, err)
}

func checkError(ctx context.Context, url string, err error) error {
	switch failed, ok := errors.AsType[*Error](err); {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return errors.Join(ctx.Err(), err)
	case ok:
		return failed.withURL(url)
	}
	return &Error{Failure: page.Connect, Op: "check", URL: url, Err: err}
}

// Route reports how a URL's host is reached: whether this machine looks its name up, and whether it goes through a
// proxy. A host with an address in Config.Resolve needs no lookup.
func (c *Client) Route(url string) (looksUp, proxied bool) {
	t, err := c.parseTarget(url)
	if err != nil {
		return false, false
	}
	if t.proxy != nil {
		return false, true
	}
	if c.cfg.Transport != nil {
		return false, false
	}
	return c.fixed.lookup(t.hostname, t.port) == nil && !weburl.IsAddress(t.hostname), false
}

// IsNameCached reports whether the addresses of a name are in the cache.
func (c *Client) IsNameCached(hostname string) bool {
	return c.resolver.known(strings.ToLower(hostname))
}

// LastFound returns when an uncached name lookup last succeeded; zero if none did.
func (c *Client) LastFound() time.Time {
	if at := c.resolver.lastFound.Load(); at != nil {
		return *at
	}
	return time.Time{}
}

// ForgetFailures removes the traces of a network outage: cached lookup failures, and idle connections that may be dead.
func (c *Client) ForgetFailures() {
	c.resolver.forgetFailures()
	c.closeIdle()
}
