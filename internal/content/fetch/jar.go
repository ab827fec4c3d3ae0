package fetch

import (
	"bytes"
	"net/http"
	"slices"
	"strings"

	"kumo/internal/content/cookies"
)

const (
	cookieField = "Cookie"
	setCookie   = "Set-Cookie"
	redacted    = "REDACTED"
)

// cookies returns the Cookie field for a request, "" for none, and the same field with secrets redacted. Configured
// cookies go to trusted hosts only and are secret; the jar marks its own secrets. A cookie that a server has set
// replaces a configured cookie of the same name.
func (c *Client) cookies(req *Request, t target) (sent, shown string) {
	var room [8]cookies.Cookie
	now := c.cfg.Now()
	var set []cookies.Cookie
	if c.cfg.Jar.Len() > 0 && !req.NoCookies {
		set = c.cfg.Jar.Append(room[:0], t.forCookies(), now)
	}
	field := cookieIn(req.Header)
	if req.Header == nil && req.Trusted {
		field = c.configuredCookie()
	}
	if len(set) == 0 && field == "" && !(req.Trusted && c.secrets) {
		return "", ""
	}
	var all, public []string
	add := func(pair, asShown string) { all, public = append(all, pair), append(public, asShown) }
	if field != "" {
		add(field, redacted)
	}
	if req.Trusted {
		for pair := range c.cfg.Cookies.pairs(t, now) {
			name, _, _ := strings.Cut(pair, "=")
			if !slices.ContainsFunc(set, func(k cookies.Cookie) bool { return k.Name == name }) {
				add(pair, name+"="+redacted)
			}
		}
	}
	for i := range set {
		k := &set[i]
		prefix := k.Name + "="
		if k.Name == "" {
			prefix = ""
		}
		if k.Private {
			add(prefix+k.Value, prefix+redacted)
		} else {
			add(prefix+k.Value, prefix+k.Value)
		}
	}
	return strings.Join(all, "; "), strings.Join(public, "; ")
}

// configuredCookie returns the Cookie field in the configuration.
func (c *Client) configuredCookie() string { return cookieIn(c.cfg.Header) }

// cookieIn returns the Cookie field of a header, in any letter case; "" if it has none.
func cookieIn(h http.Header) string {
	var all []string
	for name, values := range h {
		if strings.EqualFold(name, cookieField) {
			all = append(all, values...)
		}
	}
	return strings.Join(all, "; ")
}

func (t target) forCookies() cookies.Target {
	return cookies.Target{Secure: t.scheme == "https", Host: t.hostname, Path: t.path}
}

// storeCookies adds the response's cookies to the jar once the head is complete. It redacts secret cookies in the raw
// bytes, since these are stored.
func (x *exchange) storeCookies() {
	if x.cookiesStored || x.frame.end == 0 {
		return
	}
	x.cookiesStored = true
	fields := x.frame.fields[setCookie]
	if len(fields) == 0 {
		return
	}
	jar := x.client.cfg.Jar
	if x.req.NoCookies {
		jar = nil
	}
	private := x.req.Private || x.req.Trusted && x.client.cfg.Cookies.changedBy(fields, x.target, x.client.cfg.Now())
	if jar.Store(fields, x.target.forCookies(), private, x.client.cfg.Now()) {
		redactSetCookie(x.raw[x.frame.start:x.frame.end])
	}
}

// redactSetCookie overwrites the values of a head's Set-Cookie fields in place.
func redactSetCookie(head []byte) {
	setting := false // a folded field continues in lines that begin with a blank
	for line := range bytes.Lines(head) {
		value := line
		if !isBlank(line[0]) {
			name, rest, _ := bytes.Cut(line, []byte(":"))
			if setting = bytes.EqualFold(bytes.TrimSpace(name), []byte(setCookie)); setting {
				if _, after, named := bytes.Cut(rest, []byte("=")); named {
					rest = after
				}
			}
			value = rest
		}
		for i := range value {
			if setting && value[i] > ' ' {
				value[i] = 'x'
			}
		}
	}
}
