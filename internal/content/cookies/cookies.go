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

// A Cookie is one that was set.
type Cookie struct {
	Name, Value string
	Domain      string    // without a leading dot
	HostOnly    bool      // not for subdomains of Domain
	Path        string    // begins with /
	Secure      bool      // for https alone
	Expires     time.Time // zero: at the end of the crawl
	Created     time.Time // when it was set for the first time
	Set         time.Time // and for the last
	Private     bool      // a secret, which is never written down
}

// A Target is what a request is made to, as it is in a canonical URL.
type Target struct {
	Secure bool   // https
	Host   string // in lower case, without port and brackets
	Path   string // begins with /; what is from a ? on does not count
}

// HostOf is the host of a Target of a host with its port, as URLs have it.
func HostOf(hostport string) string {
	return strings.Trim(item.HostnameOf(hostport), "[]")
}

// Bounds of a cookie, RFC 6265bis 5.6.
const (
	maxPair      = 4096 // bytes of name and value
	maxAttribute = 1024 // bytes of an attribute's value
	maxLife      = 400 * 24 * time.Hour
)

// Parse reads a Set-Cookie field of an answer from a target. ok is false where it is not to be kept; a cookie that has
// expired takes the place of the one that it deletes.
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

// defaultPath is the folder of a target's path, RFC 6265 5.1.4.
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

// assignDomain sets whose the cookie is. It reports false where it is none that the target may set.
func (c *Cookie) assignDomain(domain string, from Target) bool {
	c.Domain, c.HostOnly = from.Host, true
	if domain == "" || domain == from.Host && isAddress(from.Host) {
		return from.Host != ""
	}
	if isAddress(from.Host) {
		return false
	}
	if suffix, _ := publicsuffix.PublicSuffix(domain); suffix == domain {
		return domain == from.Host // a public suffix may have a site, and that its own cookies
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

// covers reports whether a host is a domain or below it.
func covers(domain, host string) bool {
	rest, ok := strings.CutSuffix(host, domain)
	return ok && (rest == "" || strings.HasSuffix(rest, "."))
}

// matchesPrefix reports whether a cookie is what its name promises; wholeHost says that it names no domain, and / as
// path.
func (c *Cookie) matchesPrefix(wholeHost bool) bool {
	name := c.Name
	if name == "" {
		name = c.Value // a browser would take it for a cookie of that name once it is sent
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

// GoesTo reports whether a cookie goes with a request to a target.
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

// sameKey reports whether two cookies have the same place, of which a jar keeps one.
func (c *Cookie) sameKey(d *Cookie) bool {
	return c.Name == d.Name && c.Path == d.Path && c.Domain == d.Domain && c.HostOnly == d.HostOnly
}

// size is about what a cookie takes of memory.
func (c *Cookie) size() int64 {
	return int64(overhead + len(c.Name) + len(c.Value) + len(c.Domain) + len(c.Path))
}

const overhead = 192 // bytes: the struct, and the share of what holds it

// clone is a copy that holds no part of the answer.
func (c *Cookie) clone() Cookie {
	d := *c
	d.Name, d.Value = strings.Clone(c.Name), strings.Clone(c.Value)
	d.Domain, d.Path = strings.Clone(c.Domain), strings.Clone(c.Path)
	return d
}
