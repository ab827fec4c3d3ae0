package fetch

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
)

// A target is a canonical URL taken apart as far as an exchange needs it.
type target struct {
	scheme   string
	host     string // host key: name or address, with the port if it is not the scheme's
	hostname string // without port and brackets
	port     string
	path     string // path and query, exactly as in the URL
	proxy    *proxy // that it is reached through; nil for none
}

var errURL = errors.New("not a canonical http or https URL")

// parseTarget reads a URL, and says what its target is reached through.
func (c *Client) parseTarget(rawURL string) (target, error) {
	t, err := parseTarget(rawURL)
	if err == nil {
		t.proxy = c.proxies.forTarget(t)
	}
	return t, err
}

func parseTarget(rawURL string) (target, error) {
	scheme, rest, ok := strings.Cut(rawURL, "://")
	if !ok || scheme != "http" && scheme != "https" {
		return target{}, errURL
	}
	rest, _, _ = strings.Cut(rest, "#")
	t := target{scheme: scheme, host: rest, path: "/", port: "80"}
	if scheme == "https" {
		t.port = "443"
	}
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		t.host, t.path = rest[:i], rest[i:]
	}
	if t.path[0] == '?' {
		t.path = "/" + t.path
	}
	t.host = t.host[strings.LastIndexByte(t.host, '@')+1:] // a page's links do not decide on credentials
	t.hostname = t.host
	if name, port, err := net.SplitHostPort(t.host); err == nil {
		t.hostname, t.port = name, port
	}
	t.hostname = strings.Trim(t.hostname, "[]")
	if t.hostname == "" || strings.ContainsFunc(rest, notVisible) {
		return target{}, errURL
	}
	return t, nil
}

// notVisible reports whether r would break a request line.
func notVisible(r rune) bool { return r <= ' ' || r >= 0x7f }

// address is what to dial, host:port.
func (t target) address() string { return net.JoinHostPort(t.hostname, t.port) }

// fields are what requests have in common, as they are sent.
type fields struct {
	lines []byte // over HTTP/1
	block []byte // over HTTP/2
}

func newFields(h http.Header) fields {
	var b bytes.Buffer
	if agent := h["User-Agent"]; len(agent) > 0 { // first, where browsers have it; a buffer takes everything
		_ = http.Header{"User-Agent": agent[:1]}.Write(&b)
	}
	_ = h.WriteSubset(&b, notSent)
	f := fields{lines: b.Bytes()}
	for line := range bytes.Lines(f.lines) {
		name, value, _ := strings.Cut(strings.TrimSuffix(string(line), "\r\n"), ": ")
		f.block = appendLiteral(f.block, name, value)
	}
	return f
}

// notSent are fields that have their place, or that a request without a body must not have.
var notSent = map[string]bool{"Host": true, "User-Agent": true, "Content-Length": true, "Transfer-Encoding": true,
	"Trailer": true}

// appendRequest appends the request for t as HTTP/1.1 sends it.
func (c *Client) appendRequest(b []byte, m *liveSettings, req *Request, t target, cookie string) []byte {
	method := "GET "
	switch {
	case req.Form != nil:
		method = "POST "
	case req.Head:
		method = "HEAD "
	}
	b = append(b, method...)
	forwarded := t.proxy.forwards(t)
	if forwarded {
		b = append(append(append(b, t.scheme...), "://"...), t.host...)
	}
	b = append(append(b, t.path...), " HTTP/1.1"...)
	b = appendField(b, "Host", t.host)
	b = append(b, "\r\n"...)
	b = append(b, m.fieldsFor(req).lines...)
	b = b[:len(b)-len("\r\n")]
	for _, f := range c.requestFields(req, t, cookie) {
		b = appendField(b, f.name, f.value)
	}
	if req.Form != nil {
		b = appendField(b, "Content-Type", "application/x-www-form-urlencoded")
		b = appendField(b, "Content-Length", strconv.Itoa(len(req.Form)))
	}
	return append(append(b, "\r\n\r\n"...), req.Form...)
}

func appendField(b []byte, name, value string) []byte {
	b = append(append(b, "\r\n"...), name...)
	return append(append(b, ": "...), value...)
}

type nameValue struct{ name, value string }

// requestFields are the fields of this request alone.
func (c *Client) requestFields(req *Request, t target, cookie string) (own []nameValue) {
	add := func(name, value string) {
		if value != "" {
			own = append(own, nameValue{name, value})
		}
	}
	add(cookieField, cookie)
	if t.proxy.forwards(t) {
		add("Proxy-Authorization", t.proxy.auth)
	}
	if sendable(req.ETag) && req.Header.Get("If-None-Match") == "" { // it is as the server wrote it
		add("If-None-Match", req.ETag) // who sends both is answered by the tag, RFC 9110 13.1.3
	}
	if !req.Modified.IsZero() && req.Header.Get("If-Modified-Since") == "" {
		add("If-Modified-Since", req.Modified.UTC().Format(http.TimeFormat))
	}
	return own
}

// redact copies a request's head to dst with the values of secret fields replaced; cookies have one of their own.
func redact(dst, raw []byte, cookies string) []byte {
	first := true
	for line := range bytes.Lines(raw) {
		name, _, ok := bytes.Cut(line, []byte(":"))
		if ok && !first && string(name) == cookieField {
			dst = fmt.Appendf(dst, "%s: %s\r\n", name, cookies)
		} else if ok && !first && IsSecret(string(name)) {
			dst = fmt.Appendf(dst, "%s: REDACTED\r\n", name)
		} else {
			dst = append(dst, line...)
		}
		first = false
	}
	return dst
}
