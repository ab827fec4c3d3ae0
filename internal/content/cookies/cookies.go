// Package cookies implements cookie storage and matching by RFC 6265bis.
//
// It decides which cookies a request sends and which cookies of a response are stored. A [Jar] bounds the cookies of
// each domain and of all domains, so that no server can fill it.
//
// It differs from a browser in three ways. It ignores SameSite, since in a crawl no page makes requests on behalf of
// another. It ignores HttpOnly. And a cookie without an expiry lives as long as its jar.
package cookies

import (
	"kumo/internal/base/item"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/publicsuffix"
)

// A Cookie is a cookie in a jar.
type Cookie struct {
	Name, Value string
	Domain      string    // without a leading dot
	HostOnly    bool      // not sent to subdomains of Domain
	Path        string    // begins with /
	Secure      bool      // sent over https only
	Expires     time.Time // zero: at the end of the crawl
	Created     time.Time // time of the first Set-Cookie
	Set         time.Time // time of the last Set-Cookie
	Private     bool      // secret: never written to disk
}

// A Target is the destination of a request, as in a canonical URL.
type Target struct {
	Secure bool   // https
	Host   string // in lower case, without port and brackets
	Path   string // begins with /; a query is ignored
}

// HostOf returns the Target.Host for a host with its port, as in URLs.
func HostOf(hostport string) string {
	return strings.Trim(item.HostnameOf(hostport), "[]")
}

// Limits of a cookie (RFC 6265bis 5.6).
const (
	maxPair      = 4096 // bytes of name and value
	maxAttribute = 1024 // bytes of an attribute's value
	maxLife      = 400 * 24 * time.Hour
)

