package fetch

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	xproxy "golang.org/x/net/proxy"

	"kumo/internal/base/page"
)

// A proxy forwards requests to targets. The proxy itself chooses a target's address, so the client dials only the
// proxy's address, which may be private. checkTarget rejects targets that are recognizably private.
type proxy struct {
	scheme, hostname, port string
	remoteDNS              bool   // socks5h: only the proxy looks names up
	auth                   string // for Proxy-Authorization, "": none
	socks                  *xproxy.Auth
	name                   string // proxy URL without secrets
	health                 health
}

// proxyOp is the Op of errors that the proxy itself caused.
const proxyOp = "proxy"

// errProxyAuth means that the proxy requires other credentials.
var errProxyAuth = errors.New("the proxy requires a user and password")

var proxyPorts = map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}

// newProxy returns nil for a nil URL.
func newProxy(u *url.URL) (*proxy, error) {
	if u == nil {
		return nil, nil
	}
	port, ok := proxyPorts[u.Scheme]
	if !ok || u.Hostname() == "" {
		return nil, fmt.Errorf("proxy %s: want http://, https://, socks5:// or socks5h:// and a host", u.Redacted())
	}
	p := &proxy{scheme: strings.TrimSuffix(u.Scheme, "h"), remoteDNS: u.Scheme == "socks5h", hostname: u.Hostname(),
		port: cmp.Or(u.Port(), port)}
	p.name = u.Scheme + "://" + net.JoinHostPort(p.hostname, p.port)
	if u.User != nil {
		password, _ := u.User.Password()
		p.auth = basicAuth(u.User.Username(), password)
		p.socks = &xproxy.Auth{User: u.User.Username(), Password: password}
	}
	return p, nil
}

// forwards reports whether the proxy receives requests to t itself, in absolute form.
func (p *proxy) forwards(t target) bool {
	return p != nil && p.scheme != "socks5" && t.scheme == "http"
}

// reach connects to t through the proxy, or to the proxy if that forwards requests.
func (p *proxy) reach(ctx context.Context, c *Client, t target) (link, error) {
	if err := p.checkTarget(ctx, c, t); err != nil {
		return link{}, dialError("proxy", err)
	}
	w, err := c.dial(ctx, p.hostname, p.port, true)
	if err != nil && isExhausted(err) {
		return link{}, err
	}
	if err != nil {
		return link{}, p.unavailable(err)
	}
	ctx, cancel := context.WithDeadline(ctx, w.connectDeadline)
	defer cancel()
	l := link{w, w}
	if p.scheme == "https" {
		if l.conn, err = c.handshake(ctx, l, p.hostname, "http/1.1"); err != nil {
			return link{}, p.unavailable(err)
		}
	}
	switch {
	case p.scheme == "socks5":
		err = p.connectSOCKS(ctx, w, t)
	case t.scheme == "https":
		err = p.tunnel(ctx, l.conn, t.address(), c.live.Load().agent, c.cfg.MaxHeader)
	}
	if err != nil {
		w.Close()
		return link{}, &Error{Failure: page.Proxy, Op: "tunnel", Err: err} // the target may be the cause
	}
	return l, nil
}

// unavailable returns the error for a proxy that cannot be used, whatever the target.
func (p *proxy) unavailable(err error) error {
	return &Error{Failure: page.Proxy, Op: proxyOp, Err: &ProxyError{p.name, err}}
}

// A ProxyError means that the proxy itself cannot be used.
type ProxyError struct {
	Proxy string // its URL, without secrets
	Err   error
}

func (e *ProxyError) Error() string { return fmt.Sprintf("through %s: %v", e.Proxy, e.Err) }

func (e *ProxyError) Unwrap() error { return e.Err }

// tunnel requests a connection to address from the proxy.
func (p *proxy) tunnel(ctx context.Context, conn net.Conn, address, agent string, maxHeader int64) error {
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	header := http.Header{"User-Agent": {agent}}
	if p.auth != "" {
		header.Set("Proxy-Authorization", p.auth)
	}
	connect := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address, Header: header}
	if err := connect.Write(conn); err != nil {
		return err
	}
	// The buffer may read beyond the response and drop that data. With TLS there is none, since the client sends first.
	in := bufio.NewReader(io.LimitReader(conn, maxHeader))
	answer, err := http.ReadResponse(in, connect) //nolint:bodyclose // an answer to CONNECT has none
	if err != nil {
		return err
	}
	if answer.StatusCode == http.StatusProxyAuthRequired {
		return fmt.Errorf("connect %s: %w", address, errProxyAuth)
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("connect %s: %s", address, answer.Status)
	}
	return nil
}

// connectSOCKS connects w to t by SOCKS5, without resolving the name.
func (p *proxy) connectSOCKS(ctx context.Context, w *wire, t target) error {
	d, err := xproxy.SOCKS5("tcp", net.JoinHostPort(p.hostname, p.port), p.socks, dialed{w})
	if err != nil {
		return err
	}
	_, err = d.(xproxy.ContextDialer).DialContext(ctx, "tcp", t.address())
	return err
}

// dialed is a dialer that returns an existing connection.
type dialed struct{ conn net.Conn }

func (d dialed) Dial(_, _ string) (net.Conn, error) { return d.conn, nil }

func (d dialed) DialContext(context.Context, string, string) (net.Conn, error) { return d.conn, nil }
