package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"kumo/internal/base/page"
)

// readSize is the smallest buffer space for a read, in bytes.
const readSize = 16 << 10

// maxTrust limits the space that is allocated at once because of a Content-Length, in bytes.
const maxTrust = 1 << 20

var (
	errTimeout = errors.New("no response within the time limit")
	errStale   = errors.New("the server closed the idle connection")
	// Without a length, only close_notify proves that the response is complete.
	errNoCloseNotify = errors.New("TLS connection closed without close_notify")
)

// An exchange is one request in progress.
type exchange struct {
	client         *Client
	req            Request
	target         target
	site           site
	secret         bool   // the request carries secrets
	cookie         string // Cookie field to send
	redactedCookie string // cookie with secrets replaced
	cookiesStored  bool   // the response's cookies are in the jar
	maxBody        int64  // bytes of body
	bodyLimits     []TypeLimit
	maxRaw         int // bytes of the response, including chunk headers and interim responses
	resp           *page.Response

	live     *liveSettings
	parent   context.Context
	begin    time.Time
	deadline time.Time

	http1Only bool   // do not offer HTTP/2
	out       []byte // request as sent
	arrived   bool   // the response has begun; buffers are allocated only then
	intake
}

func newExchange(ctx context.Context, c *Client, req Request, t target, resp *page.Response) *exchange {
	x := &exchange{client: c, req: req, target: t, site: siteOf(t), resp: resp, parent: ctx, begin: time.Now(),
		maxBody: c.cfg.MaxBody,
		out:     resp.Buffers.Request[:0]}
	if req.MaxBody > 0 {
		x.maxBody = min(req.MaxBody, maxLength)
	} else {
		x.bodyLimits = c.cfg.MaxBodyOf
	}
	x.maxRaw = int(c.cfg.MaxHeader + 2*largestBody(x.bodyLimits, x.maxBody))
	x.cookie, x.redactedCookie = c.cookies(&req, t)
	x.secret = req.Trusted && c.secrets || hasSecret(req.Header) || t.proxy.forwards(t) || x.redactedCookie != x.cookie ||
		req.Form != nil
	x.http1Only = req.Form != nil
	x.live = c.live.Load()
	x.deadline = x.begin.Add(x.live.maxTime)
	return x
}

// arrive prepares the buffers when the first bytes of a response arrive.
func (x *exchange) arrive() {
	if x.arrived {
		return
	}
	x.arrived = true
	if x.req.OnArrival != nil {
		x.req.OnArrival()
	}
	x.openIntake()
}

func siteOf(t target) site { return site{t.scheme == "https", t.host, t.proxy} }

// maxRefusals is the number of times a request is sent if the server refuses to process it.
const maxRefusals = 3

// run sends the request and reads the response.
func (x *exchange) run() error {
	for refusals := 0; ; {
		c, err := x.open()
		if err != nil {
			if next := x.client.proxies.alternative(x.target, err); next != nil {
				x.target.proxy = next
				x.secret = x.secret || next.forwards(x.target)
				x.site = siteOf(x.target)
				continue
			}
			return x.failed(err)
		}
		x.client.proxies.markWorking(x.target.proxy)
		switch err = x.roundTrip(c); {
		case errors.Is(err, errStale):
			continue
		case errors.Is(err, errHTTP1Required):
			x.http1Only = true
		case !errors.Is(err, errRefused):
			return err
		}
		if refusals++; refusals == maxRefusals {
			return x.failed(err)
		}
	}
}

// open returns a usable idle connection or a new one.
func (x *exchange) open() (*conn, error) {
	conns := x.client.conns
	for {
		c, err := conns.acquire(x.parent, x.site, x.deadline)
		if err != nil {
			return nil, err
		}
		if c == nil {
			break
		}
		x.setDeadline(c) // replaces the expired deadline of the earlier exchange
		if c.session == nil && c.isUntouched() || c.session != nil && !x.http1Only && c.readPending() {
			return c, nil
		}
		c.wire.Close() // without close_notify: the peer may be gone
		conns.discard(x.site)
	}
	ctx, cancel := context.WithDeadlineCause(x.parent, x.deadline, errTimeout)
	defer cancel()
	c, err := x.client.connect(ctx, x.target, !x.http1Only)
	if err != nil {
		conns.discard(x.site)
		if errors.Is(context.Cause(ctx), errTimeout) {
			err = errTimeout
		}
	}
	return c, err
}

