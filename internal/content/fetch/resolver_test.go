package fetch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"

	"kumo/internal/base/page"
)

type clock struct {
	mu sync.Mutex
	t  time.Time
}

func newClock() *clock { return &clock{t: time.Unix(1_700_000_000, 0)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// A dnsServer is a recursive name server with a fixed zone.
type dnsServer struct {
	addr      string
	questions atomic.Int32
	truncate  atomic.Bool // over UDP
	shallow   atomic.Bool // return only the first link of an alias chain
	fail      atomic.Int32

	mu   sync.Mutex
	zone []dns.RR
}

func newDNS(t *testing.T, zone ...string) *dnsServer {
	t.Helper()
	s := new(dnsServer)
	s.set(zone...)
	pc, ln := listenBoth(t)
	s.addr = ln.Addr().String()
	for _, srv := range []*dns.Server{{PacketConn: pc, Handler: s}, {Listener: ln, Handler: s}} {
		started, done := make(chan struct{}), make(chan struct{})
		srv.NotifyStartedFunc = func() { close(started) }
		go func() { defer close(done); srv.ActivateAndServe() }()
		<-started
		t.Cleanup(func() { srv.Shutdown(); <-done })
	}
	return s
}

// listenBoth opens the same port for UDP and TCP: a port may be free for one and taken for the other.
func listenBoth(t *testing.T) (net.PacketConn, net.Listener) {
	t.Helper()
	for range 20 {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if pc, err := net.ListenPacket("udp", ln.Addr().String()); err == nil {
			return pc, ln
		}
		ln.Close()
	}
	t.Fatal("no port is free for both UDP and TCP")
	return nil, nil
}

func (s *dnsServer) set(zone ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.zone = nil
	for _, line := range zone {
		rr, err := dns.NewRR(line)
		if err != nil {
			panic(err)
		}
		s.zone = append(s.zone, rr)
	}
}

func (s *dnsServer) ServeDNS(w dns.ResponseWriter, q *dns.Msg) {
	s.questions.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	m := new(dns.Msg).SetReply(q)
	name, known := q.Question[0].Name, false
	next := name
	for links := 0; next != "" && links < 10; links++ {
		name, next = next, ""
		for _, rr := range s.zone {
			if rr.Header().Name != name {
				continue
			}
			known = true
			if c, ok := rr.(*dns.CNAME); ok && !s.shallow.Load() {
				next = c.Target
			}
			if t := rr.Header().Rrtype; t == q.Question[0].Qtype || t == dns.TypeCNAME {
				m.Answer = append(m.Answer, rr)
			}
		}
	}
	switch udp := w.LocalAddr().Network() == "udp"; {
	case s.fail.Add(-1) >= 0:
		m.SetRcode(q, dns.RcodeServerFailure)
	case !known:
		m.SetRcode(q, dns.RcodeNameError)
	case udp && s.truncate.Load():
		m.Truncated, m.Answer = true, nil
	}
	w.WriteMsg(m)
}

func TestNameServer(t *testing.T) {
	zone := []string{
		"plain.example. 60 A 192.0.2.1", "plain.example. 30 AAAA 2001:db8::1", "six.example. 60 AAAA 2001:db8::6",
		"www.example. 600 CNAME cdn.example.", "cdn.example. 20 CNAME edge.example.", "edge.example. 300 A 192.0.2.3",
		"loop.example. 60 CNAME pool.example.", "pool.example. 60 CNAME loop.example.", "empty.example. 60 TXT x",
		"zero.example. 0 A 192.0.2.4", "year.example. 31536000 A 192.0.2.5",
	}
	tests := []struct {
		name, want string
		ttl        time.Duration
	}{
		{"plain.example", "[192.0.2.1 2001:db8::1]", 30 * time.Second},
		{"PLAIN.example.", "[192.0.2.1 2001:db8::1]", 30 * time.Second},
		{"six.example", "[2001:db8::6]", time.Minute},
		{"www.example", "[192.0.2.3]", 20 * time.Second},
		{"zero.example", "[192.0.2.4]", time.Second},
		{"year.example", "[192.0.2.5]", time.Hour},
		{"localhost", "[127.0.0.1 ::1]", time.Hour},
		{"empty.example", "", 0},
		{"none.example", "", 0},
		{"bad..example", "", 0},
	}
	for _, mode := range []string{"udp", "tcp", "shallow", "shaky"} {
		server := newDNS(t, zone...)
		server.truncate.Store(mode == "tcp")
		server.shallow.Store(mode == "shallow")
		ns := &nameServer{addr: server.addr, timeout: 5 * time.Second}
		for _, tt := range tests {
			if mode == "shaky" {
				server.fail.Store(2)
			}
			addrs, ttl, err := ns.lookup(t.Context(), strings.ToLower(tt.name))
			if tt.want == "" {
				if !isNotFound(err) {
					t.Errorf("%s: %s: %v, %v", mode, tt.name, addrs, err)
				}
			} else if fmt.Sprint(addrs) != tt.want || ttl != tt.ttl || err != nil {
				t.Errorf("%s: %s: %v for %v, %v; want %s for %v", mode, tt.name, addrs, ttl, err, tt.want, tt.ttl)
			}
		}
		if addrs, _, err := ns.lookup(t.Context(), "loop.example"); err == nil {
			t.Errorf("%s: a loop leads to %v", mode, addrs)
		}
	}
}

func TestCache(t *testing.T) {
	clock, server := newClock(), newDNS(t, "a.example. 60 A 192.0.2.1")
	c := newGuarded(t, Config{DNSServer: server.addr, Now: clock.now})
	ask := func(name, want string, questions int32) {
		t.Helper()
		a, err := c.Resolve(t.Context(), name, "80")
		if got := server.questions.Swap(0); got != questions {
			t.Errorf("%s: %d questions, want %d", name, got, questions)
		}
		var e *Error
		if want == "" && (!errors.As(err, &e) || e.Failure != page.DNS) || want != "" && (err != nil || a.String() != want) {
			t.Errorf("%s: %v, %v; want %q", name, a, err, want)
		}
	}
	ask("a.example", "192.0.2.1", 2)
	ask("A.example", "192.0.2.1", 0)
	ask("none.example", "", 2)
	ask("none.example", "", 0)
	server.set("a.example. 60 A 192.0.2.2", "none.example. 60 A 192.0.2.3")
	clock.advance(29 * time.Second)
	ask("a.example", "192.0.2.1", 0)
	ask("none.example", "", 0)
	clock.advance(time.Second)
	ask("none.example", "192.0.2.3", 2)
	clock.advance(30 * time.Second)
	ask("a.example", "192.0.2.2", 2)
	ask("192.0.2.9", "192.0.2.9", 0)
}

// Concurrent requests for a name share one lookup, which continues if one of them is canceled.
func TestSharedLookup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lookups atomic.Int32
		r := newResolver(t.Context(), Config{}.withDefaults())
		r.lookup = func(ctx context.Context, name string) ([]netip.Addr, time.Duration, error) {
			lookups.Add(1)
			time.Sleep(5 * time.Second) // virtual
			return []netip.Addr{netip.IPv6Loopback()}, time.Minute, ctx.Err()
		}
		hasty, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := r.resolve(hasty, "a.example"); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the hasty one got %v", err)
			}
		})
		for range 20 {
			wg.Go(func() {
				if addrs, err := r.resolve(t.Context(), "a.example"); err != nil || len(addrs) != 1 {
					t.Errorf("%v, %v", addrs, err)
				}
			})
		}
		wg.Wait()
		if n := lookups.Load(); n != 1 {
			t.Errorf("%d lookups", n)
		}
	})
}

