package fetch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/base/page"
)

// closing is a connection that counts open connections.
type closing struct {
	net.Conn
	open *atomic.Int32
}

func (c closing) Close() error                { c.open.Add(-1); return nil }
func (c closing) SetDeadline(time.Time) error { return nil }

func testConn(s site, open *atomic.Int32) *conn {
	open.Add(1)
	return &conn{Conn: closing{open: open}, site: s, wire: &wire{}}
}

// With many concurrent callers, the limit of open connections is never exceeded, no caller waits forever, and no
// connection is left in the end.
func TestPoolKeepsToTheNumber(t *testing.T) {
	seed := rand.Uint64()
	for _, perHost := range []int{0, 1, 3} {
		t.Run(fmt.Sprintf("%d, seed %d", perHost, seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPool(perHost, 5)
				var all atomic.Int32
				var using [4]atomic.Int32
				var wg sync.WaitGroup
				for g := range 20 {
					dice := rand.New(rand.NewPCG(seed, uint64(g)))
					wg.Go(func() {
						for range 200 {
							n := dice.IntN(len(using))
							s := site{host: fmt.Sprint(n)}
							ctx, cancel := context.WithTimeout(t.Context(), time.Duration(dice.IntN(2000))*time.Millisecond)
							c, err := p.acquire(ctx, s, time.Now().Add(time.Second))
							cancel()
							if err != nil {
								continue
							}
							if c == nil {
								c = testConn(s, &all)
							}
							if u := int(using[n].Add(1)); perHost > 0 && u > perHost {
								t.Errorf("%d in use at a host", u)
							}
							time.Sleep(time.Duration(dice.IntN(30)) * time.Millisecond) // virtual
							using[n].Add(-1)
							if dice.IntN(3) == 0 {
								c.Close()
								p.discard(s)
							} else {
								p.release(c)
							}
						}
					})
				}
				wg.Wait()
				p.mu.Lock()
				if n := int(all.Load()); n != p.idle.n || n > 5 {
					t.Errorf("%d are open, %d idle; at most 5 may be", n, p.idle.n)
				}
				p.mu.Unlock()
				time.Sleep(idleTimeout + time.Second) // virtual
				synctest.Wait()
				p.mu.Lock()
				if n := all.Load(); n != 0 || len(p.hosts) != 0 || p.idle.oldest != nil {
					t.Errorf("%d are open after their time, %d hosts known", n, len(p.hosts))
				}
				p.mu.Unlock()
				p.release(testConnTaken(t, p, &all))
				p.close()
				if n := all.Load(); n != 0 {
					t.Errorf("%d are open after the end", n)
				}
			})
		})
	}
}

func testConnTaken(t *testing.T, p *pool, open *atomic.Int32) *conn {
	s := site{host: "a"}
	if c, err := p.acquire(t.Context(), s, time.Now()); c != nil || err != nil {
		t.Fatal(c, err)
	}
	return testConn(s, open)
}

// Data that a server sends on an idle connection must not be taken for the next response, and a closed connection must
// not be reused.
func TestIdleConnections(t *testing.T) {
	const answer = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n"
	for name, unasked := range map[string]string{"closed": "", "stray answer": answer + "!"} {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int32
			speak, said := make(chan bool), make(chan bool)
			addr := serve(t, func(n int, conn net.Conn) {
				r := bufio.NewReader(conn)
				for readHead(r) != "" {
					requests.Add(1)
					fmt.Fprint(conn, answer, n)
					if n == 0 {
						<-speak
						io.WriteString(conn, unasked)
						if unasked == "" {
							conn.(*net.TCPConn).CloseWrite()
						}
						said <- true
					}
				}
			})
			c, resp := newClient(t, Config{}), new(page.Response)
			for i, want := range []string{"0", "1", "1"} {
				if err := c.Get(t.Context(), Request{URL: "http://" + addr + "/"}, resp); err != nil ||
					string(resp.Payload) != want {
					t.Errorf("%d: %v, %q, want %q", i, err, resp.Payload, want)
				}
				if i == 0 {
					speak <- true
					<-said
				}
			}
			if n := requests.Load(); n != 3 {
				t.Errorf("%d requests, want 3", n)
			}
		})
	}
}

// A site may stop to support HTTP/2.
func TestBackToHTTP1(t *testing.T) {
	srv := httptest.NewUnstartedServer(handler(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w,
			r.Proto)
	}))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	c := newClient(t, Config{InsecureTLS: true, PerHost: 1})
	for i, want := range []string{"HTTP/2.0", "HTTP/2.0", "HTTP/1.1", "HTTP/1.1", "HTTP/2.0"} {
		switch i {
		case 2:
			srv.TLS.NextProtos = []string{"http/1.1"}
			c.conns.close()
			c.conns = newPool(1, 10)
		case 4:
			srv.TLS.NextProtos = []string{"h2"}
			c.conns.close()
			c.conns = newPool(1, 10)
		}
		resp := get(t, c, srv.URL+"/")
		if string(resp.Payload) != want || resp.Proto != want {
			t.Errorf("%d: %s, %q, want %s", i, resp.Proto, resp.Payload, want)
		}
	}
}

// Concurrent first requests to one host over TLS.
func TestManyAtOnceOverTLS(t *testing.T) {
	for _, second := range []bool{false, true} {
		srv := httptest.NewUnstartedServer(handler(func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w,
				r.RequestURI)
		}))
		srv.EnableHTTP2 = second
		srv.StartTLS()
		c := newClient(t, Config{InsecureTLS: true, PerHost: 2})
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				resp, path := new(page.Response), fmt.Sprintf("/%d", i)
				if err := c.Get(t.Context(), Request{URL: srv.URL + path}, resp); err != nil || string(resp.Payload) != path {
					t.Errorf("%s: %q, %v", path, resp.Payload, err)
				}
			})
		}
		wg.Wait()
		c.Close()
		srv.Close()
	}
}

// An exchange on an existing connection takes few allocations, whatever the size of the page.
func TestExchangeAllocates(t *testing.T) {
	answer := append([]byte("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nServer: x\r\nDate: today\r\nETag: "+
		"\"x\"\r\nContent-Length: 30000\r\n\r\n"),
		make([]byte, 30_000)...)
	addr := serve(t, func(_ int, conn net.Conn) {
		request := make([]byte, 4096)
		for {
			if n, err := conn.Read(request); n == 0 || err != nil {
				return
			}
			conn.Write(answer)
		}
	})
	c, resp := newClient(t, Config{}), new(page.Response)
	var failed error
	n := testing.AllocsPerRun(100, func() {
		failed = errors.Join(failed, c.Get(t.Context(), Request{URL: "http://" + addr + "/"}, resp))
	})
	if failed != nil || n > 9 {
		t.Errorf("%v allocations, want at most 9 (%v)", n, failed)
	}
}