// recordConn stores the properties of the connection in the response.
func (x *exchange) recordConn(w *wire, reused bool) {
	x.resp.Addr, x.resp.TLS = w.addr, w.tls
	if !reused {
		x.resp.DNS, x.resp.Connect, x.resp.Handshake = w.dns, w.connect, w.handshake
	}
}

// setDeadline starts the time limit of the next phase.
func (x *exchange) setDeadline(c *conn) {
	now := time.Now()
	// if it fails, the next read or write fails too
	_ = c.SetDeadline(now.Add(min(x.live.timeout, x.deadline.Sub(now))))
}

// roundTrip sends the request over c and reads the response. It returns errStale if the server had closed an idle
// connection before it received the request, errRefused if the server did not process the request, and errHTTP1Required
// if the server requires HTTP/1.1.
func (x *exchange) roundTrip(c *conn) error {
	x.recordConn(c.wire, c.reused)
	x.out, x.raw = x.client.appendRequest(x.out[:0], x.live, &x.req, x.target, x.cookie), x.raw[:0]
	stop := context.AfterFunc(x.parent, c.abort)
	reusable, err := x.transfer(c)
	conns := x.client.conns
	switch alive := stop(); {
	case alive && reusable && err == nil:
		conns.release(c)
	case err != nil:
		c.wire.Close() // without close_notify, which might block
		conns.discard(x.site)
	default:
		c.Close()
		conns.discard(x.site)
	}
	switch ctxErr := x.parent.Err(); {
	case err == nil:
	case ctxErr != nil:
		x.storeRaw()
		return x.cancelled(ctxErr)
	case isDiskFault(err):
		return x.failed(err)
	case x.frame.end > 0:
		x.setTruncated(err)
	case errors.Is(err, errHTTP1Required):
		return err
	case errors.Is(err, errRefused) && !c.reused:
		return err
	case errors.Is(err, errRefused), c.reused && !x.hasBegun(c) && isBroken(err) && !isTimeout(err):
		return errStale
	default:
		return x.failed(err)
	}
	return x.finish()
}

// hasBegun reports whether any part of the response has arrived.
func (x *exchange) hasBegun(c *conn) bool {
	return x.total() > 0 || c.session != nil && c.session.answered
}

// transfer writes the request and reads until the response ends. It reports whether the connection can be reused.
func (x *exchange) transfer(c *conn) (reusable bool, err error) {
	if c.session != nil {
		return x.transferHTTP2(c)
	}
	surplus, err := x.transferHTTP1(c)
	return !surplus && !x.frame.head.closing && x.frame.head.status != http.StatusSwitchingProtocols, err
}

// transferHTTP1 implements transfer for HTTP/1. It reports whether data followed the response.
func (x *exchange) transferHTTP1(c *conn) (surplus bool, err error) {
	x.setDeadline(c)
	if err := x.parent.Err(); err != nil { // the context may have ended before the deadline was set
		return false, err
	}
	// Even if the write fails, the server may have sent a response. No buffer is allocated before it arrives.
	if _, err := c.Write(x.out); err != nil && isTimeout(err) {
		return false, err
	}
	if err := c.socket.wait(); err != nil {
		return false, err
	}
	x.arrive()
	for {
		if err := x.makeRoom(x.frame.nextReadSize()); err != nil {
			return surplus, err
		}
		if x.paused {
			x.paused = false
			x.setDeadline(c)
		}
		n, err := c.Read(x.raw[len(x.raw):min(cap(x.raw), x.maxRaw-x.spilled)])
		if x.total() == 0 {
			x.resp.FirstByte = time.Since(x.begin)
		}
		x.raw = x.raw[:len(x.raw)+n]
		end, bad := x.frame.advance(x.raw)
		x.storeCookies()
		surplus, x.raw = end < len(x.raw), x.raw[:end]
		switch {
		case bad != nil:
			return surplus, bad
		case errors.Is(err, io.EOF) && x.frame.state == untilClose && c.wire.tls != "" && c.wire.peerClosed.Load():
			return surplus, errNoCloseNotify
		case x.frame.state == complete, errors.Is(err, io.EOF) && x.frame.state == untilClose:
			return surplus, nil
		case err != nil:
			return surplus, err
		case x.total() == x.maxRaw:
			return surplus, errFull
		case x.frame.end == 0:
			continue
		}
		x.setDeadline(c)
		if err := x.parent.Err(); err != nil {
			return surplus, err
		}
	}
}

