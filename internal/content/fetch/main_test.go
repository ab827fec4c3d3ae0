package fetch

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"kumo/internal/base/page"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newClient returns a client that may dial loopback. The test closes it.
func newClient(t testing.TB, cfg Config) *Client {
	t.Helper()
	cfg.AllowPrivate = true
	return newGuarded(t, cfg)
}

func newGuarded(t testing.TB, cfg Config) *Client {
	t.Helper()
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// get fetches url and fails the test if there is no response.
func get(t testing.TB, c *Client, url string) *page.Response {
	t.Helper()
	resp := new(page.Response)
	if err := c.Get(t.Context(), Request{URL: url}, resp); err != nil {
		t.Fatal(err)
	}
	return resp
}

// failure fetches url and fails the test unless that returns an *Error with the wanted failure.
func failure(t testing.TB, c *Client, url string, want page.Failure) (*page.Response, error) {
	t.Helper()
	resp := new(page.Response)
	err := c.Get(t.Context(), Request{URL: url}, resp)
	var e *Error
	if !errors.As(err, &e) || e.Failure != want {
		t.Fatalf("Get(%s) = %v, want failure %q", url, err, want)
	}
	if e.URL != url {
		t.Errorf("the error speaks of %q, not of %q", e.URL, url)
	}
	return resp, err
}

// serve runs handle for each connection to a new loopback listener, with the connection's number from 0. It returns the
// listener's host:port. Connections are closed when handle returns, or at the end of the test.
func serve(t testing.TB, handle func(n int, conn net.Conn)) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for n := 0; ; n++ {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				stop := context.AfterFunc(ctx, func() { conn.Close() })
				defer stop()
				defer conn.Close()
				handle(n, conn)
			})
		}
	})
	t.Cleanup(func() { ln.Close(); cancel(); running.Wait() })
	return ln.Addr().String()
}

// answering sends the same bytes for every request on every connection. If last, it then closes the connection.
func answering(t testing.TB, answer string, last bool) string {
	return "http://" + serve(t, func(_ int, conn net.Conn) {
		r := bufio.NewReader(conn)
		for readHead(r) != "" {
			io.WriteString(conn, answer)
			if last {
				return
			}
		}
	}) + "/"
}

// readHead reads a request; "" at the end of the connection.
func readHead(r *bufio.Reader) string {
	var head strings.Builder
	for {
		line, err := r.ReadString('\n')
		head.WriteString(line)
		if err != nil {
			return ""
		}
		if line == "\r\n" {
			return head.String()
		}
	}
}

func handler(f func(w http.ResponseWriter, r *http.Request)) http.Handler { return http.HandlerFunc(f) }
