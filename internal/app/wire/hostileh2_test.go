package wire

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"golang.org/x/net/http2"
)

// Servers that violate HTTP/2 do not block workers: the crawl ends, their hosts are abandoned, and a good host's pages
// are fetched.
func TestHostileHTTP2IsGivenUp(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]http.HandlerFunc{"good.test/": html("good")})
	certified := httptest.NewUnstartedServer(nil)
	certified.StartTLS()
	defer certified.Close()
	ln, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: certified.TLS.Certificates,
		NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	var asked atomic.Int32
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go overflow(conn, &asked)
		}
	}()
	j := s.job(t, "good.test/")
	j.Fetch.InsecureTLS = true
	j.Crawl.IgnoreRobots = true
	for host := range 3 {
		for i := range 20 {
			j.Seeds = append(j.Seeds, fmt.Sprintf("https://bad%d.test:%d/%d", host, ln.Addr().(*net.TCPAddr).Port, i))
		}
	}
	mustRun(t, j)
	s.wantAsked(t, "good.test/")
	all := lines(t, j.Dir, "skipped.jsonl")
	if n := asked.Load(); len(all) != 60 || n < 30 || n >= 60 {
		t.Errorf("%d URLs are told as not fetched, want 60; their hosts were asked %d times, want 30 or a few more", len(all),
			n)
	}
	c, err := Open(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.Waiting == 0 {
		t.Error("nothing waits for the next run: no host was given up")
	}
}

// overflow increases a stream's window beyond its limit, for any request.
func overflow(conn net.Conn, asked *atomic.Int32) {
	defer conn.Close()
	fr := http2.NewFramer(conn, conn)
	if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err != nil || fr.WriteSettings() != nil {
		return
	}
	for {
		f, err := fr.ReadFrame()
		if err != nil {
			return
		}
		if h, ok := f.(*http2.HeadersFrame); ok {
			asked.Add(1)
			if errors.Join(fr.WriteWindowUpdate(h.StreamID, 1<<31-1), fr.WriteWindowUpdate(h.StreamID, 1<<31-1)) != nil {
				return
			}
		}
	}
}
