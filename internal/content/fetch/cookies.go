package fetch

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"kumo/internal/content/cookies"
)

const (
	maxCookies    = 10_000
	maxCookieLine = 64 << 10
	httpOnly      = "#HttpOnly_" // curl's prefix for HttpOnly cookies; a crawler ignores the attribute
)

// Cookies are the cookies that the user has configured. Responses never change them: cookies that servers set are in a
// jar.
type Cookies struct{ list []cookie }

type cookie struct {
	cookies.Cookie
	pair string // name=value
}

// LoadCookies reads a Netscape cookie file. Each line is a cookie of seven tab-separated fields: domain, whether
// subdomains match, path, secure, expiry in Unix time, name, value. Errors name the line.
func LoadCookies(r io.Reader) (*Cookies, error) { return (*Cookies)(nil).Load(r) }

// Load returns the cookies of c and those of a file, as LoadCookies reads it. c may be nil.
func (c *Cookies) Load(r io.Reader) (*Cookies, error) {
	c = c.clone()
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxCookieLine)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimPrefix(strings.TrimRight(lines.Text(), "\r"), httpOnly)
		if strings.TrimSpace(line) == "" || line[0] == '#' {
			continue
		}
		if len(c.list) == maxCookies {
			return nil, fmt.Errorf("cookie file line %d: more than %d cookies", n, maxCookies)
		}
		k, err := parseCookie(line)
		if err != nil {
			return nil, fmt.Errorf("cookie file line %d: %w", n, err)
		}
		c.list = append(c.list, k)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("cookies: %w", err)
	}
	c.sort()
	return c, nil
}

func (c *Cookies) clone() *Cookies {
	if c == nil {
		return new(Cookies)
	}
	return &Cookies{slices.Clone(c.list)}
}

// sort puts longer paths first, as RFC 6265 requires.
func (c *Cookies) sort() {
	slices.SortStableFunc(c.list, func(a, b cookie) int { return cmp.Compare(len(b.Path), len(a.Path)) })
}

// With returns the cookies of c and the given ones, which the server of a host name might have set. c may be nil.
func (c *Cookies) With(hostname string, given ...*http.Cookie) (*Cookies, error) {
	c = c.clone()
	for _, g := range given {
		k := cookie{cookies.Cookie{Domain: hostname, HostOnly: true, Path: cmp.Or(g.Path, "/"), Secure: g.Secure,
			Expires: g.Expires}, g.Name + "=" + g.Value}
		if g.Domain != "" {
			k.Domain, k.HostOnly = strings.ToLower(strings.TrimPrefix(g.Domain, ".")), false
		}
		switch {
		case g.Name == "" || strings.Contains(g.Name, "=") || strings.ContainsFunc(k.pair, notInCookie):
			return nil, fmt.Errorf("cookie %q: its name or value contains invalid characters", g.Name)
		case !k.Covers(hostname):
			return nil, fmt.Errorf("cookie %q: its domain is %s, not %s", g.Name, k.Domain, hostname)
		case len(c.list) == maxCookies:
			return nil, fmt.Errorf("more than %d cookies", maxCookies)
		}
		c.list = append(c.list, k)
	}
	c.sort()
	return c, nil
}

func parseCookie(line string) (cookie, error) {
	f := strings.Split(line, "\t")
	if len(f) == 6 {
		f = append(f, "") // some editors remove the tab before an empty value
	}
	if len(f) != 7 {
		return cookie{}, fmt.Errorf("%d tab-separated fields, want 7", len(f))
	}
	subdomains, err := parseFlag(f[1])
	if err != nil {
		return cookie{}, err
	}
	secure, err := parseFlag(f[3])
	if err != nil {
		return cookie{}, err
	}
	expires, err := parseExpiry(f[4])
	if err != nil {
		return cookie{}, err
	}
	domain := strings.ToLower(strings.TrimPrefix(f[0], "."))
	switch {
	case domain == "":
		return cookie{}, errors.New("no domain")
	case !strings.HasPrefix(f[2], "/"):
		return cookie{}, fmt.Errorf("path %q does not begin with /", f[2])
	case f[5] == "" || strings.ContainsFunc(f[5]+f[6], notInCookie) || strings.Contains(f[5], "="):
		return cookie{}, errors.New("the name or value contains invalid characters")
	}
	return cookie{cookies.Cookie{Domain: domain, HostOnly: !subdomains, Path: f[2], Secure: secure, Expires: expires},
		f[5] + "=" + f[6]}, nil
}

func notInCookie(r rune) bool { return r < ' ' || r == ';' || r == 0x7f }

func parseFlag(s string) (bool, error) {
	switch strings.ToUpper(s) {
	case "TRUE":
		return true, nil
	case "FALSE":
		return false, nil
	}
	return false, fmt.Errorf("%q, want TRUE or FALSE", s)
}

// parseExpiry reads Unix seconds. Browsers' tools write 0 or a negative number for session cookies, and some write a
// fraction.
func parseExpiry(s string) (time.Time, error) {
	whole, _, _ := strings.Cut(s, ".")
	seconds, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("expiry %q is not a number of seconds", s)
	}
	if seconds <= 0 {
		return time.Time{}, nil
	}
	return time.Unix(seconds, 0), nil
}

// pairs yields the cookies to send with a request to t.
func (c *Cookies) pairs(t target, now time.Time) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := 0; c != nil && i < len(c.list); i++ {
			if c.list[i].GoesTo(t.forCookies(), now) && !yield(c.list[i].pair) {
				return
			}
		}
	}
}

// HaveLike reports whether there is a cookie with the name of another one, for a host to which both may be sent.
func (c *Cookies) HaveLike(other *cookies.Cookie) bool {
	return c != nil && slices.ContainsFunc(c.list, func(k cookie) bool {
		name, _, _ := strings.Cut(k.pair, "=")
		return name == other.Name && k.Overlaps(other)
	})
}

// changedBy reports whether a response from t sets one of the cookies to another value. The new value is then a secret,
// like the configured one.
func (c *Cookies) changedBy(fields []string, t target, now time.Time) bool {
	for pair := range c.pairs(t, now) {
		name, _, _ := strings.Cut(pair, "=")
		for _, field := range fields {
			if set, _, _ := strings.Cut(field, "="); strings.TrimSpace(set) == name {
				return true
			}
		}
	}
	return false
}
