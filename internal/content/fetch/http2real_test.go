package fetch

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"kumo/internal/base/page"
)

// realSite responds in typical ways, by path, over any protocol.
func realSite(t *testing.T) http.Handler {
	zipped := encode(t, prose(200_000), "gzip")
	large := prose(3 << 20)
	mux := http.NewServeMux()
	mux.HandleFunc("/page/", func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.ParseUint(strings.TrimPrefix(r.URL.Path, "/page/"), 10, 64)
		size := rand.New(rand.NewPCG(n, 1)).IntN(100_000)
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("ETag", fmt.Sprintf("%q", r.URL.Path))
		w.Write(large[:size])
	})
	mux.HandleFunc("/gzip", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Length", fmt.Sprint(len(zipped)))
		w.Write(zipped)
	})
	mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) { w.Write(large) })
	mux.HandleFunc("/pieces", func(w http.ResponseWriter, _ *http.Request) {
		for i := range 50 {
			fmt.Fprintf(w, "piece %d\n", i)
			w.(http.Flusher).Flush()
		}
	})
	mux.HandleFunc("/trailers", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		io.WriteString(w, "with trailers")
		w.Header().Set("X-Sum", "13")
	})
	mux.HandleFunc("/hints", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</a.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Del("Link")
		io.WriteString(w, "after hints")
	})
	mux.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/page/1", http.StatusMovedPermanently)
	})
	mux.HandleFunc("/same", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) })
	mux.HandleFunc("/none", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("/empty", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/fields", func(w http.ResponseWriter, _ *http.Request) {
		for i := range 300 {
			w.Header().Add(fmt.Sprintf("X-Field-%d", i%150), strings.Repeat("v", i))
		}
		w.WriteHeader(http.StatusTeapot)
	})
	mux.HandleFunc("/broken", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		io.WriteString(w, "half")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	return mux
}

// A response to HEAD has no body, whatever its Content-Length, and its connection is reused.
func TestHead(t *testing.T) {
	site := realSite(t)
	for _, second := range []bool{false, true} {
		srv := httptest.NewUnstartedServer(site)
		srv.EnableHTTP2 = second
		srv.StartTLS()
		t.Cleanup(srv.Close)
		c, resp := newClient(t, Config{InsecureTLS: true}), new(page.Response)
		for _, path := range []string{"/gzip", "/large", "/page/3", "/missing", "/moved", "/none", "/trailers"} {
			if err := c.Get(t.Context(), Request{URL: srv.URL + path}, resp); err != nil {
				t.Fatal(err)
			}
			status, length := resp.Status, resp.Header.Get("Content-Length")
			if err := c.Get(t.Context(), Request{URL: srv.URL + path, Head: true}, resp); err != nil {
				t.Fatal(err)
			}
			if got := resp.Header.Get("Content-Length"); resp.Status != status || len(resp.Payload) > 0 ||
				resp.Truncated != "" || path == "/gzip" && got != length || resp.Connect > 0 {
				t.Errorf("%v %s: %d with %d bytes of %s, by GET %d; connected in %v", second, path, resp.Status,
					len(resp.Payload), got, status, resp.Connect)
			}
		}
	}
}

// With net/http's server, HTTP/2 and HTTP/1 have the same results, with many exchanges per connection.
func TestHTTP2LikeHTTP1(t *testing.T) {
	site := realSite(t)
	serve := func(second bool) string {
		srv := httptest.NewUnstartedServer(site)
		srv.EnableHTTP2, srv.Config.ErrorLog = second, discard()
		srv.StartTLS()
		t.Cleanup(srv.Close)
		return srv.URL
	}
	first, second := serve(false), serve(true)
	paths := []string{"/gzip", "/large", "/pieces", "/trailers", "/hints", "/moved", "/same", "/none", "/empty", "/fields",
		"/missing", "/large?cut",
		"/broken", "//page/1", "/page/1?a|b"}
	for n := range 200 {
		paths = append(paths, fmt.Sprintf("/page/%d", n))
	}
	c := newClient(t, Config{InsecureTLS: true, PerHost: 3})
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			one, two := new(page.Response), new(page.Response)
			for i := g; i < len(paths); i += 4 {
				req := Request{Trusted: true}
				if strings.HasSuffix(paths[i], "?cut") {
					req.MaxBody = 1_000_000
				}
				for _, at := range []struct {
					resp *page.Response
					base string
				}{{one, first}, {two, second}} {
					req.URL = at.base + paths[i]
					if err := c.Get(t.Context(), req, at.resp); err != nil {
						t.Errorf("%s: %v", req.URL, err)
					}
				}
				compareAnswers(t, paths[i], one, two)
			}
		})
	}
	wg.Wait()
}

func compareAnswers(t *testing.T, path string, one, two *page.Response) {
	if one.Proto != "HTTP/1.1" || two.Proto != "HTTP/2.0" {
		t.Errorf("%s: %s, %s", path, one.Proto, two.Proto)
	}
	if one.Status != two.Status || !bytes.Equal(one.Payload, two.Payload) || one.Truncated != two.Truncated ||
		one.Malformed != two.Malformed {
		t.Errorf("%s: status %d, %d bytes, truncated %q, %q; over HTTP/2 %d, %d, %q, %q", path, one.Status, len(one.Payload),
			one.Truncated, one.Malformed,
			two.Status, len(two.Payload), two.Truncated, two.Malformed)
	}
	for _, resp := range []*page.Response{one, two} { // the server's connection fields differ
		for _, name := range []string{"Date", "Connection", "Content-Length"} {
			resp.Header.Del(name)
		}
	}
	if got, want := fmt.Sprint(two.Header), fmt.Sprint(one.Header); got != want {
		t.Errorf("%s: fields %s, want %s", path, got, want)
	}
	h := make(http.Header)
	if hd, err := parseHead(two.Raw[:two.HeadLen], h); err != nil || hd.status != two.Status {
		t.Errorf("%s: the head cannot be read as HTTP/1.1: %v: %q", path, err, two.Raw[:two.HeadLen])
	}
	if !bytes.Equal(two.Raw[two.HeadLen:], two.Payload) {
		t.Errorf("%s: the payload is not what follows the head", path)
	}
}

// The windows of a connection are maintained over more bytes than fit into one.
func TestHTTP2Windows(t *testing.T) {
	s := newSession(1 << 16)
	s.appendPreface(nil)
	input := append(rawFrame(4, 0, 0, ""), rawFrame(1, 4, 1, okHead)...)
	s.begin()
	for e, _, rest, err := s.step(input); e != needInput || err != nil; e, _, rest, err = s.step(rest) {
		if err != nil {
			t.Fatal(err)
		} else if e == fieldBlock {
			s.state = inBody
		}
	}
	data := rawFrame(0, 0, 1, strings.Repeat("x", maxFrame))
	s.out = nil
	for n := int64(0); n < 3*receiveWindow; n += maxFrame {
		for e, _, rest, err := s.step(data); e != needInput || err != nil; e, _, rest, err = s.step(rest) {
			if err != nil {
				t.Fatalf("after %d bytes: %v", n, err)
			}
		}
	}
	const frame = frameHeader + 4
	if n := len(s.out) / frame; len(s.out)%frame != 0 || n < 10 || n > 12 {
		t.Errorf("%d bytes to send: %d window updates", len(s.out), n)
	}
	s.received.stream = maxFrame - 1
	if _, _, _, err := s.step(data); err == nil || !strings.Contains(err.Error(), "window") {
		t.Errorf("more than the window allows: %v", err)
	}
}
