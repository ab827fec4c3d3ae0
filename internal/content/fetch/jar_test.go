package fetch

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"kumo/internal/base/page"
	"kumo/internal/content/cookies"
)

func cookieHeader(c *Cookies, t target, now time.Time) string {
	return strings.Join(slices.Collect(c.pairs(t, now)), "; ")
}

// Over HTTP/1 and HTTP/2, a cookie that a server sets is sent with the next request. The recorded request and response
// contain no secrets.
func TestJar(t *testing.T) {
	for _, secure := range []bool{false, true} {
		var got string
		srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got = r.Header.Get("Cookie")
			w.Header().Add("Set-Cookie", "a=secret1; Path=/")
			w.Header().Add("Set-Cookie", "b=secret2; Path=/")
			_, _ = w.Write([]byte("secret in the body stays"))
		}))
		srv.EnableHTTP2 = true
		if srv.Start(); secure {
			srv.Close()
			srv = httptest.NewUnstartedServer(srv.Config.Handler)
			srv.EnableHTTP2 = true
			srv.StartTLS()
		}
		defer srv.Close()
		for _, private := range []bool{false, true} {
			jar := cookies.NewJar(cookies.Config{})
			c, err := New(Config{AllowPrivate: true, InsecureTLS: true, Jar: jar,
				Header: http.Header{"Cookie": {"given=secret0"}}})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			var resp page.Response
			for range 2 {
				if err := c.Get(t.Context(), Request{URL: srv.URL + "/", Private: private, Trusted: true}, &resp); err != nil {
					t.Fatal(err)
				}
			}
			if want := "HTTP/1.1"; secure && resp.Proto != "HTTP/2.0" || !secure && resp.Proto != want {
				t.Errorf("spoken: %s", resp.Proto)
			}
			if got != "given=secret0; a=secret1; b=secret2" {
				t.Errorf("sent %q", got)
			}
			want, head := "Cookie: REDACTED; a=secret1; b=secret2\r\n", string(resp.Raw[:resp.HeadLen])
			if private {
				want = "Cookie: REDACTED; a=REDACTED; b=REDACTED\r\n"
			}
			if !strings.Contains(string(resp.RequestRaw), want) {
				t.Errorf("written: %q", resp.RequestRaw)
			}
			if strings.Contains(head, "secret") == private || !strings.Contains(head, "=") {
				t.Errorf("private %v, written: %q", private, head)
			}
			if resp.Header["Set-Cookie"][1] != "b=secret2; Path=/" || !strings.HasSuffix(string(resp.Raw),
				"secret in the body stays") {
				t.Errorf("read: %q", resp.Raw)
			}
			if err := c.Get(t.Context(), Request{URL: srv.URL + "/", NoCookies: true}, &resp); err != nil || got != "" {
				t.Errorf("sent %q: %v", got, err)
			}
		}
	}
}

// A configured cookie that the server changes is sent with the new value, which is also a secret.
func TestGivenCookieIsRenewed(t *testing.T) {
	var got string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Get("Cookie")
		w.Header().Add("Set-Cookie", "session=new")
	}))
	defer srv.Close()
	given, err := LoadCookies(strings.NewReader("127.0.0.1\tFALSE\t/\tFALSE\t0\tsession\told\n"))
	if err != nil {
		t.Fatal(err)
	}
	jar := cookies.NewJar(cookies.Config{})
	c, err := New(Config{AllowPrivate: true, Jar: jar, Cookies: given})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var resp page.Response
	for _, want := range []string{"session=old", "session=new"} {
		if err := c.Get(t.Context(), Request{URL: srv.URL + "/", Trusted: true}, &resp); err != nil || got != want {
			t.Errorf("sent %q, want %q: %v", got, want, err)
		}
		if all := string(resp.RequestRaw) + string(resp.Raw); strings.Contains(all, "old") || strings.Contains(all, "new") {
			t.Errorf("written: %q", all)
		}
	}
	if len(jar.AppendAll(nil)) > 0 {
		t.Error("the secret is written down")
	}
}

// A form is posted over HTTP/1, and none of its data is recorded.
func TestForm(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(r.Method + " " + r.Proto + " " + r.PostFormValue("password")))
	}))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	c, err := New(Config{AllowPrivate: true, InsecureTLS: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var resp page.Response
	for _, req := range []Request{{}, {Form: []byte(url.Values{"password": {"a b"}}.Encode())}} {
		req.URL = srv.URL + "/"
		if err := c.Get(t.Context(), req, &resp); err != nil {
			t.Fatal(err)
		}
		want := "GET HTTP/2.0 "
		if req.Form != nil {
			want = "POST HTTP/1.1 a b"
		}
		if string(resp.Payload) != want || strings.Contains(string(resp.RequestRaw), "a+b") {
			t.Errorf("%s, of %q", resp.Payload, resp.RequestRaw)
		}
	}
}

// TestFormWithoutConnection tests that posting a form to an unreachable server is an error.
func TestFormWithoutConnection(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	c := newClient(t, Config{AllowPrivate: true})
	var resp page.Response
	resp.Buffers.Request = []byte("an earlier request")
	req := Request{URL: "http://" + listener.Addr().String(), Form: []byte("password=x"), Private: true}
	err = c.Get(t.Context(), req, &resp)
	if err == nil || len(resp.RequestRaw) > 0 {
		t.Errorf("error %v, request %q", err, resp.RequestRaw)
	}
}

// A cookie is like a configured one of its name if both may be sent to the same host.
func TestCookiesLikeConfiguredOnes(t *testing.T) {
	given, err := LoadCookies(strings.NewReader(
		"w.a.example\tFALSE\t/\tFALSE\t0\tone\tv\n.b.example\tTRUE\t/\tFALSE\t0\tall\tv\n"))
	if err != nil {
		t.Fatal(err)
	}
	for c, want := range map[cookies.Cookie]bool{
		{Name: "one", Domain: "w.a.example", HostOnly: true}: true,
		{Name: "one", Domain: "a.example"}:                   true,
		{Name: "two", Domain: "a.example"}:                   false,
		{Name: "one", Domain: "v.a.example", HostOnly: true}: false,
		{Name: "all", Domain: "v.b.example", HostOnly: true}: true,
		{Name: "all", Domain: "c.example"}:                   false,
	} {
		if got := given.HaveLike(&c); got != want {
			t.Errorf("%s of %s, host only: %v: like a configured one: %v, want %v", c.Name, c.Domain, c.HostOnly, got, want)
		}
	}
	if (*Cookies)(nil).HaveLike(&cookies.Cookie{Name: "one", Domain: "a.example"}) {
		t.Error("there is a cookie without cookies")
	}
}
