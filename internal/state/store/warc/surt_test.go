package warc

import (
	"strings"
	"testing"
)

func TestSURT(t *testing.T) {
	for url, want := range map[string]string{
		"http://Example.org/":                               "org,example)/",
		"http://example.org":                                "org,example)/",
		"https://www.Example.org:8443/A/?b=2&a=1":           "org,example:8443)/a?a=1&b=2",
		"http://example.org/a//b///":                        "org,example)/a/b",
		"http://127.0.0.1:8080/x":                           "1,0,0,127:8080)/x",
		"http://[::1]:80/a":                                 "::1)/a",
		"http://www2.a.b.c/?":                               "c,b,a)/",
		"http://wwww.a.com/":                                "com,a,wwww)/",
		"http://www.com/":                                   "com)/",
		"http://u:p@a.com/x?&b&a":                           "com,a)/x?&a&b",
		"https://a.com:443/":                                "com,a)/",
		"http://a.com:443/":                                 "com,a:443)/",
		"http://a.com/?x=1":                                 "com,a)/?x=1",
		"http://a.com/x?a1=1&a=2":                           "com,a)/x?a=2&a1=1",
		"http://a.com./x":                                   "com,a)/x",
		"http://xn--bcher-kva.example/x?c=d#frag":           "example,xn--bcher-kva)/x?c=d",
		"http://a.com/b c%0ad":                              "com,a)/b%20c%0ad",
		"http://a.com/%3A%28%5B%7C%2C":                      "com,a)/:([|,",
		"http://a.com/A%2fB%2F%2e%2e/%252e/c":               "com,a)/a/c",
		"http://a.com/%2541%25%2":                           "com,a)/a%25%252",
		"http://a.com/%C3%A9?%C3%89=%26%23x#y":              "com,a)/%c3%a9?%23x&%c3%89=",
		"http://a.com/x?y&sid=" + strings.Repeat("0aB9", 8): "com,a)/x?&y",
		"http://a.com/x?PHPSESSID=" + strings.Repeat("0aB9", 8) + "&b=2&a=1":     "com,a)/x?a=1&b=2",
		"http://a.com/x;jsessionid=" + strings.Repeat("0aB9", 8):                 "com,a)/x;jsessionid=" + strings.Repeat("0ab9", 8),
		"http://a.com/(S(" + strings.Repeat("a1", 12) + "))/X.aspx":              "com,a)/x.aspx",
		"http://a.com/x?CFID=1&CFTOKEN=2":                                        "com,a)/x",
		"http://a.com/x?ASPSESSIONIDABCDEFGH=" + strings.Repeat("AB", 12) + "&z": "com,a)/x?z",
		"mailto:someone@example.org":                                             "mailto:someone@example.org",
		"":                                                                       "-",
	} {
		if got := string(appendSURT(nil, url)); got != want {
			t.Errorf("SURT of %q is %q, want %q", url, got, want)
		}
	}
}

// FuzzSURT tests that no URL can break the index line that begins with its key.
func FuzzSURT(f *testing.F) {
	for _, url := range []string{"http://a/", "http://", "://", "http://a:b@c:1:2/?&=&", "http://[/", "a\u2028://b c/d",
		"A://A:0 00"} {
		f.Add(url)
	}
	f.Fuzz(func(t *testing.T, url string) {
		if key := string(appendSURT(nil, url)); len(strings.Fields(key)) != 1 || strings.ContainsAny(key, " \r\n\t") {
			t.Errorf("SURT of %q is %q", url, key)
		}
	})
}

// TestOldKeys tests that an index of early versions can be read.
func TestOldKeys(t *testing.T) {
	const url = "http://a.com/%3Ax?sid=0123456789abcdef0123456789abcdef"
	x := IndexLine{URL: url, MIME: "text/html", Status: 200, Digest: "sha1:A", File: "a.warc.gz"}
	line := strings.TrimSuffix(string(AppendIndexLine(nil, &x)), "\n")
	_, rest, _ := strings.Cut(line, " ")
	old := OldKey(url) + " " + rest
	if line == old {
		t.Fatal("both keys are ", OldKey(url))
	}
	for _, line := range []string{line, old} {
		if got, err := ParseIndexLine([]byte(line)); err != nil || got.URL != url {
			t.Errorf("%s: %+v, %v", line, got, err)
		}
	}
	if _, err := ParseIndexLine([]byte("com,a)/other " + rest)); err == nil {
		t.Error("another URL's key is accepted")
	}
}
