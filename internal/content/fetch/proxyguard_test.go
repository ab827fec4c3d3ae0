package fetch

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kumo/internal/base/page"
)

// The proxy receives no request for a private target, by address or by name, unless the user allows it.
func TestProxyIsAskedForNothingPrivate(t *testing.T) {
	names := newDNS(t, "private.example. 60 A 10.0.0.1", "mixed.example. 60 A 8.8.8.8", "mixed.example. 60 AAAA fd00::1",
		"nat.example. 60 AAAA 64:ff9b::a9fe:a9fe", "alias.example. 60 CNAME private.example.", "public.example. 60 A 8.8.8.8",
		"named.example. 60 A 127.0.0.1").addr
	var asked atomic.Int32
	srv := httptest.NewServer(handler(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		io.WriteString(w,
			"by proxy")
	}))
	defer srv.Close()
	cfg := Config{Proxy: mustURL(t, srv.URL), DNSServer: names}
	private := []string{"127.0.0.1", "127.0.0.1:8080", "127.0.0.1.", "127.1", "2130706433", "0x7f.1", "0x7f000001",
		"017700000001", "0", "10.0.0.1",
		"169.254.169.254", "[::1]", "[::ffff:7f00:1]", "[::ffff:0:7f00:1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]",
		"[fe80::1%25eth0]", "[::1%25lo]",
		"localhost", "LOCALHOST", "localhost.", "app.localhost", "printer", "printer.local", "nas.home.arpa",
		"metadata.google.internal",
		"private.example", "PRIVATE.example.", "mixed.example", "nat.example", "alias.example", "1.2.3.4.5", "0xffffffffff"}
	for _, host := range private {
		for _, scheme := range []string{"http://", "https://"} {
			c := newGuarded(t, cfg)
			if _, err := failure(t, c, scheme+host+"/", page.Private); !errors.Is(err, ErrPrivate) ||
				!strings.Contains(err.Error(), "--allow-private") {
				t.Errorf("%s: %v", host, err)
			}
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("the proxy was asked %d times", n)
	}
	c := newGuarded(t, cfg)
	c.Allow("private.example")
	c.Allow("127.0.0.1:8080")
	for _, url := range []string{"http://private.example/", "http://127.0.0.1:8080/", "http://public.example/",
		"http://unknown.example/", "http://8.8.8.8/",
		"http://[2606:4700::1111]/"} {
		if resp := get(t, c, url); string(resp.Payload) != "by proxy" {
			t.Errorf("%s: %q", url, resp.Payload)
		}
	}
	named := cfg
	named.Resolve = []string{"named.example:80:127.0.0.1"}
	get(t, newGuarded(t, named), "http://named.example/")
	get(t, newClient(t, cfg), "http://10.0.0.1/")
}

// With socks5 names are looked up here, with socks5h they are not.
func TestSOCKSIsAskedForNothingPrivate(t *testing.T) {
	site := httptest.NewServer(handler(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hi") }))
	defer site.Close()
	asked := make(chan string, 10)
	proxy := "://u:pw@" + socksServer(t, site.Listener.Addr().String(), asked)
	names := newDNS(t, "private.example. 60 A 10.0.0.1").addr
	near := newGuarded(t, Config{Proxy: mustURL(t, "socks5"+proxy), DNSServer: names})
	far := newGuarded(t, Config{Proxy: mustURL(t, "socks5h"+proxy), DNSServer: names})
	failure(t, near, "http://private.example/", page.Private)
	failure(t, near, "http://127.0.0.1/", page.Private)
	failure(t, far, "http://0x7f.1/", page.Private)
	failure(t, far, "http://localhost/", page.Private)
	get(t, far, "http://private.example/")
	if n := len(asked); n != 1 {
		t.Errorf("the proxy was asked %d times, want once", n)
	}
}

// If names cannot be looked up here, the proxy is used, and the failing lookup costs little.
func TestProxyWithoutNames(t *testing.T) {
	silent, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	srv := httptest.NewServer(handler(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection",
			"close")
	}))
	defer srv.Close()
	c := newGuarded(t, Config{Proxy: mustURL(t, srv.URL), DNSServer: silent.LocalAddr().String(),
		ConnectTimeout: 200 * time.Millisecond})
	for range 3 {
		if resp := get(t, c, "http://dark.example/"); resp.Status != 200 {
			t.Errorf("status %d", resp.Status)
		}
	}
}
