package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"kumo/internal/base/page"
)

func TestSocketsAreBounded(t *testing.T) {
	const most = 3
	srv := httptest.NewServer(handler(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "x") }))
	defer srv.Close()
	_, port, _ := net.SplitHostPort(srv.Listener.Addr().String())
	c := newClient(t, Config{Sockets: most, Resolve: []string{"*:*:127.0.0.1"}})
	var all sync.WaitGroup
	for w := range 8 {
		all.Go(func() {
			for i := range 20 {
				resp := new(page.Response)
				if err := c.Get(t.Context(), Request{URL: fmt.Sprintf("http://h%d.test:%s/", (w*7+i)%11, port)}, resp); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if free := freeSockets(c.sockets); c.conns.idle.n+free != most {
		t.Errorf("%d connections are idle, and %d sockets are free, of %d", c.conns.idle.n, free, most)
	}
	c.closeIdle()
	if free := freeSockets(c.sockets); free != most {
		t.Errorf("%d sockets are free in the end, want %d", free, most)
	}
}

// freeSockets returns the number of free sockets. There must be no concurrent callers.
func freeSockets(s *sockets) (n int) {
	for ; s.free.TryAcquire(1); n++ {
		defer s.free.Release(1)
	}
	return n
}

func TestSocketsAreNotLost(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	s := newSockets(4, func() bool { return false })
	var held, all = atomic.Int64{}, sync.WaitGroup{}
	for w := range 16 {
		all.Go(func() {
			dice := rand.New(rand.NewPCG(seed, uint64(w)))
			for range 300 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(dice.IntN(300))*time.Microsecond)
				if s.acquire(ctx) == nil {
					if held.Add(1) > 4 {
						t.Error("more are held than there are")
					}
					held.Add(-1)
					s.release()
				}
				cancel()
			}
		})
	}
	all.Wait()
	if free := freeSockets(s); free != 4 || s.hasWaiters() {
		t.Errorf("%d are free, %d wait", free, s.waiting.Load())
	}
}

func TestThisMachinesLimitsAreNoHostsFault(t *testing.T) {
	at4, at6 := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")
	system := func(e syscall.Errno) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("socket", e)}
	}
	for _, c := range []struct {
		err    error
		at     netip.Addr
		scarce bool
	}{
		{system(syscall.EMFILE), at4, true}, {system(syscall.ENFILE), at6, true}, {system(syscall.ENOBUFS), at4, true},
		{system(syscall.ENOMEM), at4, true},
		// this machine has no IPv6
		{system(syscall.EADDRNOTAVAIL), at4, true}, {system(syscall.EADDRNOTAVAIL), at6, false},
		{system(syscall.ECONNREFUSED), at4, false}, {system(syscall.EHOSTUNREACH), at4, false},
		{system(syscall.ENETUNREACH), at4, false},
		{&net.DNSError{Err: "dial udp 127.0.0.53:53: socket: " + syscall.EMFILE.Error()}, at4, true},
		{notFound("a.test"), at4, false},
	} {
		if got := isExhaustedAt(c.at, c.err); got != c.scarce {
			t.Errorf("%v at %v: scarce %v", c.err, c.at, got)
		}
	}
	if e := dialError("resolve", system(syscall.EMFILE)); e.Failure != page.Local || !e.IsLocal() {
		t.Errorf("%+v", e)
	}
}

func TestALookupWaitsForASocket(t *testing.T) {
	c := newClient(t, Config{})
	tries := 0
	c.resolver.lookup = func(context.Context, string) ([]netip.Addr, time.Duration, error) {
		if tries++; tries < 3 {
			return nil, 0, os.NewSyscallError("socket", syscall.EMFILE)
		}
		return []netip.Addr{netip.IPv6Loopback()}, time.Minute, nil
	}
	if addrs, err := c.resolver.resolve(t.Context(), "a.test"); err != nil || len(addrs) != 1 {
		t.Errorf("%v, %v", addrs, err)
	}
	if times, last := c.Exhaustion(); times != 2 || last == "" {
		t.Errorf("counted %d, %q", times, last)
	}
	if c.LastFound().IsZero() {
		t.Error("it is not known that a name was found")
	}
}