// Parse parses a Set-Cookie field of a response from a target. ok is false if the cookie must be ignored. An expired
// cookie deletes the stored cookie that it replaces.
func Parse(line string, from Target, now time.Time) (c Cookie, ok bool) {
	if strings.ContainsFunc(line, isControl) {
		return c, false
	}
	pair, attributes, _ := strings.Cut(line, ";")
	name, value, named := strings.Cut(pair, "=")
	if !named {
		name, value = "", pair
	}
	c = Cookie{Name: trim(name), Value: trim(value), Path: defaultPath(from.Path), Created: now, Set: now}
	if n := len(c.Name) + len(c.Value); n == 0 || n > maxPair {
		return c, false
	}
	domain, maxAge, root := "", false, false
	for more := attributes != ""; more; {
		var attribute string
		attribute, attributes, more = strings.Cut(attributes, ";")
		key, value, _ := strings.Cut(attribute, "=")
		value = trim(value)
		if len(value) > maxAttribute {
			continue
		}
		switch strings.ToLower(trim(key)) {
		case "domain":
			domain = strings.ToLower(strings.TrimPrefix(value, "."))
		case "path":
			c.Path = value
			if root = value == "/"; !strings.HasPrefix(value, "/") {
				c.Path = defaultPath(from.Path)
			}
		case "secure":
			c.Secure = true
		case "max-age":
			if seconds, ok := parseSeconds(value); ok {
				maxAge, c.Expires = true, now.Add(seconds)
			}
		case "expires":
			if t, ok := parseDate(value); ok && !maxAge {
				c.Expires = t
			}
		}
	}
	if latest := now.Add(maxLife); c.Expires.After(latest) {
		c.Expires = latest
	}
	return c, len(c.Path) <= maxPath && c.assignDomain(domain, from) && (!c.Secure || from.Secure) &&
		c.matchesPrefix(domain == "" && root)
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

func trim(s string) string { return strings.Trim(s, " \t") }

// defaultPath returns the directory of a target's path (RFC 6265 5.1.4).
func defaultPath(path string) string {
	path = withoutQuery(path)
	if i := strings.LastIndexByte(path, '/'); i > 0 {
		return path[:i]
	}
	return "/"
}

func withoutQuery(path string) string {
	path, _, _ = strings.Cut(path, "?")
	return path
}

// assignDomain sets the cookie's domain. It returns false if the target may not set a cookie for the domain.
func (c *Cookie) assignDomain(domain string, from Target) bool {
	c.Domain, c.HostOnly = from.Host, true
	if domain == "" || domain == from.Host && isAddress(from.Host) {
		return from.Host != ""
	}
	if isAddress(from.Host) {
		return false
	}
	if suffix, _ := publicsuffix.PublicSuffix(domain); suffix == domain {
		return domain == from.Host // a public suffix may be a site with its own cookies
	}
	if !covers(domain, from.Host) {
		return false
	}
	c.Domain, c.HostOnly = domain, false
	return true
}

func isAddress(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}

// covers reports whether a host is a domain or a subdomain of it.
func covers(domain, host string) bool {
	rest, ok := strings.CutSuffix(host, domain)
	return ok && (rest == "" || strings.HasSuffix(rest, "."))
}

// matchesPrefix reports whether a cookie meets the requirements of its name's prefix. wholeHost means that the cookie
// has no Domain attribute and the path /.
func (c *Cookie) matchesPrefix(wholeHost bool) bool {
	name := c.Name
	if name == "" {
		name = c.Value // once sent, a browser or server would take the value for a name
	}
	switch {
	case hasPrefix(name, "__Secure-"):
		return c.Name != "" && c.Secure
	case hasPrefix(name, "__Host-"):
		return c.Name != "" && c.Secure && wholeHost
	}
	return true
}

func hasPrefix(name, prefix string) bool {
	return len(name) >= len(prefix) && strings.EqualFold(name[:len(prefix)], prefix)
}

func parseSeconds(s string) (time.Duration, bool) {
	digits := strings.TrimPrefix(s, "-")
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	if len(digits) < len(s) {
		return -time.Second, true
	}
	n, err := strconv.ParseUint(digits, 10, 63)
	if most := uint64(maxLife / time.Second); err != nil || n > most {
		n = most
	}
	if n == 0 {
		return -time.Second, true
	}
	return time.Duration(n) * time.Second, true
}

// GoesTo reports whether a cookie is sent with a request to a target.
func (c *Cookie) GoesTo(t Target, now time.Time) bool { return c.Covers(t.Host) && c.goesTo(t, now) }

// goesTo is GoesTo for a target whose host the cookie's domain covers.
func (c *Cookie) goesTo(t Target, now time.Time) bool {
	return !(c.Secure && !t.Secure || c.HostOnly && c.Domain != t.Host || c.expired(now)) && c.covers(withoutQuery(t.Path))
}

// covers reports whether a path is the cookie's or below it.
func (c *Cookie) covers(path string) bool {
	rest, ok := strings.CutPrefix(path, c.Path)
	return ok && (rest == "" || rest[0] == '/' || strings.HasSuffix(c.Path, "/"))
}

func (c *Cookie) expired(now time.Time) bool { return !c.Expires.IsZero() && !now.Before(c.Expires) }

// sameKey reports whether two cookies have the same key. A jar keeps one of them.
func (c *Cookie) sameKey(d *Cookie) bool {
	return c.Name == d.Name && c.Path == d.Path && c.Domain == d.Domain && c.HostOnly == d.HostOnly
}

// size returns the approximate memory of a cookie, in bytes.
func (c *Cookie) size() int64 {
	return int64(overhead + len(c.Name) + len(c.Value) + len(c.Domain) + len(c.Path))
}

const overhead = 192 // bytes: the struct, and its share of the containers

// clone returns a copy that shares no memory with the response.
func (c *Cookie) clone() Cookie {
	d := *c
	d.Name, d.Value = strings.Clone(c.Name), strings.Clone(c.Value)
	d.Domain, d.Path = strings.Clone(c.Domain), strings.Clone(c.Path)
	return d
}
