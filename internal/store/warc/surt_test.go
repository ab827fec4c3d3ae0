package warc

import (
	"strings"
	"testing"
)

func TestSURT(t *testing.T) {
	for url, want := range map[string]string{
		"http://Example.org/":                     "org,example)/",
		"http://example.org":                      "org,example)/",
		"https://www.Example.org:8443/A/?b=2&a=1": "org,example:8443)/a?a=1&b=2",
		"http://example.org/a//b///":              "org,example)/a/b",
		"http://127.0.0.1:8080/x":                 "1,0,0,127:8080)/x",
		"http://[::1]:80/a":                       "::1)/a",
		"http://www2.a.b.c/?":                     "c,b,a)/",
		"http://wwww.a.com/":                      "com,a,wwww)/",
		"http://www.com/":                         "com)/",
		"http://u:p@a.com/x?&b&a":                 "com,a)/x?&a&b",
		"https://a.com:443/":                      "com,a)/",
		"http://a.com:443/":                       "com,a:443)/",
		"http://a.com/?x=1":                       "com,a)/?x=1",
		"http://a.com/x?a1=1&a=2":                 "com,a)/x?a=2&a1=1",
		"http://a.com./x":                         "com,a)/x",
		"http://xn--bcher-kva.example/x?c=d#frag": "example,xn--bcher-kva)/x?c=d",
		"http://a.com/b c\nd":                     "com,a)/b%20c%0Ad",
		"mailto:someone@example.org":              "mailto:someone@example.org",
		"":                                        "-",
	} {
		if got := string(appendSURT(nil, url)); got != want {
			t.Errorf("SURT of %q is %q, want %q", url, got, want)
		}
	}
}

// FuzzSURT holds that no URL can break the index line that its key begins.
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
