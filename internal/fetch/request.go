package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// A target is a canonical URL taken apart as far as an exchange needs it.
type target struct {
	scheme   string
	host     string // host key: name or address, with the port if it is not the scheme's
	hostname string // without port and brackets
	port     string
	path     string // path and query, exactly as in the URL
}

var errURL = errors.New("not a canonical http or https URL")

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

// url returns a URL that net/http writes into the request line without touching the path. A path with two leading slashes
// would be taken for an authority: such a request falls back to the absolute form, which servers must accept, unless net/url
// happens to leave the path alone.
func (t target) url(absolute bool) *url.URL {
	u := &url.URL{Scheme: t.scheme, Host: t.host, Opaque: t.path}
	if !strings.HasPrefix(t.path, "//") && !absolute {
		return u
	}
	path, query, ok := strings.Cut(t.path, "?")
	plain, err := url.PathUnescape(path)
	split := &url.URL{Scheme: t.scheme, Host: t.host, Path: plain, RawPath: path, RawQuery: query, ForceQuery: ok}
	if !absolute && err == nil && split.RequestURI() == t.path {
		return split
	}
	u.Opaque = "//" + t.host + t.path
	return u
}

type targetKey struct{}

// newRequest makes the request for t. Its context carries t to the dialling functions.
func (c *Client) newRequest(ctx context.Context, req Request, t target) *http.Request {
	absolute := c.proxy.forwards(t)
	header := c.public
	if req.Trusted {
		header = c.trusted
		if cookies := c.cfg.Cookies.header(t, c.cfg.Now()); cookies != "" {
			header = header.Clone()
			header.Add("Cookie", cookies)
		}
	}
	if absolute && c.proxy.auth != "" {
		header = header.Clone()
		header.Set("Proxy-Authorization", c.proxy.auth)
	}
	if req.ETag != "" || !req.Modified.IsZero() {
		header = req.condition(header.Clone())
	}
	r := &http.Request{Method: http.MethodGet, URL: t.url(absolute), Host: t.host, Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	return r.WithContext(context.WithValue(ctx, targetKey{}, t))
}

// condition asks for the body only if it is another than the one known. RFC 9110 13.1.3: who sends both fields is answered by the tag.
func (req *Request) condition(h http.Header) http.Header {
	if req.ETag != "" {
		h.Set("If-None-Match", req.ETag)
	}
	if !req.Modified.IsZero() {
		h.Set("If-Modified-Since", req.Modified.UTC().Format(http.TimeFormat))
	}
	return h
}

// redact copies a request to dst with the values of secret fields replaced.
func redact(dst, raw []byte) []byte {
	first := true
	for line := range bytes.Lines(raw) {
		name, _, ok := bytes.Cut(line, []byte(":"))
		if ok && !first && IsSecret(string(name)) {
			dst = fmt.Appendf(dst, "%s: REDACTED\r\n", name)
		} else {
			dst = append(dst, line...)
		}
		first = false
	}
	return dst
}
