package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"kumo/internal/page"
)

// An exchange is one request under way.
type exchange struct {
	client  *Client
	target  target
	secret  bool  // the request carries secrets
	max     int64 // bytes of body
	request *http.Request
	resp    *page.Response
	payload []byte // buffer for a body that is not as in Raw

	parent   context.Context
	ctx      context.Context
	cancel   context.CancelCauseFunc
	begin    time.Time
	deadline time.Time
	timer    *time.Timer // cancels ctx when a phase takes too long

	firstByte atomic.Int64 // time.Duration from begin, set by net/http's goroutine

	rec recording
	tap *tap // the connection in use; nil for HTTP/2
}

func newExchange(ctx context.Context, c *Client, req Request, t target, resp *page.Response) *exchange {
	x := &exchange{client: c, target: t, resp: resp, parent: ctx, begin: time.Now(), max: c.cfg.MaxBody, payload: resp.Payload}
	if req.MaxBody > 0 {
		x.max = req.MaxBody
	}
	x.rec = recording{in: resp.Raw, out: resp.RequestRaw, max: int(c.cfg.MaxHeader + 2*x.max)}
	x.secret = req.Trusted && c.secrets || c.proxy.forwards(t)
	x.deadline = x.begin.Add(c.cfg.MaxTime)
	x.ctx, x.cancel = context.WithCancelCause(ctx)
	x.timer = time.AfterFunc(c.cfg.MaxTime, func() { x.cancel(errLate) })
	x.request = c.newRequest(httptrace.WithClientTrace(x.ctx, &httptrace.ClientTrace{
		GotConn:              x.gotConn,
		GotFirstResponseByte: func() { x.firstByte.Store(int64(time.Since(x.begin))) },
	}), req, t)
	return x
}

// end takes the last times and frees what the exchange holds. The connection stays usable if the answer was read to its end.
func (x *exchange) end() {
	x.resp.FirstByte, x.resp.Total = time.Duration(x.firstByte.Load()), time.Since(x.begin)
	x.timer.Stop()
	x.cancel(nil)
}

// arm gives the phase that begins now its time.
func (x *exchange) arm() { x.timer.Reset(min(x.client.cfg.Timeout, time.Until(x.deadline))) }

// gotConn turns the recording to the connection that net/http has chosen. It is called again for another connection when the
// first turns out to have been closed while idle.
func (x *exchange) gotConn(info httptrace.GotConnInfo) {
	x.detach()
	x.rec.restart(info.Reused)
	if w := wireOf(info.Conn); w != nil {
		x.resp.Addr, x.resp.TLS = w.addr, w.tls
		if !info.Reused {
			x.resp.DNS, x.resp.Connect, x.resp.Handshake = w.dns, w.connect, w.handshake
		}
	}
	if x.tap, _ = info.Conn.(*tap); x.tap != nil {
		x.tap.attach(&x.rec)
	}
	x.arm()
}

func (x *exchange) detach() {
	if x.tap != nil {
		x.tap.detach(&x.rec)
	}
}

// run sends the request and reads the answer.
func (x *exchange) run() error {
	answer, err := x.client.transport.RoundTrip(x.request)
	if err != nil {
		return x.fail(err)
	}
	defer answer.Body.Close()
	chunked := slices.Contains(answer.TransferEncoding, "chunked")
	var keep *[]byte
	switch {
	case x.tap == nil:
		x.rec.in = appendHead(x.rec.in, answer)
		x.resp.HeadLen = len(x.rec.in)
		keep = &x.rec.in
	case chunked:
		x.payload = x.payload[:0]
		keep = &x.payload
	}
	n, err := x.readBody(answer, keep)
	x.detach()
	if ctxErr := x.parent.Err(); err != nil && ctxErr != nil {
		return x.cancelled(ctxErr)
	}
	x.truncation(err)
	return x.finish(answer, int(n), chunked)
}

var scratch = sync.Pool{New: func() any { return new([2 * readBuffer]byte) }}

