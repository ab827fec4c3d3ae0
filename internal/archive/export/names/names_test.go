package names

import (
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"kumo/internal/base/weburl"
)

func TestNames(t *testing.T) {
	for _, c := range []struct{ url, mediaType, want string }{
		{"http://a.test/", "text/html", "a.test/index.html"},
		{"https://a.test:8443/x/", "text/html", "a.test+8443/x/index.html"},
		{"http://[::1]/", "text/html", "ipv6-0-1/index.html"},
		{"http://[2001:db8::a:1]:8080/x", "text/html", "ipv6-2001-db8-0-a-1+8080/x.html"},
		{"http://a.test/p", "text/html", "a.test/p.html"},
		{"http://a.test/p.HTM", "text/html", "a.test/p.HTM"},
		{"http://a.test/p.php?id=1&x=%2F", "text/html", "a.test/p.php@id=1&x=%2F.html"},
		{"http://a.test/?p=1", "text/html", "a.test/index@p=1.html"},
		{"http://a.test/s.css?v=3", "text/css", "a.test/s.css@v=3.css"},
		{"http://a.test/f.woff2?v=3", "", "a.test/f.woff2@v=3.woff2"},
		{"http://a.test/README.md", "text/plain", "a.test/README.md"},
		{"http://a.test/x.html", "text/plain", "a.test/x.html.txt"},
		{"http://a.test/i.jpeg", "image/jpeg", "a.test/i.jpeg"},
		{"http://a.test/i.php", "image/png", "a.test/i.php.png"},
		{"http://a.test/%C3%A9t%C3%A9", "text/html", "a.test/été.html"},
		{"http://a.test/e%CC%81", "text/html", "a.test/é.html"},
		{"http://a.test/%E9", "text/html", "a.test/%E9.html"},
		{"http://a.test/a%20b%25", "text/html", "a.test/a b%25.html"},
		{"http://a.test/a:b|c*d", "", "a.test/a%3Ab%7Cc%2Ad"},
		{"http://a.test/x%5C..%5Cy", "", "a.test/x%5C..%5Cy"},
		{"http://a.test/%00/x", "", "a.test/%00/x"},
		{"http://a.test/con", "text/html", "a.test/%63on.html"},
		{"http://a.test/NUL.txt/x", "", "a.test/%4EUL.txt/x"},
		{"http://a.test/com1", "", "a.test/%63om1"},
		{"http://a.test/company", "", "a.test/company"},
		{"http://a.test/dot./x.", "", "a.test/dot%2E/x%2E"},
		{"http://a.test/~user/", "text/html", "a.test/~user/index.html"},
		{"http://a.test/x~abcdefghij.html", "text/html", "a.test/x%7Eabcdefghij.html"},
		{"http://a.test//x", "", "a.test/_/x"},
		{"http://index.html/x", "", "%69ndex.html/x"},
		{"http://a.test/%E2%80%AEx", "", "a.test/%E2%80%AEx"},
	} {
		u, err := weburl.Parse(c.url)
		if err != nil {
			t.Fatal(err)
		}
		if got := Of(u, c.mediaType); got != c.want {
			t.Errorf("%s as %s: %s, want %s", c.url, c.mediaType, got, c.want)
		}
	}
}

func TestRelative(t *testing.T) {
	for _, c := range [][3]string{
		{"a/b/c.html", "a/b/d.html", "d.html"}, {"a/b/c.html", "a/b/c.html", "c.html"},
		{"a/b/c.html", "a/x y.html", "../x%20y.html"},
		{"a/c.html", "b/é#?%.html", "../b/%C3%A9%23%3F%25.html"}, {"index.html", "a/b,c.html", "a/b%2Cc.html"},
		{"a/b", "a/b/c", "b/c"},
	} {
		if got := Relative(c[0], c[1]); got != c[2] {
			t.Errorf("from %s to %s: %s, want %s", c[0], c[1], got, c[2])
		}
	}
}

var harmless = regexp.MustCompile(`^[^\x00-\x1f\x7f<>:"\\|?*]+$`)

// For any URL, the file is inside the folder, and its name is valid on all file systems.
func FuzzNames(f *testing.F) {
	for _, url := range []string{"http://a.test/../%2e%2e/x", "http://a.test/con?aux/..", "http://" +
		strings.Repeat("a.", 120) + "/x%ff",
		"http://a.test/" + strings.Repeat("%C3%A9", 500) + "/" + strings.Repeat("x", 400) + ".html?q",
		"http://a.test/. ./ x /%20."} {
		f.Add(url, uint8(3))
	}
	f.Fuzz(func(t *testing.T, url string, mediaType uint8) {
		u, err := weburl.Parse(url)
		if err != nil || !u.IsHTTP() {
			t.Skip()
		}
		name := Of(u, Types[int(mediaType)%len(Types)])
		for _, name := range []string{name, WithHash(name, url)} {
			if !filepath.IsLocal(name) || path.Clean(name) != name || !harmless.MatchString(name) || !utf8.ValidString(name) ||
				!norm.NFC.IsNormalString(name) {
				t.Errorf("%q is called %q", url, name)
			}
			if len(name) > maxPath+200 {
				t.Errorf("%d bytes: %q", len(name), name)
			}
			for part := range strings.SplitSeq(name, "/") {
				if len(part) > 255 || strings.HasSuffix(part, ".") || strings.HasSuffix(part, " ") || isDevice(part) {
					t.Errorf("%q has the part %q", url, part)
				}
			}
			if strings.HasPrefix(name, ".") {
				t.Errorf("%q lies in %q", url, name)
			}
		}
	})
}
