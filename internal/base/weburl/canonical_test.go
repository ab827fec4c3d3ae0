package weburl

import (
	"errors"
	"strings"
	"testing"
)

func TestCanonical(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"HTTP://User:pw@Example.com:80#top", "http://example.com/"},
		{"http://example.com/?", "http://example.com/"},
		{"http://example.com/?#x", "http://example.com/"},
		{"http://example.com/a?b?c#d", "http://example.com/a?b?c"},
		{"https://bücher.example/straße?ä", "https://xn--bcher-kva.example/stra%C3%9Fe?%C3%A4"},
		{"http://h/%7euser/%41%2f%3a", "http://h/~user/A%2F%3A"},
		{"http://h/a%2E%2e/%2e./b", "http://h/b"},
		{"http://h/..a/.%2Eb", "http://h/..a/..b"},
		{"http://h/a b|c^d\"{e}`", "http://h/a%20b%7Cc%5Ed%22%7Be%7D%60"},
		{"http://h/?a[]=1&b='|\\{}^`<>", "http://h/?a[]=1&b=%27%7C%5C%7B%7D%5E%60%3C%3E"},
		{"http://h/?q=100%&r=%zz", "http://h/?q=100%25&r=%25zz"},
		{"http://h/%%341", "http://h/%2541"}, // not %41, which is a different path
		{"http://h/%2%45", "http://h/%252E"},
		{"http://h//a//", "http://h//a//"},
		{"http://h/a;b=c,d@e:f!$&'()*+", "http://h/a;b=c,d@e:f!$&'()*+"},
		{"http://h./", "http://h./"},
		{"ftp://me@h:21/a%7e", "ftp://h/a~"},
		{"mailto:a@b?%7e", "mailto:a@b?%7e"},
	} {
		u := parse(t, c.in)
		if got := u.Canonical().String(); got != c.want {
			t.Errorf("%q = %q, want %q", c.in, got, c.want)
		}
		checkCanonical(t, u)
	}
}

// The base need not be canonical.
func TestAppendCanonical(t *testing.T) {
	base := parse(t, "https://me@example.com:8443/%7ea|b/./c%?q=%7e|#f")
	for _, c := range []struct{ ref, want string }{
		{"", "https://example.com:8443/~a%7Cb/c%25?q=~%7C"},
		{"#top", "https://example.com:8443/~a%7Cb/c%25?q=~%7C"},
		{"?", "https://example.com:8443/~a%7Cb/c%25"},
		{" d\n/e\t", "https://example.com:8443/~a%7Cb/d/e"},
		{"../x", "https://example.com:8443/x"},
		{"//Example.org", "https://example.org/"},
	} {
		got, err := base.AppendCanonical([]byte("-"), []byte(c.ref))
		if err != nil || string(got) != "-"+c.want {
			t.Errorf("%q = %q, %v, want %q", c.ref, got, err, c.want)
		}
	}
}

func TestAppendCanonicalRefuses(t *testing.T) {
	base, ftp := parse(t, "https://example.com/"), parse(t, "ftp://example.com/")
	data := "data:image/png;base64," + strings.Repeat("A", 4*MaxLength)
	for _, c := range []struct {
		base URL
		ref  string
		want error
	}{
		{base, "mailto:me@example.com", ErrScheme}, {base, "javascript:void(0)", ErrScheme}, {base, data, ErrScheme},
		{base, "ftp://example.com/", ErrScheme}, {base, "file:///etc/passwd", ErrScheme}, {ftp, "x", ErrScheme},
		{URL{}, "x", ErrRelative}, {base, "//", ErrNoHost}, {base, "/" + data, ErrTooLong},
	} {
		got, err := c.base.AppendCanonical([]byte("-"), []byte(c.ref))
		if !errors.Is(err, c.want) || string(got) != "-" {
			t.Errorf("%.40q on %q = %.40q, %v, want %v", c.ref, c.base, got, err, c.want)
		}
	}
}

// A page's links must not cost an allocation each.
func TestNoAllocation(t *testing.T) {
	base := parse(t, "https://www.xn--bcher-kva.example/a/b.html")
	buf := make([]byte, 0, 512)
	for _, ref := range []string{"../c.html?d=e#f", "/x y/%7e|", "http://EXAMPLE.org:80/a", "mailto:a@b",
		"//www.xn--bcher-kva.example/"} {
		in := []byte(ref)
		if n := testing.AllocsPerRun(100, func() { base.AppendCanonical(buf, in) }); n != 0 {
			t.Errorf("AppendCanonical of %q allocates %v times", ref, n)
		}
	}
}
