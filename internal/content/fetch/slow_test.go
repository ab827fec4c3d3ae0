package fetch

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/base/page"
)

// piped replaces the network by a function, which acts as every server.
func piped(t testing.TB, c *Client, server func(net.Conn)) {
	var running sync.WaitGroup
	t.Cleanup(func() { c.Close(); running.Wait() })
	c.connectTo = func(context.Context, target) (link, error) {
		near, far := net.Pipe()
		running.Go(func() {
			defer far.Close()
			server(far)
		})
		w := c.newWire(near)
		w.connectDeadline = time.Now().Add(c.cfg.ConnectTimeout)
		return link{w, w}, nil
	}
}

// Time limits for servers that send slowly without end, in virtual time.
func TestSlowServers(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"
	const chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	trickle := func(text string, pause time.Duration) func(net.Conn) {
		return func(conn net.Conn) {
			readHead(bufio.NewReader(conn))
			for i := range text {
				if _, err := io.WriteString(conn, text[i:i+1]); err != nil {
					return
				}
				time.Sleep(pause) // virtual
			}
		}
	}
	tests := []struct {
		name   string
		server func(net.Conn)
		took   time.Duration
		answer bool
	}{
		{"head by bytes", trickle(head, 10*time.Second), 30 * time.Second, false},
		{"body by bytes", trickle(head+strings.Repeat("x", 1000), 500*time.Millisecond), 5 * time.Minute, true},
		{"silence", func(conn net.Conn) { io.Copy(io.Discard, conn) }, 30 * time.Second, false},
		{"does not even read", func(conn net.Conn) { time.Sleep(time.Hour) }, 30 * time.Second, false},
		{"interim answers for ever", trickle(strings.Repeat("HTTP/1.1 100 \r\n\r\n", 1000), time.Second), 30 * time.Second,
			false},
		{"a chunk's extension", trickle(chunked+"1\r\nz\r\n1;"+strings.Repeat("x", 4000), 500*time.Millisecond),
			5 * time.Minute, true},
		{"chunks with extensions", trickle(chunked+strings.Repeat("1;x=y\r\nz\r\n", 1000), 500*time.Millisecond),
			5 * time.Minute, true},
		{"trailers for ever", trickle(chunked+"1\r\nz\r\n0\r\n"+strings.Repeat("a: b\r\n", 1000), 500*time.Millisecond),
			5 * time.Minute, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newClient(t, Config{})
				piped(t, c, tt.server)
				resp := new(page.Response)
				err := c.Get(t.Context(), Request{URL: "http://slow.example/"}, resp)
				var e *Error
				if tt.answer && (err != nil || resp.Truncated != page.Time || len(resp.Payload) == 0) {
					t.Errorf("%v, truncated %q, %d bytes", err, resp.Truncated, len(resp.Payload))
				}
				if !tt.answer && (!errors.As(err, &e) || e.Failure != page.Timeout) {
					t.Errorf("got %v, want a timeout", err)
				}
				if resp.Total != tt.took {
					t.Errorf("took %v, want %v", resp.Total, tt.took)
				}
			})
			synctest.Test(t, func(t *testing.T) {
				endsWithTheCrawl(t, newClient(t, Config{}), "http://slow.example/",
					tt.server)
			})
		})
	}
}

// endsWithTheCrawl checks that an exchange ends at once when its context does.
func endsWithTheCrawl(t *testing.T, c *Client, url string, server func(net.Conn)) {
	piped(t, c, server)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(7*time.Second, cancel)
	resp := new(page.Response)
	if err := c.Get(ctx, Request{URL: url}, resp); !errors.Is(err, context.Canceled) || resp.Total != 7*time.Second {
		t.Errorf("after %v: %v", resp.Total, err)
	}
}

