package ui

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestSlots(t *testing.T) {
	t.Parallel()
	s := newSlots(5, 3)
	var evicted []string
	acquire := func(name, remote string) *slot {
		return s.acquire(remote, func() { evicted = append(evicted, name) })
	}
	expect := func(after string, want ...string) {
		t.Helper()
		if fmt.Sprint(evicted) != fmt.Sprint(want) {
			t.Errorf("after %s %v were evicted, not %v", after, evicted, want)
		}
	}
	acquire("a1", "127.0.0.1:1")
	a2 := acquire("a2", "127.0.0.1:2")
	acquire("a3", "127.0.0.1:3")
	expect("three of one client")
	acquire("a4", "[::ffff:127.0.0.1]:4")
	expect("a fourth", "a1")
	acquire("b1", "127.0.0.2:1")
	acquire("c1", "[2001:db8::1]:1")
	expect("others, until all slots are held", "a1")
	acquire("d1", "")
	expect("one too many", "a1", "a2")
	s.release(a2)
	if s.held != 5 {
		t.Errorf("%d slots are held after the release of an evicted one", s.held)
	}
	c2 := acquire("c2", "[2001:db8::2]:1")
	expect("two that hold as many, with the newcomer", "a1", "a2", "a3")
	s.release(c2)
	s.release(c2)
	acquire("e1", "127.0.0.9:1")
	expect("a release", "a1", "a2", "a3")
	if s.held != 5 || len(s.owners) != 5 {
		t.Errorf("%d slots are held by %d clients", s.held, len(s.owners))
	}
}

// A pipeNet is a network within a synctest bubble. Its connections do not buffer.
type pipeNet struct {
	conns chan net.Conn
	done  chan struct{}
	close func()
}

type pipeConn struct {
	net.Conn
	remote net.Addr
}

func (c pipeConn) RemoteAddr() net.Addr { return c.remote }

func (p *pipeNet) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}
func (p *pipeNet) Addr() net.Addr { return &net.TCPAddr{} }
func (p *pipeNet) Close() error   { p.close(); return nil }

// dial connects from an address and sends a text.
func (p *pipeNet) dial(t *testing.T, from, text string) net.Conn {
	t.Helper()
	here, there := net.Pipe()
	p.conns <- pipeConn{there, &net.TCPAddr{IP: net.ParseIP(from), Port: 1}}
	if text != "" {
		go func() { _, _ = io.WriteString(here, text) }() // it may be evicted
	}
	t.Cleanup(func() { here.Close() })
	return here
}

// get returns the answer to a request from an address, and its duration.
func (p *pipeNet) get(t *testing.T, from, path, fields string) (*http.Response, time.Duration) {
	t.Helper()
	begin := time.Now()
	c := p.dial(t, from, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n"+fields+"\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("%s from %s after %v: %v", path, from, time.Since(begin), err)
	}
	return resp, time.Since(begin)
}

// isOpen reports whether the server has kept a connection open.
func isOpen(c net.Conn) bool {
	_ = c.SetReadDeadline(time.Now().Add(time.Nanosecond))
	for {
		_, err := c.Read(make([]byte, 4096))
		if e, is := errors.AsType[net.Error](err); is && e.Timeout() {
			return true
		}
		if err != nil {
			return false
		}
	}
}

func countOpen(all []net.Conn) (n int) {
	var mu sync.Mutex
	var wait sync.WaitGroup
	for _, c := range all {
		wait.Go(func() {
			if isOpen(c) {
				mu.Lock()
				n++
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	return n
}

// inBubble serves a cluster's page in a bubble.
func inBubble(t *testing.T, token string, f func(t *testing.T, p *pipeNet)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{Crawls: []Crawl{{Name: "nodes", Cluster: nodesOf(1)}}, Token: token, Log: quiet()})
		done := make(chan struct{})
		p := &pipeNet{conns: make(chan net.Conn), done: done, close: sync.OnceFunc(func() { close(done) })}
		ended := make(chan error, 1)
		srv := s.httpServer()
		go func() { ended <- srv.Serve(p) }()
		defer func() {
			srv.Close()
			s.Close()
			<-ended
		}()
		f(t, p)
	})
}

const attacker = "127.42.9.9"

// Connections without a complete request keep nobody out, whatever their address, and are closed after a while.
func TestHalfOpenConnections(t *testing.T) {
	for name, text := range map[string]string{"silent": "", "half a header": "GET / HTTP/1.1\r\nHost: localhost\r\nX"} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, "", func(t *testing.T, p *pipeNet) {
				var all []net.Conn
				for range 800 {
					all = append(all, p.dial(t, attacker, text))
				}
				synctest.Wait()
				for _, from := range []string{"127.0.0.1", attacker} {
					if resp, took := p.get(t, from, "/api/v1/crawls", ""); resp.StatusCode != http.StatusOK || took > 0 {
						t.Errorf("from %s: %d after %v", from, resp.StatusCode, took)
					}
				}
				if n := countOpen(all); n == 0 || n > maxClientSilent {
					t.Errorf("%d of one client are open", n)
				}
				time.Sleep(headerTime)
				synctest.Wait()
				if n := countOpen(all); n > 0 {
					t.Errorf("%d are open after %v", n, headerTime)
				}
			})
		})
	}
}

