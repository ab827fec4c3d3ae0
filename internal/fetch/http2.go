package fetch

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"kumo/internal/page"
)

// HTTP/2 is net/http's. It begins on a connection that was opened for HTTP/1 and whose server chose otherwise; from then on its site is
// known to speak it.

// errFirst says that a server which spoke HTTP/2 has chosen HTTP/1 for a new connection.
var errFirst = errors.New("the server has gone back to HTTP/1")

// A handover is where the transport finds the connection that was opened for a request, and the way to others.
type handover struct {
	target target
	conn   atomic.Pointer[conn]
}

type handoverKey struct{}

func (c *Client) newTransport() *http.Transport {
	perHost := c.cfg.PerHost
	if perHost == 0 {
		perHost = idlePerHost
	}
	return &http.Transport{
		DialTLSContext:         c.dialSecond,
		ForceAttemptHTTP2:      true, // needed with dialling of our own
		DisableCompression:     true,
		MaxConnsPerHost:        c.cfg.PerHost,
		MaxIdleConnsPerHost:    perHost,
		MaxIdleConns:           c.cfg.MaxIdle,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: c.cfg.MaxHeader,
		HTTP2: &http.HTTP2Config{
			SendPingTimeout:               15 * time.Second, // finds dead connections
			PingTimeout:                   10 * time.Second,
			MaxReceiveBufferPerStream:     1 << 20,
			MaxReceiveBufferPerConnection: 4 << 20,
		},
	}
}

// dialSecond is the transport's way to a connection: the one that is handed over, or a new one.
func (c *Client) dialSecond(ctx context.Context, _, _ string) (net.Conn, error) {
	h := ctx.Value(handoverKey{}).(*handover)
	if conn := h.conn.Swap(nil); conn != nil {
		return conn.Conn, nil
	}
	conn, second, err := c.connect(ctx, h.target)
	if err == nil && !second {
		err = errors.Join(errFirst, conn.Close())
	}
	if err != nil {
		return nil, err
	}
	return conn.Conn, nil
}

// seconds remembers the sites that speak HTTP/2; when there are very many it begins anew, which costs a connection each.
type seconds struct {
	mu    sync.Mutex
	sites map[site]bool
}

const maxSeconds = 1 << 16

func (s *seconds) has(of site) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sites[of]
}

func (s *seconds) set(of site, second bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !second {
		delete(s.sites, of)
		return
	}
	if s.sites == nil || len(s.sites) == maxSeconds {
		s.sites = make(map[site]bool)
	}
	s.sites[of] = true
}

// A stream is an exchange over HTTP/2.
type stream struct {
	*exchange
	request *http.Request
	ctx     context.Context
	timer   *time.Timer  // cancels ctx when a phase takes too long
	first   atomic.Int64 // time.Duration from begin, set by net/http's goroutine
	sent    bool         // there was a connection
}

// runSecond sends the request over HTTP/2, for which c has just been opened unless it is nil, and reads the answer. Its error is errFirst
// where the server does not speak it any more.
func (x *exchange) runSecond(c *conn) error {
	ctx, cancel := context.WithCancelCause(x.parent)
	defer cancel(nil)
	s := &stream{exchange: x, ctx: ctx}
	s.timer = time.AfterFunc(time.Until(x.deadline), func() { cancel(errLate) })
	defer s.timer.Stop()
	h := &handover{target: x.target}
	h.conn.Store(c)
	s.request = x.client.newRequest(httptrace.WithClientTrace(context.WithValue(ctx, handoverKey{}, h), &httptrace.ClientTrace{
		GotConn:              s.gotConn,
		GotFirstResponseByte: func() { s.first.Store(int64(time.Since(x.begin))) },
	}), x.asked, x.target)
	answer, err := x.client.transport.RoundTrip(s.request)
	if unused := h.conn.Swap(nil); unused != nil { // another request's connection did
		unused.Close()
	}
	if err == nil {
		defer answer.Body.Close()
		return s.read(answer)
	}
	if errors.Is(err, errFirst) {
		return errFirst
	}
	s.resp.RequestRaw = s.requestRaw()
	if errors.Is(context.Cause(ctx), errLate) {
		err = errLate
	}
	return s.failed(err)
}

func (s *stream) gotConn(info httptrace.GotConnInfo) {
	if w := wireOf(info.Conn); w != nil {
		s.met(w, info.Reused)
	}
	s.sent = true
	s.arm()
}

// arm gives the phase that begins now its time.
func (s *stream) arm() { s.timer.Reset(min(s.client.cfg.Timeout, time.Until(s.deadline))) }

func (s *stream) read(answer *http.Response) error {
	resp := s.resp
	s.arrive()
	s.raw = appendHead(s.raw, answer)
	headLen := len(s.raw)
	err := s.readBody(answer.Body)
	if ctxErr := s.parent.Err(); err != nil && ctxErr != nil {
		return s.cancelled(ctxErr)
	}
	switch {
	case err == nil:
	case errors.Is(err, errFull):
		resp.Truncated = page.Length
	case errors.Is(context.Cause(s.ctx), errLate):
		resp.Truncated = page.Time
	default:
		resp.Truncated = page.Disconnect
	}
	resp.FirstByte = time.Duration(s.first.Load())
	resp.Raw, resp.HeadLen, resp.Payload = s.raw, headLen, s.raw[headLen:]
	resp.RequestRaw = s.requestRaw()
	resp.Status, resp.Proto, resp.Header = answer.StatusCode, answer.Proto, answer.Header
	return nil
}

// readBody appends the body to raw, at most maxBody bytes: errFull if there are more.
func (s *stream) readBody(body io.Reader) error {
	for n := int64(0); ; {
		s.arm()
		s.raw = slices.Grow(s.raw, readSize)
		got, err := body.Read(s.raw[len(s.raw):cap(s.raw)])
		fits := min(int64(got), s.maxBody-n)
		s.raw, n = s.raw[:len(s.raw)+int(fits)], n+fits
		switch {
		case int64(got) > fits:
			return errFull
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}

// requestRaw returns the request as it would have been over HTTP/1; nothing before there was a connection.
func (s *stream) requestRaw() []byte {
	if !s.sent {
		return s.out[:0]
	}
	b := bytes.NewBuffer(s.out[:0])
	_ = s.request.Write(b) // a buffer takes everything, and the request went out before
	if s.secret {
		return redact(nil, b.Bytes())
	}
	return b.Bytes()
}

// appendHead makes a head out of an HTTP/2 answer's fields, in the form of HTTP/1.1, which readers of WARC files expect. Names are
// sorted: net/http does not keep their order.
func appendHead(dst []byte, answer *http.Response) []byte {
	b := bytes.NewBuffer(dst[:0])
	fmt.Fprintf(b, "HTTP/1.1 %03d %s\r\n", answer.StatusCode, http.StatusText(answer.StatusCode))
	_ = answer.Header.WriteSubset(b, notInHead) // a buffer takes everything
	b.WriteString("\r\n")
	return b.Bytes()
}

var notInHead = map[string]bool{"Transfer-Encoding": true}

// encrypt speaks TLS over a link, and reports whether the server has chosen HTTP/2.
func (c *Client) encrypt(ctx context.Context, l *link, t target) (second bool, err error) {
	begin := time.Now()
	conn, err := c.handshake(ctx, *l, t.hostname, "h2", "http/1.1")
	if err != nil {
		return false, dialError("handshake", err)
	}
	l.wire.handshake = time.Since(begin)
	state := conn.ConnectionState()
	l.wire.tls = tls.VersionName(state.Version)
	l.conn = conn
	return state.NegotiatedProtocol == "h2", nil
}
