package synthweb

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

// A conn is a client's connection. It is an HTTP/1.1 server for GET and HEAD requests without bodies. A general server
// takes several times as long, and cannot hang or send wrong lengths.
type conn struct {
	s      *Server
	net    net.Conn
	buf    []byte    // bytes read and not yet used
	since  time.Time // when the first byte of buf arrived
	host   int       // host that the connection counts for; -1 if not known yet
	served int       // number of answers sent
	agent  []byte
	agents *atomic.Int64 // requests of the agent in the tally's round
	round  int64
}

func (c *conn) serve() {
	defer c.net.Close()
	defer func() { c.countFor(-1) }()
	for {
		end, err := c.readHead()
		if err != nil {
			return
		}
		var r request
		if r.parse(c.buf[:end]) != nil {
			_, _ = io.WriteString(c.net, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
			return
		}
		if !c.answer(&r) {
			return
		}
		c.buf = c.buf[:copy(c.buf, c.buf[end:])]
	}
}

// readHead reads until the buffer contains a complete head and returns its length.
func (c *conn) readHead() (int, error) {
	for {
		if end := headEnd(c.buf); end > 0 {
			return end, nil
		}
		if len(c.buf) >= maxRequestHead {
			return 0, errBadRequest
		}
		if err := c.read(); err != nil {
			return 0, err
		}
	}
}

func (c *conn) read() error {
	if cap(c.buf)-len(c.buf) < 1024 {
		c.buf = append(make([]byte, 0, max(4096, 2*cap(c.buf))), c.buf...)
	}
	n, err := c.net.Read(c.buf[len(c.buf):cap(c.buf)])
	if len(c.buf) == 0 {
		c.since = time.Now()
	}
	c.buf = c.buf[:len(c.buf)+n]
	if n > 0 {
		return nil
	}
	return err
}

// wait waits for d. It returns false as soon as the client has closed the connection.
func (c *conn) wait(d time.Duration) bool {
	end := time.Now().Add(d)
	c.net.SetReadDeadline(end)
	defer c.net.SetReadDeadline(time.Time{})
	for len(c.buf) < maxRequestHead {
		if err := c.read(); err != nil {
			return os.IsTimeout(err)
		}
	}
	return false
}

// countFor counts the connection for a host.
func (c *conn) countFor(host int) {
	if c.host == host {
		return
	}
	now := time.Now()
	if c.host >= 0 {
		c.s.tally.hosts[c.host].connect(-1, now)
	}
	if host >= 0 {
		c.s.tally.hosts[host].connect(1, now)
	}
	c.host = host
}

// answer answers one request and reports whether the connection stays open.
func (c *conn) answer(r *request) bool {
	if bytes.HasPrefix(r.target, []byte("/.synth/")) {
		return c.control(r)
	}
	host, ok := c.s.web.hostOf(string(r.host))
	if !ok {
		_, err := io.WriteString(c.net, "HTTP/1.1 421 Misdirected Request\r\nContent-Length: 0\r\n\r\n")
		return err == nil && !r.last
	}
	c.countFor(int(host))
	c.countAgent(r.agent)
	v := visit{ref: c.s.web.locate(host, r.target), target: r.target, at: c.since}
	c.s.tally.begin(&v, c.since)
	h := &c.s.web.hosts[host]
	latency := h.latency + c.s.extraDelay()
	if h.traits.has(Hanging) {
		latency = never
	}
	if latency > 0 && !c.wait(latency) {
		now := time.Now()
		c.s.tally.end(&v, 0, now)
		c.log(&v, 0, false, now)
		return false
	}
	return c.respond(r, &v, h)
}

const never = 100 * 365 * 24 * time.Hour

func (c *conn) countAgent(name []byte) {
	if round := c.s.tally.round.Load(); c.agents == nil || round != c.round || string(name) != string(c.agent) {
		c.round, c.agent, c.agents = round, append(c.agent[:0], name...), c.s.tally.agent(name)
	}
	c.agents.Add(1)
}

// respond writes the response to a request.
func (c *conn) respond(r *request, v *visit, h *host) bool {
	b := c.s.benches.Get().(*responder)
	defer c.s.benches.Put(b)
	b.page.reset()
	var a answer
	retry := time.Duration(-1)
	switch {
	case v.verdict.throttled:
		a, retry = answer{status: http.StatusTooManyRequests}, c.s.web.cfg.RetryAfter
	case v.ref.Kind == Flaky && c.s.tally.firstTry(v.ref):
		a, retry = answer{status: http.StatusServiceUnavailable}, 0
	default:
		if a = b.page.answer(v.ref, string(v.target)); a.status == http.StatusOK && a.matches(r) {
			a.status, a.contentType = http.StatusNotModified, ""
			b.page.reset()
		}
	}
	f := b.framing(r, v, h)
	if c.served++; c.served == c.s.opts.PerConnection {
		f.last = true
	}
	b.out.start(c.net, f)
	b.head(&a, f, retry)
	if !r.head {
		b.body(f)
	}
	// Everything is recorded before the last write, so that a client that has read an answer finds it in the score.
	whole := b.out.err == nil && !r.head && f.cutAfter == 0
	c.s.tally.served(v, a.status, whole)
	c.s.tally.counts[bytesSent].Add(b.out.sent + int64(len(b.out.buf)))
	now := time.Now()
	c.s.tally.end(v, a.status, now)
	b.out.finish()
	if whole && b.out.err != nil {
		c.s.tally.aborted(v)
	}
	c.log(v, a.status, whole && b.out.err == nil, now)
	return b.out.err == nil && !f.last
}

// control answers requests about the server itself, which are not counted.
func (c *conn) control(r *request) bool {
	var out []byte
	switch string(r.target) {
	case "/.synth/score":
		out, _ = json.MarshalIndent(c.s.Score(), "", "  ") // a Score has only values that JSON can represent
	case "/.synth/pages":
		return c.send("text/tab-separated-values; charset=utf-8", c.pages()) == nil && !r.last
	case "/.synth/reset":
		c.s.Reset()
		out = []byte("{}")
	default:
		out = []byte(`{"error": "want score, pages or reset"}`)
	}
	return c.send("application/json", out) == nil && !r.last
}

func (c *conn) send(contentType string, body []byte) error {
	head := fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n", contentType, len(body))
	_, err := c.net.Write(append(head, body...))
	return err
}

// pages lists the pages that a correct crawler fetches from a web with languages: URL, language and charset, separated
// by tabs.
func (c *conn) pages() (out []byte) {
	for url := range c.s.truth().All(c.s.port) {
		switch w, ok := c.s.web.TextProfile(url); {
		case ok:
			out = fmt.Appendf(out, "%s\t%s\t%s\n", url, w.Language, w.Charset)
		case c.s.web.cfg.ScriptShare > 0 && c.s.web.isPage(url):
			out = fmt.Appendf(out, "%s\t\t\t%s\n", url, c.s.web.ScriptStyle(url))
		}
	}
	return out
}