func TestFailedNamesAreForgottenAfterAnOutage(t *testing.T) {
	c := newClient(t, Config{})
	there := false
	c.resolver.lookup = func(_ context.Context, name string) ([]netip.Addr, time.Duration, error) {
		if !there {
			return nil, 0, notFound(name)
		}
		return []netip.Addr{netip.IPv6Loopback()}, time.Minute, nil
	}
	if _, err := c.resolver.resolve(t.Context(), "a.test"); err == nil {
		t.Fatal("found")
	}
	there = true
	if err := c.CheckName(t.Context(), "a.test"); err != nil {
		t.Error(err)
	}
	c.ForgetFailures()
	if _, err := c.resolver.resolve(t.Context(), "a.test"); err != nil {
		t.Error(err)
	}
}

func TestIdleConnectionsAreBoundedByDomainAndAddress(t *testing.T) {
	p := newPool(1, 10_000)
	defer p.close()
	var open atomic.Int32
	put := func(domain, addr string, n int) {
		s := site{host: fmt.Sprintf("h%d.%s", n, domain)}
		if c, err := p.acquire(t.Context(), s, time.Now().Add(time.Minute)); c != nil || err != nil {
			t.Fatal(c, err)
		}
		open.Add(1)
		p.release(&conn{Conn: closing{open: &open}, site: s, domain: domain,
			wire: &wire{addr: netip.AddrPortFrom(netip.MustParseAddr(addr), 80)}})
	}
	for n := range 5000 {
		put("made-up.example", fmt.Sprintf("192.0.2.%d", n%250), n)
	}
	if n := open.Load(); n != maxIdlePer {
		t.Errorf("%d connections to subdomains of one are idle, want %d", n, maxIdlePer)
	}
	for n := range 5000 {
		put(fmt.Sprintf("shop%d.example", n), "198.51.100.1", n)
	}
	if n := open.Load(); n != 2*maxIdlePer {
		t.Errorf("with those to one server %d are idle, want %d", n, 2*maxIdlePer)
	}
	p.close()
	if n := open.Load(); n != 0 || len(p.domains.lists) != 0 || len(p.addrs.lists) != 0 || len(p.hosts) != 0 {
		t.Errorf("%d are open in the end, of %d domains and %d servers", n, len(p.domains.lists), len(p.addrs.lists))
	}
}

func TestCheck(t *testing.T) {
	plain := httptest.NewServer(handler(func(http.ResponseWriter, *http.Request) { t.Error("something is asked for") }))
	defer plain.Close()
	tls := httptest.NewTLSServer(handler(func(http.ResponseWriter, *http.Request) { t.Error("something is asked for") }))
	tls.Config.ErrorLog = discard()
	defer tls.Close()
	hangsUp := "http://" + serve(t, func(_ int, conn net.Conn) {}) + "/"
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	refuses := "http://" + l.Addr().String() + "/"
	strict, lax := newClient(t, Config{}), newClient(t, Config{InsecureTLS: true})
	for _, c := range []struct {
		client *Client
		url    string
		want   page.Failure
	}{
		{strict, plain.URL + "/", page.None}, {lax, tls.URL + "/", page.None}, {strict, tls.URL + "/", page.TLS},
		{strict, hangsUp, page.Reset}, {strict, refuses, page.Refused},
	} {
		err := c.client.CheckHost(t.Context(), c.url)
		var e *Error
		if errors.As(err, &e) {
			if e.Failure != c.want || e.IsLocal() {
				t.Errorf("%s: %v", c.url, err)
			}
		} else if c.want != page.None || err != nil {
			t.Errorf("%s: %v, want %q", c.url, err, c.want)
		}
	}
	proxied := newClient(t, Config{Proxy: mustURL(t, refuses)})
	var e *Error
	if err := proxied.CheckHost(t.Context(), plain.URL+"/"); !errors.As(err, &e) || !e.IsLocal() {
		t.Errorf("by a proxy that is down: %v", err)
	}
}
