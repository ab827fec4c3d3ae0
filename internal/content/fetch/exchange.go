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

// readSize is the least room that a read is given.
const readSize = 16 << 10

// maxTrust is how much room is made at once because an answer says that it is so long.
const maxTrust = 1 << 20

var (
	errTimeout = errors.New("no answer within the time limit")
	errStale   = errors.New("the idle connection was closed")
	// Without a length only TLS can say that the answer ended where the server wanted it to.
	errNoCloseNotify = errors.New("TLS connection closed without close_notify")
)

// An exchange is one request under way.
type exchange struct {
	client         *Client
	req            Request
	target         target
	site           site
	secret         bool   // the request carries secrets
	cookie         string // that is sent
	redactedCookie string // the same without secrets
	cookiesStored  bool   // the answer's cookies are
	maxBody        int64  // bytes of body
	maxRaw         int    // bytes of the answer, chunks and interim answers included
	resp           *page.Response

	live     *liveSettings
	parent   context.Context
	begin    time.Time
	deadline time.Time

	http1Only bool   // HTTP/2 is not offered any more
	out       []byte // what was sent
	arrived   bool   // an answer has begun to come; before that there is no room for it
	intake
}

func newExchange(ctx context.Context, c *Client, req Request, t target, resp *page.Response) *exchange {
	x := &exchange{client: c, req: req, target: t, site: siteOf(t), resp: resp, parent: ctx, begin: time.Now(),
		maxBody: c.cfg.MaxBody,
		out:     resp.Buffers.Request[:0]}
	if req.MaxBody > 0 {
		x.maxBody = min(req.MaxBody, maxLength)
	}
	x.maxRaw = int(c.cfg.MaxHeader + 2*x.maxBody)
	x.cookie, x.redactedCookie = c.cookies(&req, t)
	x.secret = req.Trusted && c.secrets || hasSecret(req.Header) || t.proxy.forwards(t) || x.redactedCookie != x.cookie ||
		req.Form != nil
	x.http1Only = req.Form != nil
	x.live = c.live.Load()
	x.deadline = x.begin.Add(x.live.maxTime)
	return x
}

// arrive makes ready for an answer that begins to come.
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

// maxRefusals is how often a request that a server has not looked at is sent again at once.
const maxRefusals = 3

// run sends the request and reads the answer.
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

// open returns an idle connection that can be used, or a new one.
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
		x.setDeadline(c) // an old time limit would answer for it
		if c.session == nil && c.isUntouched() || c.session != nil && !x.http1Only && c.readPending() {
			return c, nil
		}
		c.wire.Close() // whoever has left hears no last word
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

// recordConn notes what is known of the connection in use.
func (x *exchange) recordConn(w *wire, reused bool) {
	x.resp.Addr, x.resp.TLS = w.addr, w.tls
	if !reused {
		x.resp.DNS, x.resp.Connect, x.resp.Handshake = w.dns, w.connect, w.handshake
	}
}

// arm gives the phase that begins now its time.
func (x *exchange) setDeadline(c *conn) {
	now := time.Now()
	_ = c.SetDeadline(now.Add(min(x.live.timeout, x.deadline.Sub(now)))) // where it fails, so does what follows
}

// roundTrip sends the request over c and reads the answer. Its error is errStale where the server had closed an idle
// connection before it could see the request, errRefused where it says that it has not looked at it, errHTTP1Required where it
// wants to be asked otherwise.
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
		c.wire.Close() // without TLS's last word, which might have to wait
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

// heard reports whether an answer had begun.
func (x *exchange) hasBegun(c *conn) bool {
	return x.total() > 0 || c.session != nil && c.session.answered
}

// transfer writes the request and reads until the answer ends. It reports whether the connection can be used again.
func (x *exchange) transfer(c *conn) (reusable bool, err error) {
	if c.session != nil {
		return x.transferHTTP2(c)
	}
	surplus, err := x.transferHTTP1(c)
	return !surplus && !x.frame.head.closing && x.frame.head.status != http.StatusSwitchingProtocols, err
}

// transferHTTP1 is converse for HTTP/1. It reports whether more came than the answer.
func (x *exchange) transferHTTP1(c *conn) (surplus bool, err error) {
	x.setDeadline(c)
	if err := x.parent.Err(); err != nil { // it may have ended before the time limit was set anew
		return false, err
	}
	// Whatever becomes of the request, the server may have said something. No room is taken before it does.
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

// setTruncated notes why the body ended early.
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

// rest gives the buffers back, which may have grown.
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
		resp.Malformed = "switches protocols unasked"
	}
	if resp.Status == http.StatusProxyAuthRequired && x.target.proxy.forwards(x.target) {
		err := &Error{Failure: page.Proxy, Op: "tunnel", URL: resp.URL, Err: errProxyAuth}
		x.client.proxies.markFailed(x.target, err)
		return err
	}
	return nil
}

// storeRaw gives the response what was sent, and what has come, unless that is so long that it lies on the disk.
func (x *exchange) storeRaw() {
	if x.resp.RequestRaw = x.out; x.raws == nil {
		x.resp.Raw = x.raw
	}
	if x.secret {
		sent := x.out[:max(0, len(x.out)-len(x.req.Form))] // without a connection out is empty
		x.resp.RequestRaw = redact(nil, sent, x.redactedCookie)
	}
}

// markFailed keeps what came and classes the error of an exchange without a complete head.
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

// failure classes what went wrong on a connection before the answer's head was complete.
func (x *exchange) failure(err error) page.Failure {
	if errors.Is(err, errSyntax) || errors.Is(err, errLongHead) || !isHTTP(bytes.TrimLeft(x.raw, "\r\n")) {
		return page.Malformed
	}
	return page.Reset
}

func (x *exchange) cancelled(err error) error { return fmt.Errorf("get %s: %w", x.resp.URL, err) }
