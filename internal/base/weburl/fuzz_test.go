package weburl

import (
	"errors"
	"testing"
)

// checkCanonical checks the properties of a canonical form: it is its own canonical form, parsing returns it, and host
// and scheme are unchanged.
func checkCanonical(t *testing.T, u URL) {
	t.Helper()
	c := u.Canonical()
	if again := c.Canonical(); again != c {
		t.Errorf("canonical form of %q is %q, and of that %q", u, c, again)
	}
	if back, err := Parse(c.String()); err != nil || back != c {
		t.Errorf("canonical form of %q is %q, which parses to %q, %v", u, c, back, err)
	}
	if c.Host() != u.Host() || c.Scheme() != u.Scheme() {
		t.Errorf("canonical form of %q is %q", u, c)
	}
	if c.hierarchical() && (decoded(c.Path()) != decoded(u.Path()) || decoded(c.Query()) != decoded(u.Query())) {
		t.Errorf("canonical form of %q is %q: it means another thing", u, c)
	}
	got, err := URL{}.AppendCanonical([]byte("before "), []byte(u.String()))
	if u.IsHTTP() && (err != nil || string(got) != "before "+c.String()) {
		t.Errorf("AppendCanonical of %q = %q, %v, want %q", u, got, err, c)
	}
	if !u.IsHTTP() && !errors.Is(err, ErrScheme) {
		t.Errorf("AppendCanonical of %q = %q, %v, want %v", u, got, err, ErrScheme)
	}
}

func decoded(s string) string { return string(decode([]byte(s))) }

func FuzzResolve(f *testing.F) {
	for _, seed := range [][2]string{
		{"http://example.com/a/b?q", "../c/./d?x=%7e%2F#f"},
		{"https://user:pw@EXAMPLE.com:443/a%zz|b?'", "?"},
		{"ftp://h/", "//０x7f.1/%2e%2E/x"},
		{"http://[::ffff:1.2.3.4]:8080//", "\\\\faß.example\\a\tb"},
		{"mailto:a@b", "javascript:void(0)"},
		{"http://a/", "%2%45/%%341/.%2%65"},
		{"http://xn--nxa/", "http://xn--NXA./"},
		{"http://www.h.test/", "/a;jsessionid=1/.;jsessionid=2/index.html?utm_id=a&&sid=0123456789abcdef;b&a"},
		{"http://xn--a/", "//ｘn--\u1e9e－a\u2061\u3002\u2135/"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, base, ref string) {
		b, err := Parse(base)
		if err != nil {
			b = URL{}
		} else {
			checkParsed(t, b)
		}
		u, err := b.Resolve(ref)
		canon, errCanon := b.AppendCanonical(nil, []byte(ref))
		if err != nil {
			return // the shorter canonical form may exist
		}
		checkParsed(t, u)
		if u.IsHTTP() && (errCanon != nil || string(canon) != u.Canonical().String()) {
			t.Errorf("%q on %q = %q, canonical %q, %v, want %q", ref, base, u, canon, errCanon, u.Canonical())
		}
	})
}

// checkParsed checks the properties of any URL: it parses to itself, also relative to itself.
func checkParsed(t *testing.T, u URL) {
	t.Helper()
	if again, err := Parse(u.String()); err != nil || again != u {
		t.Errorf("%q parses to %q, %v", u, again, err)
	}
	if again, err := u.Resolve(u.String()); err != nil || again != u {
		t.Errorf("%q in itself is %q, %v", u, again, err)
	}
	checkCanonical(t, u)
	checkRules(t, u.Canonical())
}
