package fetch

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/page"
)

// piped puts a function in the network's place: it is every server.
func piped(t testing.TB, c *Client, server func(net.Conn)) {
	var running sync.WaitGroup
	t.Cleanup(func() { c.Close(); running.Wait() })
	c.reach = func(context.Context, target) (link, error) {
		near, far := net.Pipe()
		running.Go(func() {
			defer far.Close()
			server(far)
		})
		w := c.newWire(near)
		return link{w, w}, nil
	}
}

// Time limits on a server that never quite stops, in virtual time.
func TestSlowServers(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"
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
		})
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
