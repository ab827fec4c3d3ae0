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

// A target is a canonical URL, split for an exchange.
type target struct {
	scheme   string
	host     string // host key: name or address, with the port unless it is the scheme's default
	hostname string // without port and brackets
	port     string
	path     string // path and query, unchanged
	proxy    *proxy // nil: direct
}

var errURL = errors.New("not a canonical http or https URL")

// parseTarget parses a URL and selects its proxy.
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
	t.host = t.host[strings.LastIndexByte(t.host, '@')+1:] // links must not set credentials
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

// address returns the host:port to dial.
func (t target) address() string { return net.JoinHostPort(t.hostname, t.port) }

// fields are the encoded header fields that many requests share.
type fields struct {
	lines []byte // for HTTP/1
	block []byte // for HTTP/2
}

func newFields(h http.Header) fields {
	var b bytes.Buffer
	if agent := h["User-Agent"]; len(agent) > 0 { // first, as in browsers; writes to a Buffer do not fail
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

// notSent are the fields that are sent elsewhere, or that a request without a body must not have.
var notSent = map[string]bool{"Host": true, "User-Agent": true, "Content-Length": true, "Transfer-Encoding": true,
	"Trailer": true}

// appendRequest appends the request for t in the form of HTTP/1.1.
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

// requestFields returns the fields that belong to this request alone.
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
	if sendable(req.ETag) && req.Header.Get("If-None-Match") == "" { // unchanged from the server
		add("If-None-Match", req.ETag) // the tag takes precedence over the date (RFC 9110, 13.1.3)
	}
	if !req.Modified.IsZero() && req.Header.Get("If-Modified-Since") == "" {
		add("If-Modified-Since", req.Modified.UTC().Format(http.TimeFormat))
	}
	return own
}

// redact appends a request's head to dst with secret values redacted. cookies replaces the value of the Cookie field.
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
