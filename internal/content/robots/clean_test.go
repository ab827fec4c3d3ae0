package robots

import (
	"strings"
	"testing"

	"kumo/internal/base/weburl"
)

func TestClean(t *testing.T) {
	const file = `Clean-param: ref /some_dir/get_book
User-agent: other
Disallow: /
clean-param: sid&sort /forum/*.php
Clean-param: utm_source&utm_medium
Clean-param: q /é/
Clean-param: exact /only$
Clean-param: lost forum/
Clean-param: a & b /x
Clean-param: & /
Clean-param:
`
	r := Parse([]byte(file), "kumo")
	for _, c := range []struct{ why, url, want string }{
		{"among others", "http://a.example/some_dir/get_book.pl?ref=site_1&book_id=123",
			"http://a.example/some_dir/get_book.pl?book_id=123"},
		{"order is kept", "http://a.example/forum/x.php?b=1&sid=2&a=3&sort=4&c", "http://a.example/forum/x.php?b=1&a=3&c"},
		{"none is left", "http://a.example/forum/x.php?sid=2", "http://a.example/forum/x.php"},
		{"without value, and twice", "http://a.example/forum/x.php?sid&a&sid=", "http://a.example/forum/x.php?a"},
		{"on every path", "http://a.example/?utm_source=x&p=1", "http://a.example/?p=1"},
		{"of two lines", "http://a.example/some_dir/get_book?ref=1&utm_medium=m", "http://a.example/some_dir/get_book"},
		{"another path", "http://a.example/other?ref=site_1", "http://a.example/other?ref=site_1"},
		{"a path in the query is none", "http://a.example/?/forum/x.php?sid=1", "http://a.example/?/forum/x.php?sid=1"},
		{"another case", "http://a.example/forum/x.php?SID=1", "http://a.example/forum/x.php?SID=1"},
		{"part of a name", "http://a.example/forum/x.php?sids=1&asid=2", "http://a.example/forum/x.php?sids=1&asid=2"},
		{"escaped path", "http://a.example/%C3%A9/?q=1", "http://a.example/%C3%A9/"},
		{"end of the path", "http://a.example/only?exact=1", "http://a.example/only"},
		{"not its end", "http://a.example/only/?exact=1", "http://a.example/only/?exact=1"},
		{"fragment", "http://a.example/?utm_source=x#f?utm_source", "http://a.example/#f?utm_source"},
		{"no query", "http://a.example/forum/x.php", "http://a.example/forum/x.php"},
		{"an empty query stays", "http://a.example/forum/x.php?", "http://a.example/forum/x.php?"},
		{"path only", "/forum/x.php?sid=1&a", "/forum/x.php?a"},
		{"a path that is none", "http://a.example/forum/?lost=1&a=2&b=3", "http://a.example/forum/?lost=1&a=2&b=3"},
	} {
		if got := r.Clean(c.url); got != c.want {
			t.Errorf("%s: %s, want %s", c.why, got, c.want)
		}
	}
	if n := len(r.CleanParams()); n != 5 {
		t.Errorf("%d lines are kept, want 5: %v", n, r.CleanParams())
	}
	if url := "http://a.example/?sid=1"; new(Rules).Clean(url) != url {
		t.Error("no lines, but another URL")
	}
}

func TestCleanParamsAreBounded(t *testing.T) {
	for _, file := range []string{
		strings.Repeat("Clean-param: a\n", 2000),
		"Clean-param: " + strings.Repeat("a&", 2000),
		strings.Repeat("Clean-param: a&b&c\n", 2000),
	} {
		n := 0
		for _, c := range Parse([]byte(file), "kumo").CleanParams() {
			n += len(c.Params)
		}
		if n != maxCleanParams {
			t.Errorf("%d names of %.40q", n, file)
		}
	}
}

func FuzzClean(f *testing.F) {
	f.Add("ref&sid /a*b$\nClean-param: x", "http://a.example/aab?ref=1&q&sid#x")
	f.Add("a /é\nclean-param:b\t/%c3", "/%C3%A9?a&b&&a=?")
	f.Fuzz(func(t *testing.T, lines, raw string) {
		r := Parse([]byte("Clean-param: "+lines), "kumo")
		clean := r.Clean(raw)
		if again := r.Clean(clean); again != clean {
			t.Errorf("%q is clean, but becomes %q", clean, again)
		}
		if len(clean) > len(raw) {
			t.Errorf("%q became %q", raw, clean)
		}
		if r.size() > 1<<10+16*int64(len(lines)) {
			t.Errorf("%d bytes became %d", len(lines), r.size())
		}
		u, err := weburl.Parse(raw)
		if err != nil || u.Scheme() != "http" {
			return
		}
		u = u.Canonical()
		c, err := weburl.Parse(r.Clean(u.String()))
		if err != nil || c.Host() != u.Host() || c.Path() != u.Path() {
			t.Errorf("%s became %s: %v", u, c, err)
		}
	})
}