// A slow request body keeps nobody out; without the token, its connection is closed at once.
func TestSlowBodies(t *testing.T) {
	for _, token := range []string{"", "Authorization: Bearer sesame\r\n"} {
		t.Run(fmt.Sprint("token=", token != ""), func(t *testing.T) {
			inBubble(t, "sesame", func(t *testing.T, p *pipeNet) {
				var all []net.Conn
				for range 200 {
					all = append(all, p.dial(t, attacker, "POST /api/v1/crawls/nodes/actions/pause HTTP/1.1\r\nHost: localhost\r\n"+
						"Content-Type: application/json\r\nContent-Length: 1000\r\n"+token+"\r\n{"))
				}
				synctest.Wait()
				for _, path := range []string{"/api/v1/crawls", "/api/v1/crawls/nodes/cluster"} {
					if resp, took := p.get(t, "127.0.0.1", path,
						"Authorization: Bearer sesame\r\n"); resp.StatusCode != http.StatusOK || took > 0 {
						t.Errorf("%s: %d after %v", path, resp.StatusCode, took)
					}
				}
				until := readTimeout
				if token == "" {
					until = refusalTimeout
				}
				time.Sleep(until + time.Second) // the server waits for clients that may still send
				synctest.Wait()
				if n := countOpen(all); n > 0 {
					t.Errorf("%d are open after %v", n, until)
				}
			})
		})
	}
}

// Requests over the limit are refused.
func TestTooManyRequests(t *testing.T) {
	inBubble(t, "", func(t *testing.T, p *pipeNet) {
		for range maxRequests {
			p.dial(t, attacker, "POST /crawls/nodes/act/pause HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n")
		}
		synctest.Wait()
		resp, took := p.get(t, "127.0.0.1", "/api/v1/crawls", "")
		if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" || took > 0 {
			t.Errorf("%d after %v, %v", resp.StatusCode, took, resp.Header)
		}
		time.Sleep(readTimeout + time.Second)
		if resp, _ := p.get(t, "127.0.0.1", "/api/v1/crawls", ""); resp.StatusCode != http.StatusOK {
			t.Errorf("afterwards: %d", resp.StatusCode)
		}
	})
}

// Event streams that are not read block neither requests nor other streams, and end.
func TestSilentReaders(t *testing.T) {
	inBubble(t, "", func(t *testing.T, p *pipeNet) {
		const request = "GET /crawls/nodes/cluster/events HTTP/1.1\r\nHost: localhost\r\n\r\n"
		var all []net.Conn
		for range 256 {
			all = append(all, p.dial(t, attacker, request))
		}
		synctest.Wait()
		if resp, took := p.get(t, "127.0.0.1", "/api/v1/crawls", ""); resp.StatusCode != http.StatusOK || took > 0 {
			t.Errorf("a request: %d after %v", resp.StatusCode, took)
		}
		resp, took := p.get(t, "127.0.0.1", "/crawls/nodes/cluster/events", "")
		if resp.StatusCode != http.StatusOK || took > 0 {
			t.Fatalf("a stream: %d after %v", resp.StatusCode, took)
		}
		events := bufio.NewScanner(resp.Body)
		for n := 0; n < 3; {
			if !events.Scan() {
				t.Fatalf("it ends after %d events: %v", n, events.Err())
			}
			if strings.HasPrefix(events.Text(), "data: ") {
				n++
			}
		}
		time.Sleep(eventTime + evictTime)
		synctest.Wait()
		if n := countOpen(all); n > 0 {
			t.Errorf("%d that were not read are open", n)
		}
	})
}
