package fetch

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"kumo/internal/base/page"
	"kumo/internal/content/cookies"
)

func discard() *log.Logger { return log.New(io.Discard, "", 0) }

func TestRequestLine(t *testing.T) {
	c := newClient(t, Config{})
	url := answering(t, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false)
	host := strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/")
	tests := []struct{ path, want string }{
		{"/", "/"},
		{"", "/"},
		{"?q", "/?q"},
		{"/a%2Fb%2f?x=%7E&y=a/b?c", "/a%2Fb%2f?x=%7E&y=a/b?c"},
		{"/%zz/|'\"{}[]^`?|'\"{}[]^`", "/%zz/|'\"{}[]^`?|'\"{}[]^`"},
		{"/a?", "/a?"},
		{"/a#fragment", "/a"},
		{"//two//slashes?", "//two//slashes?"},
		{"//x%20y?u=http://a/", "//x%20y?u=http://a/"},
		{"//a|b", "//a|b"},
		{"/http://other/", "/http://other/"},
	}
	for _, tt := range tests {
		resp := get(t, c, "http://"+host+tt.path)
		line, _, _ := strings.Cut(string(resp.RequestRaw), "\r\n")
		if want := "GET " + tt.want + " HTTP/1.1"; line != want {
			t.Errorf("%q: %q, want %q", tt.path, line, want)
		}
	}
}

func TestParseTarget(t *testing.T) {
	good := map[string]target{
		"http://example.com/":         {"http", "example.com", "example.com", "80", "/", nil},
		"https://example.com:8443/a":  {"https", "example.com:8443", "example.com", "8443", "/a", nil},
		"https://[2001:db8::1]/":      {"https", "[2001:db8::1]", "2001:db8::1", "443", "/", nil},
		"http://[::1]:8080/?x":        {"http", "[::1]:8080", "::1", "8080", "/?x", nil},
		"http://user:pw@example.com/": {"http", "example.com", "example.com", "80", "/", nil},
		"http://example.com?q":        {"http", "example.com", "example.com", "80", "/?q", nil},
	}
	for url, want := range good {
		if got, err := parseTarget(url); got != want || err != nil {
			t.Errorf("%s: %+v, %v", url, got, err)
		}
	}
	for _, url := range []string{"", "example.com", "ftp://a/", "http://", "http:///x", "http://a/ b", "http://a/\r\nX: y",
		"http://a/é"} {
		if got, err := parseTarget(url); err == nil {
			t.Errorf("%q: %+v, want an error", url, got)
		}
	}
}

// Secrets are sent to trusted hosts only, and never recorded in the request.
func TestSecrets(t *testing.T) {
	var got http.Header
	srv := httptest.NewServer(handler(func(_ http.ResponseWriter, r *http.Request) { got = r.Header }))
	defer srv.Close()
	cookies, err := LoadCookies(strings.NewReader("127.0.0.1\tFALSE\t/\tFALSE\t0\tid\tcookie-secret\n"))
	if err != nil {
		t.Fatal(err)
	}
	c := newClient(t, Config{UserAgent: "kumo-test", User: "u", Password: "p-secret", Cookies: cookies,
		Header: http.Header{"x-api-key": {"key-secret"}, "Accept-Language": {"fo"}}})
	secret := []string{"Authorization", "Cookie", "X-Api-Key"}

	resp := new(page.Response)
	if err := c.Get(t.Context(), Request{URL: srv.URL + "/key:/?token=1", Trusted: true}, resp); err != nil {
		t.Fatal(err)
	}
	if got.Get("Cookie") != "id=cookie-secret" || got.Get("X-Api-Key") != "key-secret" ||
		got.Get("Authorization") != basicAuth("u", "p-secret") {
		t.Errorf("a trusted host got %v", got)
	}
	raw := string(resp.RequestRaw)
	for _, name := range secret {
		if !strings.Contains(raw, "\r\n"+name+": REDACTED\r\n") && !strings.Contains(raw, "\r\n"+name+": id=REDACTED\r\n") {
			t.Errorf("%s is not redacted in %q", name, raw)
		}
	}
	if strings.Contains(raw, "secret") || strings.Contains(raw, basicAuth("u", "p-secret")) ||
		!strings.HasPrefix(raw, "GET /key:/?token=1 HTTP/1.1\r\n") || !strings.HasSuffix(raw, "\r\n\r\n") {
		t.Errorf("request %q", raw)
	}

	get(t, c, srv.URL+"/")
	for _, name := range secret {
		if got.Get(name) != "" {
			t.Errorf("another host got %s", name)
		}
	}
	if got.Get("User-Agent") != "kumo-test" || got.Get("Accept-Language") != "fo" ||
		got.Get("Accept-Encoding") != acceptEncoding {
		t.Errorf("fields %v", got)
	}
}

