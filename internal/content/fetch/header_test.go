package fetch

import (
	"crypto/tls"
	"crypto/x509"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
)

// A request may have fields that replace all others, over HTTP/1 and HTTP/2. Secrets in them are not recorded.
func TestARequestsOwnFields(t *testing.T) {
	for _, second := range []bool{false, true} {
		asked := make(chan *http.Request, 1)
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r }))
		s.EnableHTTP2 = second
		s.StartTLS()
		defer s.Close()
		roots := x509.NewCertPool()
		roots.AddCert(s.Certificate())
		c, err := New(Config{UserAgent: "agent", Header: http.Header{"X-All": {"1"}, "Cookie": {"given=1"},
			"Authorization": {"secret1"}}, AllowPrivate: true, TLS: &tls.Config{RootCAs: roots}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for trusted, want := range map[bool][]string{false: {"Accept", "Accept-Encoding", "User-Agent", "X-All"},
			true: {"Accept", "Accept-Encoding", "Authorization", "Cookie", "User-Agent", "X-All"}} {
			own := c.Header(trusted)
			if names := slices.Sorted(maps.Keys(own)); !slices.Equal(names, want) {
				t.Errorf("fields to a host that is trusted (%v): %v, want %v", trusted, names, want)
			}
			own.Del("X-All")
			own.Set("X-Token", "secret2")
			own.Set("If-None-Match", `"mine"`)
			own["cookie"] = []string{"own=secret3"}
			var resp page.Response
			req := Request{URL: s.URL + "/", Trusted: trusted, Header: own, ETag: `"old"`}
			if err := c.Get(t.Context(), req, &resp); err != nil {
				t.Fatal(err)
			}
			r := <-asked
			if r.ProtoMajor != map[bool]int{false: 1, true: 2}[second] || r.Header["X-All"] != nil ||
				r.Header.Get("X-Token") != "secret2" ||
				r.UserAgent() != "agent" || (r.Header.Get("Authorization") == "secret1") != trusted ||
				!slices.Equal(r.Header["If-None-Match"], []string{`"mine"`}) ||
				!strings.Contains(r.Header.Get("Cookie"), "own=secret3") {
				t.Errorf("%s, trusted %v: %v", r.Proto, trusted, r.Header)
			}
			if text := string(resp.RequestRaw); strings.Contains(text, "secret") ||
				!strings.Contains(text, "X-Token: REDACTED") {
				t.Errorf("written down:\n%s", text)
			}
		}
	}
}

func TestCookiesFromAProgram(t *testing.T) {
	var none *Cookies
	c, err := none.With("www.a.test", &http.Cookie{Name: "host", Value: "1"},
		&http.Cookie{Name: "domain", Value: "2", Domain: ".a.test"},
		&http.Cookie{Name: "path", Value: "3", Path: "/docs", Secure: true})
	if err != nil {
		t.Fatal(err)
	}
	c, err = c.Load(strings.NewReader("www.a.test\tFALSE\t/\tFALSE\t0\tfile\t4\n"))
	if err != nil {
		t.Fatal(err)
	}
	for url, want := range map[string]string{
		"http://www.a.test/":       "host=1; domain=2; file=4",
		"http://b.a.test/":         "domain=2",
		"https://www.a.test/docs/": "path=3; host=1; domain=2; file=4",
		"http://b.test/":           "",
	} {
		u, err := weburl.Parse(url)
		if err != nil {
			t.Fatal(err)
		}
		to, err := parseTarget(u.String())
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(slices.Collect(c.pairs(to, time.Now())), "; "); got != want {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}
}