// setTruncated records why the body ended early.
func (x *exchange) setTruncated(err error) {
	switch {
	case errors.Is(err, errFull):
		x.resp.Truncated = page.Length
	case isTimeout(err), errors.Is(err, errTimeout):
		x.resp.Truncated = page.Time
	default:
		x.resp.Truncated = page.Disconnect
		if errors.Is(err, errSyntax) {
			x.resp.Malformed = err.Error()
		}
	}
}

// returnBuffers stores the buffers, which may have grown, in the response for reuse.
func (x *exchange) returnBuffers() {
	b := &x.resp.Buffers
	if b.Request = x.out; x.arrived {
		b.Raw, b.Chunks, b.Header = x.raw, x.frame.chunks, x.frame.fields
	}
}

// finish fills the response.
func (x *exchange) finish() error {
	resp, f := x.resp, &x.frame
	x.storeRaw()
	if err := x.storeAnswer(); err != nil {
		return x.failed(err)
	}
	resp.Status, resp.Proto, resp.Header = f.head.status, f.head.proto, f.fields
	if resp.Status == http.StatusSwitchingProtocols {
		resp.Malformed = "switches protocols without a request to do so"
	}
	if resp.Status == http.StatusProxyAuthRequired && x.target.proxy.forwards(x.target) {
		err := &Error{Failure: page.Proxy, Op: "tunnel", URL: resp.URL, Err: errProxyAuth}
		x.client.proxies.markFailed(x.target, err)
		return err
	}
	return nil
}

// storeRaw stores the bytes sent in the response, and the bytes received unless they are on disk.
func (x *exchange) storeRaw() {
	if x.resp.RequestRaw = x.out; x.raws == nil {
		x.resp.Raw = x.raw
	}
	if x.secret {
		sent := x.out[:max(0, len(x.out)-len(x.req.Form))] // out is empty if there was no connection
		x.resp.RequestRaw = redact(nil, sent, x.redactedCookie)
	}
}

// failed stores the bytes received and classifies the error of an exchange without a complete head.
func (x *exchange) failed(err error) error {
	x.storeRaw()
	resp := x.resp
	if ctxErr := x.parent.Err(); ctxErr != nil {
		return x.cancelled(ctxErr)
	}
	switch dial, ok := errors.AsType[*Error](err); {
	case isDiskFault(err):
		return &Error{Failure: page.Internal, Op: "get", URL: resp.URL, Err: err}
	case ok:
		return dial.withURL(resp.URL)
	case errors.Is(err, errTimeout), isTimeout(err):
		return &Error{Failure: page.Timeout, Op: "get", URL: resp.URL, Err: errTimeout}
	}
	failure := x.failure(err)
	if failure == page.Malformed {
		resp.Malformed = err.Error()
	}
	return &Error{Failure: failure, Op: "get", URL: resp.URL, Err: err}
}

// failure classifies an error that occurred before the response's head was complete.
func (x *exchange) failure(err error) page.Failure {
	if errors.Is(err, errSyntax) || errors.Is(err, errLongHead) || !isHTTP(bytes.TrimLeft(x.raw, "\r\n")) {
		return page.Malformed
	}
	return page.Reset
}

func (x *exchange) cancelled(err error) error { return fmt.Errorf("get %s: %w", x.resp.URL, err) }
