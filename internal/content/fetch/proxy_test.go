package fetch

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"kumo/internal/base/page"
)

func mustURL(t *testing.T, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// relay copies both ways until either side ends.
func relay(a, b net.Conn, fromA io.Reader) {
	var wg sync.WaitGroup
	wg.Go(func() { io.Copy(b, fromA); b.Close() })
	wg.Go(func() { io.Copy(a, b); a.Close() })
	wg.Wait()
}

// A webProxy responds to requests in absolute form itself and tunnels every CONNECT to one server.
type webProxy struct {
	server string
	mu     sync.Mutex
	seen   []string // request lines and the clients' credentials
}

func (p *webProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.seen = append(p.seen, r.Method+" "+r.RequestURI+" "+r.Header.Get("Proxy-Authorization"))
	p.mu.Unlock()
	switch {
	case r.Header.Get("Proxy-Authorization") == "":
		w.WriteHeader(http.StatusProxyAuthRequired)
	case r.Method != http.MethodConnect:
		io.WriteString(w, "by proxy")
	default:
		client, buf, _ := http.NewResponseController(w).Hijack()
		server, err := net.Dial("tcp", p.server)
		if err != nil {
			client.Close()
			return
		}
		io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n")
		relay(client, server, buf)
	}
}

func TestWebProxy(t *testing.T) {
	site := httptest.NewUnstartedServer(handler(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w,
			r.Proto+r.RequestURI)
	}))
	site.EnableHTTP2 = true
	site.StartTLS()
	defer site.Close()
	for _, secure := range []bool{false, true} {
		p := &webProxy{server: site.Listener.Addr().String()}
		srv := httptest.NewUnstartedServer(p)
		srv.Config.ErrorLog = discard()
		if secure {
			srv.StartTLS()
		} else {
			srv.Start()
		}
		defer srv.Close()
		u := mustURL(t, srv.URL)
		u.User = url.UserPassword("u", "pw")
		names := newDNS(t).addr
		c := newGuarded(t, Config{Proxy: u, InsecureTLS: true, DNSServer: names})
		auth := basicAuth("u", "pw")

		resp := get(t, c, "http://plain.example/a|b?c")
		if string(resp.Payload) != "by proxy" || resp.TLS != "" || resp.Addr.String() != srv.Listener.Addr().String() {
			t.Errorf("payload %q, TLS %q, address %v", resp.Payload, resp.TLS, resp.Addr)
		}
		raw := string(resp.RequestRaw)
		if !strings.HasPrefix(raw, "GET http://plain.example/a|b?c HTTP/1.1\r\nHost: plain.example\r\n") ||
			strings.Contains(raw, auth) {
			t.Errorf("request %q", raw)
		}

		resp = get(t, c, "https://secret.example/x")
		if string(resp.Payload) != "HTTP/2.0/x" || resp.TLS == "" {
			t.Errorf("payload %q, TLS %q", resp.Payload, resp.TLS)
		}
		if want := fmt.Sprintf("[GET http://plain.example/a|b?c %s CONNECT secret.example:443 %s]", auth,
			auth); fmt.Sprint(p.seen) != want {
			t.Errorf("the proxy saw %v, want %s", p.seen, want)
		}
		if a, err := c.Resolve(t.Context(), "secret.example", "443"); a.IsValid() || err != nil {
			t.Errorf("the proxy's target has address %v, %v", a, err)
		}

		anonymous := newGuarded(t, Config{Proxy: mustURL(t, srv.URL), InsecureTLS: true, DNSServer: names})
		failure(t, anonymous, "http://plain.example/", page.Proxy)
		failure(t, anonymous, "https://secret.example/", page.Proxy)
	}
}

// socksServer is a SOCKS5 server with user and password (RFC 1928, 1929). It connects every name to one server and
// records the requested names.
func socksServer(t *testing.T, server string, asked chan<- string) string {
	return serve(t, func(_ int, conn net.Conn) {
		r := bufio.NewReader(conn)
		read := func(n int) []byte {
			b := make([]byte, n)
			io.ReadFull(r, b)
			return b
		}
		read(int(read(2)[1]))
		conn.Write([]byte{5, 2})
		user := read(int(read(2)[1]))
		password := read(int(read(1)[0]))
		conn.Write([]byte{1, 0})
		kind := read(4)[3]
		name := string(read(int(read(1)[0])))
		asked <- fmt.Sprintf("%s:%s type %d %s:%d", user, password, kind, name, binary.BigEndian.Uint16(read(2)))
		if name == "blocked.example" {
			conn.Write([]byte{5, 2, 0, 1, 0, 0, 0, 0, 0, 0})
			return
		}
		conn.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
		if out, err := net.Dial("tcp", server); err == nil {
			relay(conn, out, r)
		}
	})
}

func TestSOCKS(t *testing.T) {
	site := httptest.NewServer(handler(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w,
			r.Host+r.RequestURI)
	}))
	defer site.Close()
	asked := make(chan string, 2)
	addr := socksServer(t, site.Listener.Addr().String(), asked)
	c := newGuarded(t, Config{Proxy: mustURL(t, "socks5://u:pw@"+addr), DNSServer: newDNS(t).addr})
	resp := get(t, c, "http://hidden.example:8080/x")
	if got, want := <-asked, "u:pw type 3 hidden.example:8080"; got != want {
		t.Errorf("the proxy was asked for %q, want %q", got, want)
	}
	if string(resp.Payload) != "hidden.example:8080/x" || !strings.HasPrefix(string(resp.RequestRaw),
		"GET /x HTTP/1.1\r\n") {
		t.Errorf("payload %q, request %q", resp.Payload, resp.RequestRaw)
	}
	failure(t, c, "http://blocked.example/", page.Proxy)
	<-asked
}

func TestBadProxy(t *testing.T) {
	for _, s := range []string{"ftp://a:1", "http://", "socks4://a:1"} {
		if _, err := New(Config{Proxy: mustURL(t, s)}); err == nil {
			t.Errorf("%s was taken", s)
		}
	}
	_, err := New(Config{Proxy: mustURL(t, "gopher://u:hidden@a/")})
	if err == nil || strings.Contains(err.Error(), "hidden") {
		t.Errorf("got %v", err)
	}
	dead := newGuarded(t, Config{Proxy: mustURL(t, "http://127.0.0.1:1"), DNSServer: newDNS(t).addr})
	failure(t, dead, "http://a.example/", page.Proxy)
	failure(t, dead, "https://a.example/", page.Proxy)
	if err := dead.Get(t.Context(), Request{URL: "http://a.example/"}, new(page.Response)); err == nil ||
		strings.Contains(err.Error(), "dial :") {
		t.Errorf("an address is empty in: %v", err)
	}
}
