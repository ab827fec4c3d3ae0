package fetch

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"kumo/internal/base/page"
)

func TestIsPrivate(t *testing.T) {
	private := []string{
		"0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "127.0.0.1", "127.255.0.3", "169.254.169.254", "172.16.0.1",
		"172.31.255.255",
		"192.0.0.8", "192.0.2.1", "192.168.1.1", "198.18.0.1", "198.51.100.7", "203.0.113.9", "224.0.0.251",
		"255.255.255.255",
		"::", "::1", "::7f00:1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "64:ff9b::10.1.2.3",
		"64:ff9b:1::1",
		"2002:7f00:1::", "2002:c0a8:101::1", "2001::1", "2001:db8::1", "3fff::1", "100::1", "fc00::1", "fd12::1", "fe80::1",
		"fe80::1%eth0",
		"::1%lo", "fec0::1", "ff02::1",
		// IPv4 in each form of transition: mapped, compatible, translated, NAT64 of the well-known prefix and of local use,
		// 6to4, Teredo, ISATAP
		"::ffff:169.254.169.254", "::169.254.169.254", "::8.8.8.8", "::ffff:0:127.0.0.1", "::ffff:0:10.0.0.1",
		"::ffff:0:8.8.8.8",
		"64:ff9b::169.254.169.254", "64:ff9b::127.0.0.1", "64:ff9b:1::127.0.0.1", "64:ff9b:1:7f00:0:100::",
		"64:ff9b:1::8.8.8.8",
		"64:ff9b:0:0:1::808:808", "2002:a9fe:a9fe::1", "2002:a00:1:1::5efe:808:808", "2001:0:808:808::1",
		"2001:0:4136:e378:8000:63bf:80ff:fffe",
		"2600::5efe:127.0.0.1", "2600::200:5efe:10.0.0.1", "2600:1:2:3:300:5efe:192.168.1.1", "2002:808:808::5efe:10.0.0.1",
		"fe80::5efe:8.8.8.8", "::2", "1::1", "4000::1", "8000::1", "e000::1", "100:0:0:1::1", "5f00::1",
	}
	public := []string{"1.1.1.1", "9.255.255.255", "100.63.255.255", "100.128.0.0", "172.15.0.1", "172.32.0.1",
		"192.169.0.1",
		"223.255.255.255", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::1", "2001:4860:4860::8888", "2606:4700::1111",
		"2600::5efe:8.8.8.8", "2600::200:5efe:1.1.1.1", "2600::5eff:127.0.0.1", "2002:808:808::5efe:8.8.8.8"}
	for _, s := range private {
		if !isPrivate(netip.MustParseAddr(s)) {
			t.Errorf("%s counts as public", s)
		}
	}
	for _, s := range public {
		if isPrivate(netip.MustParseAddr(s)) {
			t.Errorf("%s counts as private", s)
		}
	}
	if !isPrivate(netip.Addr{}) {
		t.Error("no address counts as public")
	}
}

func TestGuard(t *testing.T) {
	srv := httptest.NewServer(handler(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "inside") }))
	defer srv.Close()
	_, port, _ := net.SplitHostPort(srv.Listener.Addr().String())
	local, name, given := "http://127.0.0.1:"+port+"/", "http://localhost:"+port+"/", "http://given.example:"+port+"/"

	c := newGuarded(t, Config{Resolve: []string{"given.example:" + port + ":127.0.0.1"}})
	for _, url := range []string{local, name, "http://[::ffff:127.0.0.1]:" + port + "/", "http://[::1]:" + port + "/"} {
		_, err := failure(t, c, url, page.Private)
		if !errors.Is(err, ErrPrivate) || !strings.Contains(err.Error(), "--allow-private") {
			t.Errorf("%s: %v", url, err)
		}
	}
	get(t, c, given)
	c.Allow("127.0.0.1:" + port)
	get(t, c, local)
	failure(t, c, name, page.Private)
	c.Allow("localhost:" + port)
	get(t, c, name)
	failure(t, c, "http://127.0.0.1:1/", page.Private)
	get(t, newClient(t, Config{}), local)

	c = newGuarded(t, Config{OnlyPublic: true})
	c.Allow("127.0.0.1:" + port)
	failure(t, c, local, page.Private)
}

// A name first has a public address and then, when that has expired, a private one.
func TestRebinding(t *testing.T) {
	clock := newClock()
	server := newDNS(t, "evil.example. 5 A 192.0.2.1") // treated as public here
	c := newGuarded(t, Config{DNSServer: server.addr, Now: clock.now})
	first, err := c.Resolve(t.Context(), "evil.example", "80")
	if err != nil || first != netip.MustParseAddr("192.0.2.1") {
		t.Fatalf("%v, %v", first, err)
	}
	addr := serve(t, func(int, net.Conn) { t.Error("the private server was reached") })
	_, port, _ := net.SplitHostPort(addr)
	server.set("evil.example. 5 A 127.0.0.1", "evil.example. 5 AAAA ::1")
	clock.advance(6 * time.Second)
	failure(t, c, "http://evil.example:"+port+"/", page.Private)
}

func TestRefused(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	failure(t, newClient(t, Config{}), "http://"+ln.Addr().String()+"/", page.Refused)
	failure(t, newClient(t, Config{}), "http://127.0.0.1:99999/", page.Connect)
}

// If one family's address is dead, the other family's is used.
func TestFallback(t *testing.T) {
	addr := answering(t, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false)
	port := strings.Trim(addr[strings.LastIndex(addr, ":"):], ":/")
	for _, addrs := range []string{"[::1],127.0.0.1", "127.0.0.2,127.0.0.1", "[::1],127.0.0.2,127.0.0.1"} {
		c := newGuarded(t, Config{Resolve: []string{"two.example:*:" + addrs}})
		if resp := get(t, c, "http://two.example:"+port+"/"); resp.Addr.String() != "127.0.0.1:"+port {
			t.Errorf("%s: reached %v", addrs, resp.Addr)
		}
	}
}

func TestOverrides(t *testing.T) {
	o, err := parseOverrides([]string{"a.example:80:10.0.0.1", "A.example:*:10.0.0.2,[fd00::1]", "*:80:10.0.0.3",
		"*:*:fd00::2"})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ host, port, want string }{
		{"a.example", "80", "10.0.0.1"}, {"a.example", "81", "10.0.0.2"}, {"b.example", "80", "10.0.0.3"},
		{"b.example", "81", "fd00::2"},
	} {
		if got := o.lookup(tt.host, tt.port); len(got) == 0 || got[0].String() != tt.want {
			t.Errorf("%s:%s: %v, want %s", tt.host, tt.port, got, tt.want)
		}
	}
	for _, bad := range []string{"", "a", "a:80", "a:80:", "a:x:1.1.1.1", ":80:1.1.1.1", "a:80:localhost",
		"a:80:1.1.1.1,"} {
		if _, err := New(Config{Resolve: []string{bad}}); err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
