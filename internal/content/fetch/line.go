package fetch

import (
	"context"
	"errors"
	"strings"
	"time"

	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
)

// What tells a host that is down from a line that is: attempts at hosts that have worked.

// minOpenTime is how long a new connection has to stay open to count. A proxy or router before a server that is gone
// accepts, and closes at once; a server waits for its request.
const minOpenTime = 250 * time.Millisecond

// CheckHost finds out whether a host that has worked can be reached now: connected to, with TLS where the URL says https,
// and not hung up on at once. Nothing is asked for. Behind a proxy it connects by way of that. The error is an *Error,
// or wraps ctx.Err().
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

// checkStaysOpen reports an error if the server hangs up on a connection over which nothing was asked.
func checkStaysOpen(conn *conn) error {
	conn.SetDeadline(time.Now().Add(minOpenTime))
	var b [1]byte
	if _, err := conn.Read(b[:]); err != nil && !isTimeout(err) {
		return &Error{Failure: page.Reset, Op: "get", Err: err}
	}
	return nil
}

// CheckName finds out whether the name of a host that has worked is found now, whatever was found lately.
func (c *Client) CheckName(ctx context.Context, hostname string) error {
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

// Route reports what reaching a URL's host depends on: whether this machine looks its name up, and whether it is reached
// through a proxy. A host at an address that Config.Resolve fixes needs no look-up.
func (c *Client) Route(url string) (looksUp, proxied bool) {
	t, err := c.parseTarget(url)
	if err != nil {
		return false, false
	}
	if t.proxy != nil {
		return false, true
	}
	return c.fixed.lookup(t.hostname, t.port) == nil && !weburl.IsAddress(t.hostname), false
}

// IsNameCached reports whether the addresses of a name are known, so that none need be looked up.
func (c *Client) IsNameCached(hostname string) bool {
	return c.resolver.known(strings.ToLower(hostname))
}

// LastFound is when a name was found last that had to be asked for; the zero time if none was.
func (c *Client) LastFound() time.Time {
	if at := c.resolver.lastFound.Load(); at != nil {
		return *at
	}
	return time.Time{}
}

// ForgetFailures forgets what an outage of the line has left: that names are not found, and connections that nobody may be
// behind any more.
func (c *Client) ForgetFailures() {
	c.resolver.forgetFailures()
	c.closeIdle()
}