// Handshakes without end: of TLS, and of proxies.
func TestSlowHandshakes(t *testing.T) {
	drip := func(text string) func(net.Conn) {
		return func(conn net.Conn) {
			go io.Copy(io.Discard, conn)
			for _, b := range []byte(text) {
				if _, err := conn.Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(time.Second) // virtual
			}
		}
	}
	silence := func(conn net.Conn) { io.Copy(io.Discard, conn) }
	record := "\x16\x03\x03\x40\x00" + strings.Repeat("\x02", 1<<14)
	for name, server := range map[string]func(net.Conn){"silence": silence, "a record by bytes": drip(record),
		"records": drip(strings.Repeat("\x16\x03\x03\x00\x01\x02", 999))} {
		t.Run("TLS, "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, resp := newClient(t, Config{}), new(page.Response)
				piped(t, c, server)
				var e *Error
				if err := c.Get(t.Context(), Request{URL: "https://slow.example/"}, resp); !errors.As(err, &e) ||
					e.Failure != page.Connect {
					t.Errorf("got %v", err)
				}
				if resp.Total != 10*time.Second {
					t.Errorf("took %v", resp.Total)
				}
			})
			synctest.Test(t, func(t *testing.T) { endsWithTheCrawl(t, newClient(t, Config{}), "https://slow.example/", server) })
		})
	}
	tg, _ := parseTarget("https://far.example/")
	for name, server := range map[string]func(net.Conn){"silence": silence,
		"a head by bytes": drip("HTTP/1.1 200 OK\r\nA: " + strings.Repeat("x", 999)),
		"SOCKS by bytes":  drip("\x05\x00\x05\x00\x00\x03\xff" + strings.Repeat("x", 300))} {
		t.Run("proxy, "+name, func(t *testing.T) {
			for _, end := range []time.Duration{10 * time.Second, 7 * time.Second} {
				synctest.Test(t, func(t *testing.T) {
					c, begin := newClient(t, Config{}), time.Now()
					piped(t, c, server)
					ctx, cancel := context.WithTimeout(t.Context(), end)
					defer cancel()
					l, _ := c.connectTo(ctx, tg)
					defer l.conn.Close()
					p, err := newProxy(&url.URL{Scheme: "http", Host: "proxy.example"})
					if err != nil {
						t.Fatal(err)
					}
					if strings.HasPrefix(name, "SOCKS") {
						p.scheme, err = "socks5", p.connectSOCKS(ctx, l.wire, tg)
					} else {
						err = p.tunnel(ctx, l.conn, tg.address(), "kumo", c.cfg.MaxHeader)
					}
					if err == nil || time.Since(begin) != end {
						t.Errorf("after %v: %v", time.Since(begin), err)
					}
				})
			}
		})
	}
}

// A name server that never answers delays no exchange beyond the connect timeout, and none whose crawl has ended.
func TestSilentNameServer(t *testing.T) {
	silent, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	failure(t, newClient(t, Config{DNSServer: silent.LocalAddr().String(), ConnectTimeout: 200 * time.Millisecond}),
		"http://a.example/", page.DNS)
	c := newClient(t, Config{DNSServer: silent.LocalAddr().String(), ConnectTimeout: 2 * time.Second})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		silent.ReadFrom(make([]byte, 1)) // the query has arrived
		cancel()
	}()
	begin := time.Now()
	if err := c.Get(ctx, Request{URL: "http://b.example/"}, new(page.Response)); !errors.Is(err, context.Canceled) {
		t.Errorf("after %v: %v", time.Since(begin), err)
	}
}

func TestBandwidth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, Config{Bandwidth: 100_000, MaxBody: 10 << 20})
		piped(t, c, func(conn net.Conn) {
			readHead(bufio.NewReader(conn))
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"+strings.Repeat("x", 1_000_000))
		})
		resp := get(t, c, "http://big.example/")
		if len(resp.Payload) != 1_000_000 || resp.Total < 9*time.Second || resp.Total > 11*time.Second {
			t.Errorf("%d bytes in %v, want 10 s", len(resp.Payload), resp.Total)
		}
	})
}
