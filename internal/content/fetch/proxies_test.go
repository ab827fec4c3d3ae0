package fetch

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http/httpproxy"

	"kumo/internal/base/page"
)

// Each scheme has its own proxy from the environment, and hosts in NO_PROXY have none.
func TestProxiesOfTheEnvironment(t *testing.T) {
	site := httptest.NewTLSServer(handler(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "through it")
	}))
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
		if got := c.proxies.forHost(strings.TrimSuffix(strings.TrimSuffix(host, ":80"), ":8080"),
			host) != nil; got != proxied {
			t.Errorf("%s goes through a proxy: %v", host, got)
		}
	}
}

func TestProxiesThatAreNone(t *testing.T) {
	for _, env := range []httpproxy.Config{{HTTPProxy: "socks4://me:hidden@a:1"}, {HTTPSProxy: "://hidden"},
		{HTTPProxy: "http://"}} {
		err := CheckProxies(&env)
		if err == nil || !strings.Contains(err.Error(), "_PROXY in the environment") ||
			strings.Contains(err.Error(), "hidden") {
			t.Errorf("%+v: %v", env, err)
		}
	}
	if err := CheckProxies(&httpproxy.Config{NoProxy: "a"}); err != nil {
		t.Error(err)
	}
}

// A fleet is a set of proxies that can be stopped and started.
type fleet struct {
	servers []*http.Server
	addrs   []string
	asked   []atomic.Int32
}

func newFleet(t *testing.T, n int) *fleet {
	f := &fleet{servers: make([]*http.Server, n), addrs: make([]string, n), asked: make([]atomic.Int32, n)}
	for i := range n {
		f.addrs[i] = "127.0.0.1:0"
		f.start(t, i)
		t.Cleanup(func() { f.stop(i) })
	}
	return f
}

func (f *fleet) start(t *testing.T, i int) {
	t.Helper()
	l, err := net.Listen("tcp", f.addrs[i])
	if err != nil {
		t.Fatal(err)
	}
	f.addrs[i] = l.Addr().String()
	f.servers[i] = &http.Server{Handler: handler(func(w http.ResponseWriter, r *http.Request) {
		f.asked[i].Add(1)
		fmt.Fprint(w, i)
	})}
	go f.servers[i].Serve(l)
}

func (f *fleet) stop(i int) { f.servers[i].Close() }

func (f *fleet) rules(t *testing.T) (all []ProxyRule) {
	for _, addr := range f.addrs {
		all = append(all, ProxyRule{URL: mustURL(t, "http://"+addr)})
	}
	return all
}

// Hosts are distributed over the proxies, and each keeps its proxy. When that fails, they use others without an error,
// and return when it works again.
func TestProxiesInRotation(t *testing.T) {
	f, clock := newFleet(t, 3), newClock()
	var mu sync.Mutex
	var news []string
	c := newClient(t, Config{AllowPrivate: true, Proxies: f.rules(t), Now: clock.now,
		OnProxyChange: func(proxy string, err error) {
			mu.Lock()
			defer mu.Unlock()
			news = append(news, fmt.Sprint(proxy, " ", err != nil))
		}})
	round := func() (by []string) {
		for i := range 60 {
			by = append(by, string(get(t, c, fmt.Sprintf("http://h%d.test/", i)).Payload))
		}
		return by
	}
	first := round()
	for i := range 3 {
		if n := f.asked[i].Load(); n < 8 || n > 35 {
			t.Errorf("proxy %d was asked %d times of 60", i, n)
		}
	}
	if again := round(); !slices.Equal(first, again) {
		t.Errorf("hosts have other proxies the second time:\n%v\n%v", first, again)
	}
	f.stop(1)
	for i, by := range round() {
		if by == "1" || first[i] != "1" && by != first[i] {
			t.Errorf("host %d had proxy %s, and has %s", i, first[i], by)
		}
	}
	f.start(t, 1)
	if by := round(); slices.Contains(by, "1") {
		t.Errorf("a proxy that has just failed is asked: %v", by)
	}
	clock.advance(minBackoff)
	if by := round(); !slices.Equal(by, first) {
		t.Errorf("hosts are not back:\n%v\n%v", first, by)
	}
	name := "http://" + f.addrs[1]
	if want := []string{name + " true", name + " false"}; !slices.Equal(news, want) {
		t.Errorf("news %v, want %v", news, want)
	}
	for i := range 3 {
		f.stop(i)
	}
	for i := range 5 {
		failure(t, c, fmt.Sprintf("http://h%d.test/", i), page.Proxy) // the exchange ends
	}
}

// A proxy that fails repeatedly is excluded for longer, up to a limit.
func TestAProxyRests(t *testing.T) {
	var h health
	now := time.Unix(1_700_000_000, 0)
	for _, seconds := range []int{10, 20, 40, 80, 160, 320, 600, 600} {
		want := time.Duration(seconds) * time.Second
		h.markFailed(now)
		if h.markFailed(now.Add(time.Second)) {
			t.Error("a second failure at the same time is news")
		}
		if got := h.excludedUntil(now).Sub(now); got != want {
			t.Errorf("it rests for %v, want %v", got, want)
		}
		now = h.excludedUntil(now)
	}
	if !h.markWorking() || !h.excludedUntil(now).IsZero() || h.markWorking() {
		t.Error("it works, and that is no news")
	}
}

func TestProxiesByDomain(t *testing.T) {
	u := func(host string) *url.URL { return &url.URL{Scheme: "http", Host: host} }
	c := newClient(t, Config{Proxies: []ProxyRule{{URL: u("all:1")}, {Domain: "a.test", URL: u("a:1")},
		{Domain: "deep.a.test"}, {Domain: "test", URL: u("top:1")}}})
	for host, want := range map[string]string{"b.example": "all", "a.test": "a", "x.a.test": "a", "deep.a.test": "",
		"y.deep.a.test": "", "ba.test": "top", "test": "top"} {
		got := ""
		if p := c.proxies.forTarget(target{scheme: "http", host: host, hostname: host}); p != nil {
			got = p.hostname
		}
		if got != want {
			t.Errorf("%s goes through %q, want %q", host, got, want)
		}
	}
}

// A proxy that requires a missing password is also excluded.
func TestAProxyThatKnowsNobody(t *testing.T) {
	f := newFleet(t, 1)
	closed := httptest.NewServer(&webProxy{})
	defer closed.Close()
	c := newClient(t, Config{AllowPrivate: true, Proxies: append(f.rules(t), ProxyRule{URL: mustURL(t, closed.URL)})})
	lost := 0
	for i := range 20 {
		var resp page.Response
		if err := c.Get(t.Context(), Request{URL: fmt.Sprintf("http://h%d.test/", i)}, &resp); err != nil {
			lost++
		}
	}
	if lost > 1 {
		t.Errorf("%d of 20 failed", lost)
	}
}

func BenchmarkAProxyIsChosen(b *testing.B) {
	c := newClient(b, Config{Proxies: []ProxyRule{{URL: &url.URL{Scheme: "http", Host: "a:1"}},
		{URL: &url.URL{Scheme: "http", Host: "b:1"}}, {URL: &url.URL{Scheme: "http", Host: "c:1"}}}})
	t := target{scheme: "https", host: "www.example.com", hostname: "www.example.com"}
	b.ReportAllocs()
	for b.Loop() {
		c.proxies.forTarget(t)
	}
}
