package fetch

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"golang.org/x/net/http/httpproxy"
)

// Each scheme has the environment's proxy of its own, and what NO_PROXY names has none.
func TestProxiesOfTheEnvironment(t *testing.T) {
	site := httptest.NewTLSServer(handler(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "through it") }))
	defer site.Close()
	plain := httptest.NewServer(handler(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "by itself") }))
	defer plain.Close()
	forHTTP, forHTTPS := &webProxy{server: site.Listener.Addr().String()}, &webProxy{server: site.Listener.Addr().String()}
	one, other := httptest.NewServer(forHTTP), httptest.NewServer(forHTTPS)
	defer one.Close()
	defer other.Close()
	c := newClient(t, Config{InsecureTLS: true, AllowPrivate: true,
		Environment: &httpproxy.Config{HTTPProxy: "me:secret@" + one.Listener.Addr().String(),
			HTTPSProxy: "http://me:secret@" + other.Listener.Addr().String(), NoProxy: "direct.test"}})
	for url, want := range map[string]string{"http://a.test/": "by proxy", "https://a.test/": "through it",
		plain.URL + "/": "by itself"} {
		if resp := get(t, c, url); string(resp.Payload) != want {
			t.Errorf("%s: %q", url, resp.Payload)
		}
	}
	if got := strings.Join(forHTTP.seen, "; "); got != "GET http://a.test/ Basic bWU6c2VjcmV0" {
		t.Errorf("the proxy for http was asked for %q", got)
	}
	if got := strings.Join(forHTTPS.seen, "; "); got != "CONNECT a.test:443 Basic bWU6c2VjcmV0" {
		t.Errorf("the proxy for https was asked for %q", got)
	}
	for host, proxied := range map[string]bool{"a.test": true, "direct.test": false, "x.direct.test": false,
		"127.0.0.1:80": false, "localhost": false, "a.test:8080": true} {
		if got := c.proxies.ofHost(host) != nil; got != proxied {
			t.Errorf("%s goes through a proxy: %v", host, got)
		}
	}
}

func TestProxiesThatAreNone(t *testing.T) {
	for _, env := range []httpproxy.Config{{HTTPProxy: "socks4://me:hidden@a:1"}, {HTTPSProxy: "://hidden"}, {HTTPProxy: "http://"}} {
		err := CheckProxies(&env)
		if err == nil || !strings.Contains(err.Error(), "_PROXY in the environment") || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%+v: %v", env, err)
		}
	}
	if err := CheckProxies(&httpproxy.Config{NoProxy: "a"}); err != nil {
		t.Error(err)
	}
}
