package choices

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/sync/errgroup"

	"kumo/internal/base/page"
	"kumo/internal/content/fetch"
)

// BenchmarkFetch requests a gzipped page over persistent connections, 64 at once, each to its own host, as a crawl
// does. The table is for client and server together. "bare" is a client that only writes and reads the same number of
// bytes: the cost beyond it is that of HTTP.
func BenchmarkFetch(b *testing.B) {
	const workers, exchanges = 64, 20
	body := gzipped(b, corpus(b)[0])
	answer := append(fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"+
		"Content-Encoding: gzip\r\nDate: Sat, 21 Nov 2026 03:00:00 GMT\r\nServer: bench\r\n"+
		"Content-Length: %d\r\n\r\n", len(body)), body...)
	addr := serve(b, answer)
	_, port, err := net.SplitHostPort(addr)
	check(b, err)
	urls := make([]string, workers)
	for i := range urls {
		urls[i] = fmt.Sprintf("http://h%d.example%d:%s/a/page", i, i, port)
	}
	b.Logf("a body of %d bytes", len(body))
	each := func(get func(worker int) (int, error)) func() error {
		return func() error {
			var all errgroup.Group
			for worker := range workers {
				all.Go(func() error {
					for range exchanges {
						if n, err := get(worker); err != nil || n != len(body) {
							return fmt.Errorf("%d bytes: %w", n, err)
						}
					}
					return nil
				})
			}
			return all.Wait()
		}
	}
	byTurns(b, "exchange", workers*exchanges,
		&contender{name: "kumo", note: "exact bytes", run: each(fetchOurs(b, urls))},
		&contender{name: "net/http", run: each(fetchStd(b, urls, addr, false))},
		&contender{name: "net/http, taped", note: "exact bytes", run: each(fetchStd(b, urls, addr, true))},
		&contender{name: "fasthttp", run: each(fetchFast(urls, addr, false))},
		&contender{name: "fasthttp, taped", note: "exact bytes", run: each(fetchFast(urls, addr, true))},
		&contender{name: "bare", run: each(fetchBare(b, workers, addr, len(answer)-len(body), len(answer)))},
	)
}

func fetchOurs(b *testing.B, urls []string) func(int) (int, error) {
	c, err := fetch.New(fetch.Config{AllowPrivate: true, Resolve: []string{"*:*:127.0.0.1"}})
	check(b, err)
	b.Cleanup(c.Close)
	room := make([]page.Response, len(urls))
	return func(worker int) (int, error) {
		err := c.Get(b.Context(), fetch.Request{URL: urls[worker]}, &room[worker])
		return len(room[worker].Payload), err
	}
}

func fetchStd(b *testing.B, urls []string, addr string, taped bool) func(int) (int, error) {
	t := transport(addr, taped)
	b.Cleanup(t.CloseIdleConnections)
	room := make([]bytes.Buffer, len(urls))
	return func(worker int) (int, error) { return getStd(t, urls[worker], &room[worker]) }
}

// transport is net/http's transport with all connections made to addr.
func transport(addr string, taped bool) *http.Transport {
	t := &http.Transport{DisableCompression: true}
	t.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		if taped {
			conn = &tape{Conn: conn}
		}
		return conn, err
	}
	return t
}

func fetchFast(urls []string, addr string, taped bool) func(int) (int, error) {
	c := &fasthttp.Client{Dial: func(string) (net.Conn, error) {
		conn, err := net.Dial("tcp", addr)
		if taped {
			conn = &tape{Conn: conn}
		}
		return conn, err
	}}
	reqs, answers := make([]fasthttp.Request, len(urls)), make([]fasthttp.Response, len(urls))
	for i, url := range urls {
		reqs[i].SetRequestURI(url)
	}
	return func(worker int) (int, error) {
		err := c.Do(&reqs[worker], &answers[worker])
		return len(answers[worker].Body()), err
	}
}

func fetchBare(b *testing.B, workers int, addr string, head, length int) func(int) (int, error) {
	request := []byte("GET /a/page HTTP/1.1\r\nHost: " + addr + "\r\nAccept-Encoding: gzip\r\n\r\n")
	conns, room := make([]net.Conn, workers), make([][]byte, workers)
	for i := range conns {
		conn, err := net.Dial("tcp", addr)
		check(b, err)
		b.Cleanup(func() { conn.Close() })
		conns[i], room[i] = conn, make([]byte, length)
	}
	return func(worker int) (int, error) {
		if _, err := conns[worker].Write(request); err != nil {
			return 0, err
		}
		n, err := io.ReadFull(conns[worker], room[worker])
		return n - head, err
	}
}

// A tape is a connection that records the data read since the last request was written.
type tape struct {
	net.Conn
	read bytes.Buffer
}

func (t *tape) Write(p []byte) (int, error) {
	t.read.Reset()
	return t.Conn.Write(p)
}

func (t *tape) Read(p []byte) (int, error) {
	n, err := t.Conn.Read(p)
	t.read.Write(p[:n])
	return n, err
}

// getStd reads the body, or the part received before an error, into room.
func getStd(t http.RoundTripper, url string, room *bytes.Buffer) (int, error) {
	room.Reset()
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Accept-Encoding", "gzip")
	resp, err := t.RoundTrip(req)
	if err != nil {
		return 0, err
	}
	_, err = room.ReadFrom(resp.Body)
	return room.Len(), errors.Join(err, resp.Body.Close())
}

