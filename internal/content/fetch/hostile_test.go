package fetch

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kumo/internal/base/page"
)

// together buffers writes while it is held, so that several TLS records are sent in one segment.
type together struct {
	net.Conn
	held bool
	b    []byte
}

func (g *together) Write(p []byte) (int, error) {
	if g.held {
		g.b = append(g.b, p...)
		return len(p), nil
	}
	return g.Conn.Write(p)
}

func (g *together) release() {
	g.held = false
	g.Conn.Write(g.b)
	g.b = nil
}

// Data that TLS has read after a response, in a separate record, must not be taken for the next response.
func TestSurplusRecordIsNoAnswer(t *testing.T) {
	cert := testCertificate(t)
	for _, surplus := range []string{"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison", "\n"} {
		addr := serve(t, func(n int, raw net.Conn) {
			g := &together{Conn: raw}
			c := tls.Server(g, &tls.Config{Certificates: []tls.Certificate{cert}})
			r := bufio.NewReader(c)
			for head := readHead(r); head != ""; head = readHead(r) {
				path := strings.Fields(head)[1]
				g.held = true
				fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(path), path)
				if n == 0 {
					io.WriteString(c, surplus)
				}
				g.release()
			}
		})
		c := newClient(t, Config{InsecureTLS: true, PerHost: 1})
		for _, path := range []string{"/one", "/two", "/three"} {
			if resp := get(t, c, "https://"+addr+path); string(resp.Payload) != path {
				t.Errorf("surplus %q: %s answers %q", surplus, path, resp.Payload)
			}
		}
	}
}

// A server that selects HTTP/2, sends GOAWAY, and selects HTTP/1 for the next connection gets its request over HTTP/1.
func TestHTTP2Taken(t *testing.T) {
	cert := testCertificate(t)
	addr := serve(t, func(n int, raw net.Conn) {
		protocol := "http/1.1"
		if n == 0 {
			protocol = "h2"
		}
		c := tls.Server(raw, &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{protocol}})
		if c.Handshake() != nil {
			return
		}
		r := bufio.NewReader(c)
		if n == 0 {
			c.Write([]byte{0, 0, 0, 4, 0, 0, 0, 0, 0}) // settings
			r.Discard(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
			for frame := make([]byte, 9); frame[3] != 1; { // until the request's HEADERS frame arrives
				if _, err := io.ReadFull(r, frame); err != nil {
					return
				}
				r.Discard(int(frame[1])<<8 | int(frame[2]))
			}
			c.Write([]byte{0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}) // GOAWAY: no request was processed
			io.Copy(io.Discard, r)
			return
		}
		for readHead(r) != "" {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
		}
	})
	c := newClient(t, Config{InsecureTLS: true, PerHost: 1})
	for range 2 {
		if resp := get(t, c, "https://"+addr+"/"); string(resp.Payload) != "hi" || resp.Proto != "HTTP/1.1" {
			t.Errorf("%s, %q", resp.Proto, resp.Payload)
		}
	}
}

// A head of continuation lines must not take time quadratic in its length.
func TestFoldedHead(t *testing.T) {
	head := []byte("HTTP/1.1 200 OK\r\nA: b\n" + strings.Repeat(" \n", 64<<10) + "\n")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := parseHead(head, http.Header{}); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 8<<20 {
		t.Errorf("%d bytes for a head of %d", n, len(head))
	}
}

// Many fields of an interim response must not remain in the reused map.
func TestInterimFieldsAreNotKept(t *testing.T) {
	var interim strings.Builder
	interim.WriteString("HTTP/1.1 103 Early Hints\r\n")
	for i := range maxFields {
		fmt.Fprintf(&interim, "f%x:\n", i)
	}
	const final = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
	c, resp := newClient(t, Config{}), &page.Response{}
	resp.Buffers.Header = http.Header{}
	mine := resp.Buffers.Header
	if err := c.Get(t.Context(), Request{URL: answering(t, interim.String()+"\n"+final, false)}, resp); err != nil ||
		string(resp.Raw) != final {
		t.Fatalf("%v, %q", err, resp.Raw)
	}
	mine["X"] = nil
	if _, same := resp.Buffers.Header["X"]; same {
		t.Error("the map that had hundreds of fields is used again")
	}
}

func TestEndlessLimits(t *testing.T) {
	body := strings.Repeat("x", 1<<20)
	url := answering(t, fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body), false)
	for _, most := range []int64{math.MaxInt64, 1 << 62} {
		for _, c := range []*Client{newClient(t, Config{MaxBody: most}), newClient(t, Config{MaxHeader: most})} {
			resp := new(page.Response)
			if err := c.Get(t.Context(), Request{URL: url, MaxBody: most}, resp); err != nil || len(resp.Payload) != len(body) {
				t.Errorf("limit %d: %d bytes, %v", most, len(resp.Payload), err)
			}
		}
	}
}

// The quotation of a bad line near the end of the data must not exceed the data.
func TestEndlessTrailer(t *testing.T) {
	raw := []byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + strings.Repeat("x", 70))
	f := framer{maxHead: 60, maxBody: 100, fields: http.Header{}}
	if _, err := f.advance(raw[:len(raw):len(raw)]); err == nil {
		t.Error("a trailer longer than the limit is taken")
	}
}

// TestEndlessHeads has servers send an endless head, in every possible way: it is read up to MaxHeader, and the error
// names the reason.
func TestEndlessHeads(t *testing.T) {
	const most = 64 << 10
	for name, c := range map[string]struct{ begin, again string }{
		"interim answers":         {"", "HTTP/1.1 100 Continue\r\n\r\n"},
		"interim answers, fields": {"", "HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n"},
		"fields":                  {"HTTP/1.1 200 OK\r\n", "X-A: b\r\n"},
		"a field":                 {"HTTP/1.1 200 OK\r\nX-A: ", "aaaaaaaa"},
		"a folded field":          {"HTTP/1.1 200 OK\r\nX-A: b\r\n", " b\r\n"},
		"a name":                  {"HTTP/1.1 200 OK\r\n", "aaaaaaaa"},
		"a status line":           {"HTTP/1.1 200 ", "aaaaaaaa"},
		"empty lines":             {"", "\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var sent atomic.Int64
			addr := serve(t, func(_ int, conn net.Conn) {
				if _, err := conn.Read(make([]byte, 4<<10)); err != nil {
					return
				}
				_ = conn.(*net.TCPConn).SetWriteBuffer(4 << 10)
				piece := []byte(strings.Repeat(c.again, 100))
				for n, err := io.WriteString(conn, c.begin); err == nil; n, err = conn.Write(piece) {
					sent.Add(int64(n))
				}
			})
			client, resp := newClient(t, Config{MaxHeader: most, Timeout: time.Minute}), new(page.Response)
			err := client.Get(t.Context(), Request{URL: "http://" + addr + "/"}, resp)
			var e *Error
			if !errors.As(err, &e) || e.Failure != page.Malformed {
				t.Errorf("%v, want a malformed response", err)
			}
			if n := sent.Load(); n > 16<<20 {
				t.Errorf("%d bytes were sent", n)
			}
			if n := len(resp.Raw); n > 2*most {
				t.Errorf("%d bytes are kept", n)
			}
			t.Log(err)
		})
	}
}