// readBody reads the body, appending it to keep unless that is nil. It returns how many bytes came, at most x.max; errFull
// if there are more.
func (x *exchange) readBody(answer *http.Response, keep *[]byte) (n int64, err error) {
	if answer.StatusCode == http.StatusSwitchingProtocols {
		x.resp.Malformed = "switches protocols unasked"
		return 0, nil
	}
	buf := scratch.Get().(*[2 * readBuffer]byte)
	defer scratch.Put(buf)
	for {
		x.arm()
		got, err := answer.Body.Read(buf[:min(int64(len(buf)), x.max-n+1)])
		fits := min(int64(got), x.max-n)
		if n += fits; keep != nil {
			*keep = append(*keep, buf[:fits]...)
		}
		switch {
		case int64(got) > fits:
			return n, errFull
		case err == io.EOF:
			return n, nil
		case err != nil:
			return n, err
		}
	}
}

// truncation notes why the body ended early, if it did.
func (x *exchange) truncation(err error) {
	switch {
	case err == nil:
	case errors.Is(err, errFull):
		x.resp.Truncated = page.Length
	case errors.Is(context.Cause(x.ctx), errLate):
		x.resp.Truncated = page.Time
	default:
		x.resp.Truncated = page.Disconnect
		if x.tap != nil && !isBroken(err) {
			x.resp.Malformed = err.Error()
		}
	}
}

// finish fills the response from the recording; n bytes of body came.
func (x *exchange) finish(answer *http.Response, n int, chunked bool) error {
	resp, raw := x.resp, x.rec.in
	if x.tap != nil {
		f := &x.rec.frame
		raw = raw[:copy(raw, raw[f.start:])]
		resp.HeadLen = f.end - f.start
		if !chunked {
			raw = raw[:min(len(raw), resp.HeadLen+n)]
		}
	}
	resp.Raw, resp.RequestRaw = raw, x.requestRaw()
	resp.Status, resp.Proto, resp.Header = answer.StatusCode, answer.Proto, answer.Header
	resp.Payload = resp.Raw[resp.HeadLen:]
	if chunked && x.tap != nil {
		resp.Payload = x.payload
	}
	if resp.Status == http.StatusProxyAuthRequired && x.client.proxy.forwards(x.target) {
		return &Error{Failure: page.Proxy, Op: "proxy", URL: resp.URL, Err: errors.New("it asks for a user and password")}
	}
	return nil
}

// requestRaw returns the request as it was sent, for HTTP/2 as it would have been with HTTP/1.
func (x *exchange) requestRaw() []byte {
	raw := x.rec.out
	if x.tap == nil && x.resp.Addr.IsValid() {
		b := bytes.NewBuffer(raw[:0])
		_ = x.request.Write(b) // a buffer takes everything, and the request went out before
		raw = b.Bytes()
	}
	if x.secret {
		return redact(nil, raw)
	}
	return raw
}

// fail keeps what came and classes the error of an exchange without a complete head.
func (x *exchange) fail(err error) error {
	x.detach()
	resp := x.resp
	resp.Raw, resp.RequestRaw = x.rec.in, x.requestRaw()
	if ctxErr := x.parent.Err(); ctxErr != nil {
		return x.cancelled(ctxErr)
	}
	var dial *Error
	switch {
	case errors.As(err, &dial):
		return &Error{Failure: dial.Failure, Op: dial.Op, URL: resp.URL, Err: dial.Err}
	case errors.Is(context.Cause(x.ctx), errLate):
		return &Error{Failure: page.Timeout, Op: "get", URL: resp.URL, Err: errLate}
	}
	failure := answerFailure(err, &x.rec)
	if failure == page.Malformed {
		resp.Malformed = err.Error()
	}
	return &Error{Failure: failure, Op: "get", URL: resp.URL, Err: err}
}

func (x *exchange) cancelled(err error) error { return fmt.Errorf("get %s: %w", x.resp.URL, err) }
