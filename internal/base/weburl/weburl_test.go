package weburl

import (
	"errors"
	"strings"
	"testing"
)

func parse(t *testing.T, s string) URL {
	t.Helper()
	u, err := Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestParts(t *testing.T) {
	for _, c := range []struct {
		in, href, scheme, hostname, port, host, origin, path, query, requestURI string
		user                                                                    bool
	}{
		{in: "HTTP://Me:pw@Example.COM:80/a?b#c", href: "http://Me:pw@example.com/a?b#c", scheme: "http",
			hostname: "example.com", host: "example.com", origin: "http://example.com",
			path: "/a", query: "b", requestURI: "/a?b", user: true},
		{in: "https://example.com:80", href: "https://example.com:80/", scheme: "https",
			hostname: "example.com", port: "80", host: "example.com:80", origin: "https://example.com:80",
			path: "/", requestURI: "/"},
		{in: "http://[2001:DB8:0:0::1]:8080/?", href: "http://[2001:db8::1]:8080/?", scheme: "http",
			hostname: "[2001:db8::1]", port: "8080", host: "[2001:db8::1]:8080", origin: "http://[2001:db8::1]:8080",
			path: "/", requestURI: "/?"},
		{in: "mailto:A@b?c", href: "mailto:A@b?c", scheme: "mailto", path: "A@b?c", requestURI: "A@b?c"},
	} {
		u := parse(t, c.in)
		for _, part := range [][3]string{
			{"String", u.String(), c.href}, {"Scheme", u.Scheme(), c.scheme}, {"Hostname", u.Hostname(), c.hostname},
			{"Port", u.Port(), c.port}, {"Host", u.Host(), c.host}, {"Origin", u.Origin(), c.origin},
			{"Path", u.Path(), c.path}, {"Query", u.Query(), c.query}, {"RequestURI", u.RequestURI(), c.requestURI},
		} {
			if part[1] != part[2] {
				t.Errorf("%q: %s = %q, want %q", c.in, part[0], part[1], part[2])
			}
		}
		if u.HasUser() != c.user {
			t.Errorf("%q: HasUser = %v", c.in, u.HasUser())
		}
	}
}

// Cases that are not in the 2021 edition of the standard's tests.
func TestResolve(t *testing.T) {
	const base = "http://me@example.com/a/b/c?d#e"
	for _, c := range []struct{ ref, want string }{
		{"", "http://me@example.com/a/b/c?d"},
		{"#x", "http://me@example.com/a/b/c?d#x"},
		{"?", "http://me@example.com/a/b/c?"},
		{"../../../x/.", "http://me@example.com/x/"},
		{"..", "http://me@example.com/a/"},
		{"http:x", "http://me@example.com/a/b/x"},
		{"https:x", "https://x/"},
		{"/\\other\\y", "http://other/y"},
		{"\\y", "http://me@example.com/y"},
		{"a^b|c", "http://me@example.com/a/b/a%5Eb|c"},
		{"caf\xe9", "http://me@example.com/a/b/caf%E9"},
		{"//1.1.1.1./", "http://1.1.1.1/"},
		{"//xn--fa-hia.example", "http://xn--fa-hia.example/"},
	} {
		u, err := parse(t, base).Resolve(c.ref)
		if err != nil || u.String() != c.want {
			t.Errorf("%q = %q, %v, want %q", c.ref, u, err, c.want)
		}
	}
}

func TestReasons(t *testing.T) {
	long := "http://h/" + strings.Repeat("a", MaxLength)
	for _, c := range []struct {
		in   string
		want error
	}{
		{"", ErrRelative}, {"page.html", ErrRelative}, {"//host/", ErrRelative}, {"1http://h", ErrRelative},
		{"http://", ErrNoHost}, {"http://user@/x", ErrNoHost}, {"https://:80/", ErrNoHost},
		{"http://a b/", ErrHost}, {"http://a\xff/", ErrHost}, {"http://%zz/", ErrHost}, {"http://xn--a.é/", ErrHost},
		{"http://" + strings.Repeat("é", maxHost) + "/", ErrHost},
		{"http://1.2.3.4.5/", ErrAddress}, {"http://foo.0x1/", ErrAddress}, {"http://[1::2::3]/", ErrAddress},
		{"http://[fe80::1%25eth0]/", ErrAddress}, {"http://[/", ErrAddress}, {"http://[1.2.3.4]/", ErrAddress},
		{"http://h:65536/", ErrPort}, {"http://h:8x/", ErrPort}, {"http://h:1:2/", ErrPort},
		{long, ErrTooLong}, {"data:" + long, ErrTooLong}, {"http://h/" + strings.Repeat("é", MaxLength/3), ErrTooLong},
		{"http://h/" + strings.Repeat("|", MaxLength/3), ErrTooLong}, // in the canonical form
	} {
		u, err := Parse(c.in)
		var e *Error
		if !errors.Is(err, c.want) || !errors.As(err, &e) || !u.IsZero() {
			t.Errorf("%.40q = %.40q, %.80v, want %v", c.in, u, err, c.want)
		}
		if len(e.Error()) > 2*maxQuoted*len(`\xff`) {
			t.Errorf("%.40q: the error is %d bytes long", c.in, len(e.Error()))
		}
	}
	if u, err := parse(t, "mailto:a@b").Resolve("x"); !errors.Is(err, ErrRelative) {
		t.Errorf("relative to a mail address: %q, %v", u, err)
	}
}

func TestDomain(t *testing.T) {
	for hostname, want := range map[string]string{
		"www.example.com": "example.com", "example.com": "example.com", "a.b.example.co.uk": "example.co.uk",
		"example.com.": "example.com", "com": "com", "co.uk": "co.uk", "localhost": "localhost", "": "",
		"192.0.2.1": "192.0.2.1", "[2001:db8::1]": "[2001:db8::1]", "me.github.io": "me.github.io", "github.io": "github.io",
	} {
		if got := Domain(hostname); got != want {
			t.Errorf("Domain(%q) = %q, want %q", hostname, got, want)
		}
	}
}