// serve answers each request on loopback with the same bytes. Clients send one request at a time, without pipelining.
func serve(b testing.TB, answer []byte) (addr string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for request := make([]byte, 4096); ; {
					n, err := conn.Read(request)
					if err != nil || !bytes.HasSuffix(request[:n], []byte("\r\n\r\n")) {
						return
					}
					if _, err := conn.Write(answer); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

// answers are raw responses, as lineEnds writes them, and the body that a crawl should get; closed means that the
// connection ends with the response.
var answers = []struct {
	name, raw, want string
	closed          bool
}{
	{"length", "HTTP/1.1 200 OK\nContent-Length: 5\n\nhello", "hello", false},
	{"no length", "HTTP/1.1 200 OK\n\nhello", "hello", true},
	{"HTTP/1.0", "HTTP/1.0 200 OK\n\nhello", "hello", true},
	{"chunks", "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n2\nhe\n3;x=y\nllo\n0\n\n", "hello", false},
	{"trailer", "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n5\nhello\n0\nX: y\n\n", "hello", false},
	{"interim", "HTTP/1.1 103 Early Hints\nLink: </a>\n\nHTTP/1.1 200 OK\nContent-Length: 5\n\nhello", "hello", false},
	{"bare line feeds", "HTTP/1.1 200 OK\vContent-Length: 5\v\vhello", "hello", false},
	{"no reason", "HTTP/1.1 200\nContent-Length: 5\n\nhello", "hello", false},
	{"same length twice", "HTTP/1.1 200 OK\nContent-Length: 5\nContent-Length: 5\n\nhello", "hello", false},
	{"folded field", "HTTP/1.1 200 OK\nX: a\n b\nContent-Length: 5\n\nhello", "hello", false},
	{"both", "HTTP/1.1 200 OK\nContent-Length: 9\nTransfer-Encoding: chunked\n\n5\nhello\n0\n\n", "hello", true},
	{"cut short", "HTTP/1.1 200 OK\nContent-Length: 9\n\nhello", "hello", true},
	{"chunks cut short", "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n5\nhello\n", "hello", true},
	{"a broken chunk", "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n5\nhello\nzz\nx", "hello", true},
	{"204 with a length", "HTTP/1.1 204 No Content\nContent-Length: 5\n\n", "", false},
	{"long head", "HTTP/1.1 200 OK\nX: " + strings.Repeat("x", 40_000) + "\nContent-Length: 5\n\nhello", "hello", false},
}

// lineEnds replaces line feeds by CRLF, and vertical tabs by bare line feeds.
var lineEnds = strings.NewReplacer("\n", "\r\n", "\v", "\n")

// TestAnswers counts the responses whose body a client returns correctly.
func TestAnswers(t *testing.T) {
	ours, err := fetch.New(fetch.Config{AllowPrivate: true, Timeout: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	resp := new(page.Response)
	std := &http.Transport{DisableCompression: true}
	defer std.CloseIdleConnections()
	var room bytes.Buffer
	fast := &fasthttp.Client{ReadTimeout: 2 * time.Second}
	for _, c := range []struct {
		name string
		get  func(url string) (string, error)
	}{
		{"kumo", func(url string) (string, error) {
			err := ours.Get(t.Context(), fetch.Request{URL: url}, resp)
			return string(resp.Payload), err
		}},
		{"net/http", func(url string) (string, error) {
			_, err := getStd(std, url, &room)
			return room.String(), err
		}},
		{"fasthttp", func(url string) (string, error) {
			req, res := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
			req.SetRequestURI(url)
			err := fast.Do(req, res)
			return string(res.Body()), err
		}},
	} {
		right := 0
		var wrong []string
		for _, a := range answers {
			addr := serveOnce(t, lineEnds.Replace(a.raw), a.closed)
			got, err := c.get("http://" + addr + "/")
			if got == a.want && (err == nil || a.want != "") {
				right++
			} else {
				wrong = append(wrong, fmt.Sprintf("%s (%q)", a.name, got))
			}
		}
		t.Logf("%-8s %d of %d; %s", c.name, right, len(answers), strings.Join(wrong, "; "))
	}
}

// serveOnce answers the first request of every connection, which stays open unless closed is set.
func serveOnce(t *testing.T, answer string, closed bool) (addr string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { conn.Close() })
			go func() {
				_, _ = conn.Read(make([]byte, 4096))
				_, _ = io.WriteString(conn, answer)
				if closed {
					conn.Close()
				}
			}()
		}
	}()
	return l.Addr().String()
}

// TestIdleConnections measures the cost of an idle connection.
func TestIdleConnections(t *testing.T) {
	const hosts = 200 // kumo keeps at most 256 idle connections to one address
	addr := serve(t, []byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))
	_, port, _ := net.SplitHostPort(addr)
	ours, err := fetch.New(fetch.Config{AllowPrivate: true, Resolve: []string{"*:*:127.0.0.1"}, MaxIdle: hosts})
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	std := transport(addr, false)
	defer std.CloseIdleConnections()
	resp := new(page.Response)
	for _, c := range []struct {
		name string
		get  func(url string) error
	}{
		{"kumo", func(url string) error { return ours.Get(t.Context(), fetch.Request{URL: url}, resp) }},
		{"net/http", func(url string) error { _, err := getStd(std, url, new(bytes.Buffer)); return err }},
	} {
		goroutines, memory := runtime.NumGoroutine(), inUse()
		for i := range hosts {
			if err := c.get(fmt.Sprintf("http://h%d.example%d:%s/", i, i, port)); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
		}
		// Each connection has a goroutine of the server, with a read buffer of 4 KB.
		t.Logf("%s: %.2f goroutines and %.1f KB of heap and stacks a connection, with the server's 1 goroutine", c.name,
			float64(runtime.NumGoroutine()-goroutines)/hosts, float64(inUse()-memory)/hosts/1024)
	}
}

func inUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}