// Lookups per second are limited, and cached names do not wait. The wait is not part of a lookup's timeout, and can be
// canceled.
func TestLookupsHaveAPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newResolver(t.Context(), Config{LookupRate: 0.05}.withDefaults())
		r.lookup = func(ctx context.Context, _ string) ([]netip.Addr, time.Duration, error) {
			return []netip.Addr{netip.IPv6Loopback()}, time.Hour, ctx.Err()
		}
		begin := time.Now()
		var wg sync.WaitGroup
		for _, name := range []string{"a.example", "b.example", "c.example"} {
			wg.Go(func() {
				if _, err := r.resolve(t.Context(), name); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if took := time.Since(begin); took < 40*time.Second || took > 41*time.Second {
			t.Errorf("three names at one in 20 s took %v", took)
		}
		if _, err := r.resolve(t.Context(), "b.example"); err != nil || time.Since(begin) > 41*time.Second {
			t.Errorf("a known one: after %v, %v", time.Since(begin), err)
		}
		hasty, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := r.resolve(hasty, "d.example"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the hasty one got %v", err)
		}
	})
}

// A lookup without a response ends at a time limit, and its failure is not cached for long.
func TestLookupTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, Config{})
		c.resolver.lookup = func(ctx context.Context, name string) ([]netip.Addr, time.Duration, error) {
			<-ctx.Done()
			return nil, 0, ctx.Err()
		}
		for range 2 {
			begin := time.Now()
			failure(t, c, "http://mute.example/", page.DNS)
			if took := time.Since(begin); took != 10*time.Second {
				t.Errorf("gave up after %v", took)
			}
			time.Sleep(failureTTL) // virtual
		}
	})
}

func TestCacheIsBounded(t *testing.T) {
	r := newResolver(t.Context(), Config{}.withDefaults())
	r.max = 50
	r.lookup = func(context.Context, string) ([]netip.Addr, time.Duration, error) {
		return []netip.Addr{netip.IPv6Loopback()}, time.Minute, nil
	}
	for i := range 500 {
		if _, err := r.resolve(t.Context(), fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(r.names); n > r.max {
		t.Errorf("%d names kept, want at most %d", n, r.max)
	}
}

func TestSystemResolver(t *testing.T) {
	c := newGuarded(t, Config{})
	a, err := c.Resolve(t.Context(), "localhost", "80")
	if err != nil || !a.IsLoopback() {
		t.Errorf("localhost is %v, %v", a, err)
	}
}

func TestRouteTellsWhatIsLookedUp(t *testing.T) {
	proxy, err := url.Parse("http://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(Config{Resolve: []string{"given.test:80:127.0.0.1"},
		Proxies: []ProxyRule{{Domain: "proxied.test", URL: proxy}}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for origin, want := range map[string][2]bool{
		"http://name.test":      {true, false},
		"http://given.test":     {false, false},
		"https://given.test":    {true, false},
		"http://192.0.2.1":      {false, false},
		"http://[2001:db8::1]":  {false, false},
		"http://localhost:81":   {false, false},
		"http://a.proxied.test": {false, true},
	} {
		if looksUp, proxied := c.Route(origin); looksUp != want[0] || proxied != want[1] {
			t.Errorf("%s: looked up %v, proxied %v, want %v", origin, looksUp, proxied, want)
		}
	}
}
