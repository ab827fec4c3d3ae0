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
	errLate  = errors.New("no answer within the time limit")
	errStale = errors.New("the idle connection was closed")
	// Without a length only TLS can say that the answer ended where the server wanted it to.
	errNoCloseNotify = errors.New("TLS connection closed without close_notify")
)

// An exchange is one request under way.
type exchange struct {
	client  *Client
	asked   Request
	target  target
	site    site
	secret  bool   // the request carries secrets
	cookie  string // that is sent
	shown   string // the same without secrets
	kept    bool   // the answer's cookies are
	maxBody int64  // bytes of body
	maxRaw  int    // bytes of the answer, chunks and interim answers included
	resp    *page.Response

	manners  *manners
	parent   context.Context
	begin    time.Time
	deadline time.Time

	first bool   // HTTP/2 is not offered any more
	out   []byte // what was sent
	here  bool   // an answer has begun to come; before that there is no room for it
	intake
}

func newExchange(ctx context.Context, c *Client, req Request, t target, resp *page.Response) *exchange {
	x := &exchange{client: c, asked: req, target: t, site: siteOf(t), resp: resp, parent: ctx, begin: time.Now(),
		maxBody: c.cfg.MaxBody,
		out:     resp.Buffers.Request[:0]}
	if req.MaxBody > 0 {
		x.maxBody = min(req.MaxBody, maxLength)
	}
	x.maxRaw = int(c.cfg.MaxHeader + 2*x.maxBody)
	x.cookie, x.shown = c.cookies(&req, t)
	x.secret = req.Trusted && c.secrets || hasSecret(req.Header) || t.through.forwards(t) || x.shown != x.cookie ||
		req.Form != nil
	x.first = req.Form != nil
	x.manners = c.manners.Load()
	x.deadline = x.begin.Add(x.manners.maxTime)
	return x
}

// arrive makes ready for an answer that begins to come.
func (x *exchange) arrive() {
	if x.here {
		return
	}
	x.here = true
	if x.asked.Arrives != nil {
		x.asked.Arrives()
	}
	x.openIntake()
}

func siteOf(t target) site { return site{t.scheme == "https", t.host, t.through} }

// maxRefusals is how often a request that a server has not looked at is sent again at once.
const maxRefusals = 3