// If a server echoes secrets, the recorded response contains them, since its bytes are evidence and are not changed.
// The request is redacted nevertheless. docs/how-to/crawl-behind-a-login.md documents this.
func TestEchoedSecretsStayInTheAnswer(t *testing.T) {
	var body, echoed string
	srv := httptest.NewServer(handler(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		echoed = r.Header.Get("Authorization")
		body = fmt.Sprintf("<p>%s %s %s %s %s", r.Header.Get("Cookie"), r.Header.Get("X-Api-Key"), echoed, user, password)
		w.Header().Set("X-Echo", "cookie-secret")
		w.Header().Set("Set-Cookie", "id=changed-secret; Path=/")
		_, _ = w.Write([]byte(body))
	}))
	defer srv.Close()
	given, err := LoadCookies(strings.NewReader("127.0.0.1\tFALSE\t/\tFALSE\t0\tid\tcookie-secret\n"))
	if err != nil {
		t.Fatal(err)
	}
	c := newClient(t, Config{User: "u", Password: "p-secret", Cookies: given, Jar: cookies.NewJar(cookies.Config{}),
		Header: http.Header{"X-Api-Key": {"key-secret"}}})
	resp := new(page.Response)
	if err := c.Get(t.Context(), Request{URL: srv.URL + "/", Trusted: true}, resp); err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"cookie-secret", "key-secret", "p-secret", basicAuth("u", "p-secret")} {
		if strings.Contains(string(resp.RequestRaw), secret) || !strings.Contains(body, secret) {
			t.Errorf("%s: request %q, body %q", secret, resp.RequestRaw, body)
		}
	}
	if got := string(resp.Raw[resp.HeadLen:]); got != body {
		t.Errorf("the body is %q, want %q", got, body)
	}
	head := string(resp.Raw[:resp.HeadLen])
	if strings.Contains(head, "changed-secret") || !strings.Contains(head, "X-Echo: cookie-secret\r\n") {
		t.Errorf("the head is %q", head)
	}
}

func TestNoRedirectNoCookies(t *testing.T) {
	var cookie string
	srv := httptest.NewServer(handler(func(w http.ResponseWriter, r *http.Request) {
		cookie += r.Header.Get("Cookie")
		w.Header().Set("Set-Cookie", "a=b")
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	}))
	defer srv.Close()
	c := newClient(t, Config{})
	for range 2 {
		if resp := get(t, c, srv.URL+"/"); resp.Status != 302 || resp.Header.Get("Location") != "/elsewhere" || cookie != "" {
			t.Errorf("status %d, header %v, cookies %q", resp.Status, resp.Header, cookie)
		}
	}
}

func TestCookies(t *testing.T) {
	const file = "# Netscape HTTP Cookie File\r\n\r\n" +
		"example.com\tFALSE\t/\tFALSE\t0\thost\t1\n" +
		".example.com\tTRUE\t/a\tFALSE\t0\tdeep\t2\r\n" +
		"#HttpOnly_example.com\tTRUE\t/\tTRUE\t2000000000.5\tsafe\t3=3\n" +
		"example.com\tTRUE\t/\tFALSE\t1000\told\t4\n" +
		"example.com\tFALSE\t/e\tFALSE\t-1\tempty\n"
	c, err := LoadCookies(strings.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1_900_000_000, 0)
	for url, want := range map[string]string{
		"http://example.com/":        "host=1",
		"http://example.com/a/b?c":   "deep=2; host=1",
		"http://example.com/ab":      "host=1",
		"https://example.com/e":      "empty=; host=1; safe=3=3",
		"http://www.example.com/a":   "deep=2",
		"http://badexample.com/a":    "",
		"http://example.com.evil/a":  "",
		"https://www.example.com:8/": "safe=3=3",
	} {
		tg, err := parseTarget(url)
		if got := cookieHeader(c, tg, now); got != want || err != nil {
			t.Errorf("%s: %q, want %q (%v)", url, got, want, err)
		}
	}
}

func TestCookieErrors(t *testing.T) {
	for line, want := range map[string]string{
		"example.com FALSE / FALSE 0 a b":             "1 tab-separated fields",
		"example.com\tmaybe\t/\tFALSE\t0\ta\tb":       `"maybe", want TRUE or FALSE`,
		"example.com\tTRUE\t/\tFALSE\tsoon\ta\tb":     `expiry "soon"`,
		"\tTRUE\t/\tFALSE\t0\ta\tb":                   "no domain",
		"example.com\tTRUE\tx\tFALSE\t0\ta\tb":        `path "x"`,
		"example.com\tTRUE\t/\tFALSE\t0\ta\tb; c":     "invalid characters",
		"example.com\tTRUE\t/\tFALSE\t0\t\tb":         "invalid characters",
		"example.com\t" + strings.Repeat("x", 70_000): "too long",
	} {
		_, err := LoadCookies(strings.NewReader("# one\n" + line + "\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", line, err, want)
		} else if want != "too long" && !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%.40q: %v names no line", line, err)
		}
	}
}

// Fields that would not be sent, or that would break the request, are rejected instead of ignored.
func TestFieldsThatAreNotForTheUser(t *testing.T) {
	for _, name := range []string{"Host", "host", "Connection", "Keep-Alive", "Proxy-Connection", "Transfer-Encoding",
		"TE", "Upgrade", "Trailer",
		"Content-Length", "Expect", "Proxy-Authorization", "HTTP2-Settings", ":path", "a b", "é", ""} {
		if _, err := New(Config{Header: http.Header{name: {"x"}}}); err == nil ||
			!strings.Contains(err.Error(), fmt.Sprintf("header field %q: ", name)) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := New(Config{Header: http.Header{"A": {"b\r\nHost: x"}}}); err == nil {
		t.Error("a value with a line end is taken")
	}
	if _, err := New(Config{Header: http.Header{"Host": {"x"}}}); !strings.Contains(err.Error(), "--resolve") {
		t.Errorf("%v does not say what to do", err)
	}
}

// A server may have sent a tag that must not be sent back.
func TestATagWithControlCharactersIsNotSentBack(t *testing.T) {
	url := answering(t, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false)
	c := newClient(t, Config{})
	for tag, want := range map[string]bool{`"a"`: true, "\"a\x01\"": false} {
		resp := new(page.Response)
		if err := c.Get(t.Context(), Request{URL: url, ETag: tag}, resp); err != nil {
			t.Fatal(err)
		}
		if sent := strings.Contains(string(resp.RequestRaw), "If-None-Match: "+tag+"\r\n"); sent != want {
			t.Errorf("the tag %q: %q", tag, resp.RequestRaw)
		}
	}
}