// run sends the request and reads the answer.
func (x *exchange) run() error {
	for refusals := 0; ; {
		c, err := x.open()
		if err != nil {
			if next := x.client.proxies.instead(x.target, err); next != nil {
				x.target.through = next
				x.secret = x.secret || next.forwards(x.target)
				x.site = siteOf(x.target)
				continue
			}
			return x.failed(err)
		}
		x.client.proxies.works(x.target.through)
		switch err = x.speak(c); {
		case errors.Is(err, errStale):
			continue
		case errors.Is(err, errFirst):
			x.first = true
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
		c, err := conns.take(x.parent, x.site, x.deadline)
		if err != nil {
			return nil, err
		}
		if c == nil {
			break
		}
		x.arm(c) // an old time limit would answer for it
		if c.session == nil && c.quiet() || c.session != nil && !x.first && c.catchUp() {
			return c, nil
		}
		c.wire.Close() // whoever has left hears no last word
		conns.drop(x.site)
	}
	ctx, cancel := context.WithDeadlineCause(x.parent, x.deadline, errLate)
	defer cancel()
	c, err := x.client.connect(ctx, x.target, !x.first)
	if err != nil {
		conns.drop(x.site)
		if errors.Is(context.Cause(ctx), errLate) {
			err = errLate
		}
	}
	return c, err
}

// met notes what is known of the connection in use.
func (x *exchange) met(w *wire, reused bool) {
	x.resp.Addr, x.resp.TLS = w.addr, w.tls
	if !reused {
		x.resp.DNS, x.resp.Connect, x.resp.Handshake = w.dns, w.connect, w.handshake
	}
}

// arm gives the phase that begins now its time.
func (x *exchange) arm(c *conn) {
	now := time.Now()
	_ = c.SetDeadline(now.Add(min(x.manners.timeout, x.deadline.Sub(now)))) // where it fails, so does what follows
}

// speak sends the request over c and reads the answer. Its error is errStale where the server had closed an idle
// connection before it could see the request, errRefused where it says that it has not looked at it, errFirst where it
// wants to be asked otherwise.
func (x *exchange) speak(c *conn) error {
	x.met(c.wire, c.reused)
	x.out, x.raw = x.client.appendRequest(x.out[:0], x.manners, &x.asked, x.target, x.cookie), x.raw[:0]
	stop := context.AfterFunc(x.parent, c.abort)
	reusable, err := x.converse(c)
	conns := x.client.conns
	switch alive := stop(); {
	case alive && reusable && err == nil:
		conns.put(c)
	case err != nil:
		c.wire.Close() // without TLS's last word, which might have to wait
		conns.drop(x.site)
	default:
		c.Close()
		conns.drop(x.site)
	}
	switch ctxErr := x.parent.Err(); {
	case err == nil:
	case ctxErr != nil:
		x.keep()
		return x.cancelled(ctxErr)
	case isDiskFault(err):
		return x.failed(err)
	case x.frame.end > 0:
		x.truncation(err)
	case errors.Is(err, errFirst):
		return err
	case errors.Is(err, errRefused) && !c.reused:
		return err
	case errors.Is(err, errRefused), c.reused && !x.heard(c) && isBroken(err) && !isTimeout(err):
		return errStale
	default:
		return x.failed(err)
	}
	return x.finish()
}

// heard reports whether an answer had begun.
func (x *exchange) heard(c *conn) bool { return x.total() > 0 || c.session != nil && c.session.heard }

// converse writes the request and reads until the answer ends. It reports whether the connection can be used again.
func (x *exchange) converse(c *conn) (reusable bool, err error) {
	if c.session != nil {
		return x.converseFrames(c)
	}
	surplus, err := x.converseBytes(c)
	return !surplus && !x.frame.head.last && x.frame.head.status != http.StatusSwitchingProtocols, err
}

// converseBytes is converse for HTTP/1. It reports whether more came than the answer.
func (x *exchange) converseBytes(c *conn) (surplus bool, err error) {
	x.arm(c)
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
		if err := x.makeRoom(x.frame.room()); err != nil {
			return surplus, err
		}
		if x.paused {
			x.paused = false
			x.arm(c)
		}
		n, err := c.Read(x.raw[len(x.raw):min(cap(x.raw), x.maxRaw-x.gone)])
		if x.total() == 0 {
			x.resp.FirstByte = time.Since(x.begin)
		}
		x.raw = x.raw[:len(x.raw)+n]
		end, bad := x.frame.advance(x.raw)
		x.keepCookies()
		surplus, x.raw = end < len(x.raw), x.raw[:end]
		switch {
		case bad != nil:
			return surplus, bad
		case errors.Is(err, io.EOF) && x.frame.state == untilClose && c.wire.tls != "" && c.wire.ended.Load():
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
		x.arm(c)
		if err := x.parent.Err(); err != nil {
			return surplus, err
		}
	}
}

// truncation notes why the body ended early.
func (x *exchange) truncation(err error) {
	switch {
	case errors.Is(err, errFull):
		x.resp.Truncated = page.Length
	case isTimeout(err), errors.Is(err, errLate):
		x.resp.Truncated = page.Time
	default:
		x.resp.Truncated = page.Disconnect
		if errors.Is(err, errSyntax) {
			x.resp.Malformed = err.Error()
		}
	}
}

// rest gives the buffers back, which may have grown.
func (x *exchange) rest() {
	b := &x.resp.Buffers
	if b.Request = x.out; x.here {
		b.Raw, b.Chunks, b.Header = x.raw, x.frame.chunks, x.frame.fields
	}
}

// finish fills the response.
func (x *exchange) finish() error {
	resp, f := x.resp, &x.frame
	x.keep()
	if err := x.settle(); err != nil {
		return x.failed(err)
	}
	resp.Status, resp.Proto, resp.Header = f.head.status, f.head.proto, f.fields
	if resp.Status == http.StatusSwitchingProtocols {
		resp.Malformed = "switches protocols unasked"
	}
	if resp.Status == http.StatusProxyAuthRequired && x.target.through.forwards(x.target) {
		err := &Error{Failure: page.Proxy, Op: "tunnel", URL: resp.URL, Err: errNoUser}
		x.client.proxies.fell(x.target, err)
		return err
	}
	return nil
}

// keep gives the response what was sent, and what has come, unless that is so long that it lies on the disk.
func (x *exchange) keep() {
	if x.resp.RequestRaw = x.out; x.raws == nil {
		x.resp.Raw = x.raw
	}
	if x.secret {
		sent := x.out[:max(0, len(x.out)-len(x.asked.Form))] // without a connection out is empty
		x.resp.RequestRaw = redact(nil, sent, x.shown)
	}
}

// failed keeps what came and classes the error of an exchange without a complete head.
func (x *exchange) failed(err error) error {
	x.keep()
	resp := x.resp
	if ctxErr := x.parent.Err(); ctxErr != nil {
		return x.cancelled(ctxErr)
	}
	switch dial, ok := errors.AsType[*Error](err); {
	case isDiskFault(err):
		return &Error{Failure: page.Internal, Op: "get", URL: resp.URL, Err: err}
	case ok:
		return dial.of(resp.URL)
	case errors.Is(err, errLate), isTimeout(err):
		return &Error{Failure: page.Timeout, Op: "get", URL: resp.URL, Err: errLate}
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
