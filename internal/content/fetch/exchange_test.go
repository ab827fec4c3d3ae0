package fetch

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kumo/internal/base/page"
	"kumo/internal/state/store/warc"
)

func TestExactBytes(t *testing.T) {
	tests := []struct {
		name, wire   string
		raw, payload string // "": the same as wire
	}{
		{"length", "HTTP/1.1 200 Fine\r\nx-ODD-case:  a \r\nContent-Length: 5\r\n\r\nhello", "", "hello"},
		{"until close", "HTTP/1.0 200 OK\r\n\r\nto the end", "", "to the end"},
		{"bare line feeds", "HTTP/1.1 200 OK\nContent-Length: 2\n\nok", "", "ok"},
		{"chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;ext=1\r\nabc\r\n0A\r\n0123456789\r\n0\r\n\r\n",
			"", "abc0123456789"},
		{"trailers", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nDigest: x\r\n\r\n", "", "a"},
		{"no body", "HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\n\r\n", "", ""},
		{"folded field", "HTTP/1.1 200 OK\r\nA: b\r\n \r\n c\r\nContent-Length: 1\r\n\r\nx", "", "x"},
		{"lengths in a list", "HTTP/1.1 200 OK\r\nContent-Length: 5, 5,5 \r\n\r\nhello", "", "hello"},
		{"lengths in fields", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nA: b\r\nContent-Length: 5 , 5\r\n\r\nhello", "",
			"hello"},
		{"interim", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
			"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", "x"},
		{"chunked said twice", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: Chunked\r\n\r\n" +
			"1\r\na\r\n0\r\n\r\n", "", "a"},
		{"chunked twice in a list", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
			"", "a"},
		{"a blank before a colon", "HTTP/1.1 200 OK\r\nContent-Length \t: 1\r\n\r\nx", "", "x"},
		{"a line without a colon", "HTTP/1.1 200 OK\r\nnonsense\r\n more\r\nContent-Length: 1\r\n\r\nx", "", "x"},
		{"lower case", "http/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", "", "x"},
		{"an empty line before it", "\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
			"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", "x"},
		{"control characters in fields", "HTTP/1.1 200 OK\r\nX: \x01a\x1b[2J\x7f\x0b\r\nContent-Length: 1\r\nY: " +
			"\x0c\r\n\r\nx", "", "x"},
		{"surplus", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxHTTP/1.1 200 OK\r\n\r\n",
			"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", "x"},
		{"surplus after chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\nmore",
			"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n", "a"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.raw == "" {
				tt.raw = tt.wire
			}
			resp := get(t, newClient(t, Config{}), answering(t, tt.wire, true))
			if string(resp.Raw) != tt.raw {
				t.Errorf("raw  %q\nwant %q", resp.Raw, tt.raw)
			}
			if string(resp.Payload) != tt.payload {
				t.Errorf("payload %q, want %q", resp.Payload, tt.payload)
			}
			head := resp.Raw[:resp.HeadLen]
			if !strings.HasSuffix(string(head), "\n\r\n") && !strings.HasSuffix(string(head), "\n\n") {
				t.Errorf("head %q does not end with an empty line", head)
			}
			if resp.Truncated != page.Whole || resp.Malformed != "" {
				t.Errorf("truncated %q, malformed %q", resp.Truncated, resp.Malformed)
			}
			rec := warc.Record{Block: resp.Raw}
			kept, err := rec.Response()
			if err != nil {
				t.Fatal("the record cannot be read:", err)
			}
			if body, err := io.ReadAll(kept.Body); err != nil || string(body) != tt.payload {
				t.Errorf("the record has a payload of %q, %v", body, err)
			}
		})
	}
}

// A Content-Encoding field with a blank before the colon is applied, and does not affect the next response of the
// connection.
func TestBlankBeforeAColon(t *testing.T) {
	var gzipped bytes.Buffer
	w := gzip.NewWriter(&gzipped)
	if _, err := w.Write([]byte("plain")); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	c := newClient(t, Config{})
	piped(t, c, func(conn net.Conn) {
		r := bufio.NewReader(conn)
		for _, answer := range []string{
			fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Encoding : gzip\r\nContent-Length : %d\r\n\r\n%s", gzipped.Len(), &gzipped),
			"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnext"} {
			readHead(r)
			io.WriteString(conn, answer)
		}
	})
	resp := new(page.Response)
	for i, want := range []string{"plain", "next"} {
		if err := c.Get(t.Context(), Request{URL: "http://a.test/"}, resp); err != nil {
			t.Fatal(err)
		}
		if err := Decode(resp, 100); err != nil || string(resp.Body) != want {
			t.Errorf("body %q (%v), want %q", resp.Body, err, want)
		}
		if coding := resp.Header.Get("Content-Encoding"); (coding == "gzip") != (i == 0) {
			t.Errorf("answer %d has the coding %q", i, coding)
		}
	}
}

// A response without a length ends where the server closes it: over TLS, by close_notify.
func TestTLSThatIsCutOff(t *testing.T) {
	cert := testCertificate(t)
	for _, c := range []struct {
		name, head string
		says       bool
		want       page.Truncation
	}{
		{"close_notify", "", true, page.Whole},
		{"none", "", false, page.Disconnect},
		{"none, but a length", "Content-Length: 4\r\n", false, page.Whole},
	} {
		t.Run(c.name, func(t *testing.T) {
			addr := serve(t, func(_ int, conn net.Conn) {
				secured := tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{cert}})
				readHead(bufio.NewReader(secured))
				io.WriteString(secured, "HTTP/1.1 200 OK\r\n"+c.head+"\r\nhalf")
				if c.says {
					secured.Close()
				} else {
					conn.Close()
				}
			})
			resp := get(t, newClient(t, Config{InsecureTLS: true}), "https://"+addr+"/")
			if resp.Truncated != c.want || string(resp.Payload) != "half" {
				t.Errorf("truncated %q, want %q; payload %q", resp.Truncated, c.want, resp.Payload)
			}
		})
	}
}

// Control characters in a field are kept, in the raw bytes and in the parsed field.
func TestControlCharactersInFields(t *testing.T) {
	all := "-"
	for c := byte(1); c < ' '; c++ {
		if c != '\n' && c != '\r' {
			all += string(rune(c))
		}
	}
	all += "\x7f\u0080\xff-"
	resp := get(t, newClient(t, Config{}), answering(t, "HTTP/1.1 200 OK\r\nX-Odd: "+all+"\r\nContent-Length: 2\r\n\r\nok",
		true))
	if got := resp.Header.Get("X-Odd"); got != all || !strings.Contains(string(resp.Raw), "X-Odd: "+all+"\r\n") ||
		string(resp.Payload) != "ok" {
		t.Errorf("the field is %q, want %q; raw %q", got, all, resp.Raw)
	}
}

// After a response with a repeated Content-Length, the connection is reused. The parsed field has one value.
func TestRepeatedLengthKeepsTheConnection(t *testing.T) {
	var conns atomic.Int32
	addr := serve(t, func(_ int, conn net.Conn) {
		conns.Add(1)
		for r := bufio.NewReader(conn); readHead(r) != ""; {
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\nhello")
		}
	})
	c := newClient(t, Config{})
	for range 3 {
		if resp := get(t, c, "http://"+addr+"/"); string(resp.Payload) != "hello" ||
			fmt.Sprint(resp.Header["Content-Length"]) != "[5]" {
			t.Errorf("payload %q, fields %v", resp.Payload, resp.Header)
		}
	}
	if n := conns.Load(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}

// One Response is reused for all kinds of responses on one connection: no byte may leak from one into another.
func TestKeepAlive(t *testing.T) {
	answers := []string{
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecond",
		"HTTP/1.1 204 No Content\r\n\r\n",
		"HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nend\r\n0\r\n\r\n",
	}
	want := []string{"first", "second", "", "end"}
	var conns atomic.Int32
	addr := serve(t, func(_ int, conn net.Conn) {
		conns.Add(1)
		r := bufio.NewReader(conn)
		for i := 0; readHead(r) != ""; i++ {
			io.WriteString(conn, answers[i%len(answers)])
		}
	})
	c, resp := newClient(t, Config{}), new(page.Response)
	for i := range 3 * len(answers) {
		path := fmt.Sprintf("/%d", i)
		if err := c.Get(t.Context(), Request{URL: "http://" + addr + path}, resp); err != nil {
			t.Fatal(err)
		}
		if err := Decode(resp, 1<<20); err != nil {
			t.Fatal(err)
		}
		n := i % len(answers)
		if string(resp.Raw) != answers[n] || string(resp.Payload) != want[n] || string(resp.Body) != want[n] {
			t.Fatalf("%d: raw %q, payload %q, body %q", i, resp.Raw, resp.Payload, resp.Body)
		}
		wantRequest := "GET " + path + " HTTP/1.1\r\nHost: " + addr + "\r\n"
		if !strings.HasPrefix(string(resp.RequestRaw), wantRequest) {
			t.Fatalf("request %q, want it to begin with %q", resp.RequestRaw, wantRequest)
		}
		if (resp.Connect != 0) != (i == 0) {
			t.Errorf("%d: connecting took %v", i, resp.Connect)
		}
		if resp.Addr.String() != addr || resp.FirstByte <= 0 || resp.Total < resp.FirstByte {
			t.Errorf("%d: address %v, first byte %v, total %v", i, resp.Addr, resp.FirstByte, resp.Total)
		}
	}
	if n := conns.Load(); n != 1 {
		t.Errorf("%d connections for requests in a row, want 1", n)
	}
}

// A server closes an idle connection just as the next request is sent: the request is repeated on a new connection.
func TestStaleConnection(t *testing.T) {
	const answer = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n"
	addr := serve(t, func(n int, conn net.Conn) {
		r := bufio.NewReader(conn)
		for i := 0; readHead(r) != ""; i++ {
			if n == 0 && i == 1 {
				return
			}
			fmt.Fprint(conn, answer, n)
		}
	})
	c, resp := newClient(t, Config{}), new(page.Response)
	for i, want := range []string{"0", "1", "1"} {
		if err := c.Get(t.Context(), Request{URL: "http://" + addr + "/"}, resp); err != nil {
			t.Fatal(err)
		}
		if string(resp.Raw) != answer+want {
			t.Errorf("%d: raw %q, want body %s", i, resp.Raw, want)
		}
		if n := strings.Count(string(resp.RequestRaw), "GET "); n != 1 {
			t.Errorf("%d: %d requests recorded", i, n)
		}
	}
}

// Bytes after a response must never be taken for the response to the next request.
func TestSurplusIsNoAnswer(t *testing.T) {
	const honest = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ntrue"
	addr := serve(t, func(_ int, conn net.Conn) {
		r := bufio.NewReader(conn)
		for readHead(r) != "" {
			io.WriteString(conn, honest+"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nlie")
		}
	})
	c, resp := newClient(t, Config{}), new(page.Response)
	for range 200 {
		if err := c.Get(t.Context(), Request{URL: "http://" + addr + "/"}, resp); err != nil {
			t.Fatal(err)
		}
		if string(resp.Raw) != honest || string(resp.Payload) != "true" {
			t.Fatalf("raw %q, payload %q", resp.Raw, resp.Payload)
		}
	}
}

func TestHTTP2(t *testing.T) {
	srv := httptest.NewUnstartedServer(handler(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["X-Two"] = []string{"a", "b"}
		io.WriteString(w, r.Proto+" "+r.RequestURI)
		w.(http.Flusher).Flush()
		io.WriteString(w, " end")
	}))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	c := newClient(t, Config{InsecureTLS: true})
	for range 2 {
		resp := get(t, c, srv.URL+"//a|b?q")
		if resp.Proto != "HTTP/2.0" || resp.TLS != "TLS 1.3" || !resp.Addr.IsValid() {
			t.Errorf("proto %q, TLS %q, address %v", resp.Proto, resp.TLS, resp.Addr)
		}
		if string(resp.Payload) != "HTTP/2.0 //a|b?q end" {
			t.Errorf("payload %q", resp.Payload)
		}
		head, body := string(resp.Raw[:resp.HeadLen]), resp.Raw[resp.HeadLen:]
		if !strings.HasPrefix(head, "HTTP/1.1 200 OK\r\n") || !strings.Contains(head, "X-Two: a\r\nX-Two: b\r\n") ||
			!strings.HasSuffix(head, "\r\n\r\n") || string(body) != string(resp.Payload) {
			t.Errorf("raw %q", resp.Raw)
		}
		if !strings.Contains(string(resp.RequestRaw), " HTTP/1.1\r\nHost: "+resp.Addr.String()+"\r\n") {
			t.Errorf("request %q", resp.RequestRaw)
		}
	}
}

func TestTLSWithHTTP1(t *testing.T) {
	srv := httptest.NewTLSServer(handler(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hi") }))
	defer srv.Close()
	srv.Config.ErrorLog = discard()
	resp := get(t, newClient(t, Config{InsecureTLS: true}), srv.URL+"/")
	if resp.TLS != "TLS 1.3" || resp.Proto != "HTTP/1.1" || resp.Handshake <= 0 ||
		!strings.HasSuffix(string(resp.Raw), "\r\n\r\nhi") {
		t.Errorf("TLS %q, proto %q, handshake %v, raw %q", resp.TLS, resp.Proto, resp.Handshake, resp.Raw)
	}
	failure(t, newClient(t, Config{}), srv.URL+"/", page.TLS)
	plain := serve(t, func(_ int, conn net.Conn) { io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\n\r\n") })
	failure(t, newClient(t, Config{}), "https://"+plain+"/", page.TLS)
}

func TestOldTLSIsAcceptedOnRequest(t *testing.T) {
	for name, server := range map[string]*tls.Config{
		"RSA key exchange": {MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_RSA_WITH_AES_128_GCM_SHA256}},
		"TLS 1.0":          {MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS10},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewUnstartedServer(handler(func(http.ResponseWriter, *http.Request) {}))
			srv.Config.ErrorLog, srv.TLS = discard(), server
			srv.StartTLS()
			defer srv.Close()
			_, err := failure(t, newClient(t, Config{InsecureTLS: true}), srv.URL+"/", page.TLS)
			if !strings.Contains(err.Error(), "--tls-legacy") {
				t.Errorf("the error does not name the flag: %v", err)
			}
			if resp := get(t, newClient(t, Config{InsecureTLS: true, LegacyTLS: true}), srv.URL+"/"); resp.Status != 200 {
				t.Error(resp.Status)
			}
		})
	}
}

func TestKeyExchangeByMLKEMIsASetting(t *testing.T) {
	offered := make(chan bool, 1)
	srv := httptest.NewUnstartedServer(handler(func(http.ResponseWriter, *http.Request) {}))
	srv.Config.ErrorLog = discard()
	srv.TLS = &tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		offered <- slices.Contains(hello.SupportedCurves, tls.X25519MLKEM768)
		return nil, nil
	}}
	srv.StartTLS()
	defer srv.Close()
	chosen := &tls.Config{CurvePreferences: []tls.CurveID{tls.X25519MLKEM768}}
	for _, c := range []struct {
		cfg  Config
		want bool
	}{{Config{}, false}, {Config{PostQuantumTLS: true}, true}, {Config{TLS: chosen}, true}} {
		c.cfg.InsecureTLS = true
		get(t, newClient(t, c.cfg), srv.URL+"/")
		if got := <-offered; got != c.want {
			t.Errorf("%+v: ML-KEM offered %v, want %v", c.cfg, got, c.want)
		}
	}
}

func TestTruncated(t *testing.T) {
	long := strings.Repeat("x", 5000)
	chunks := "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1\r\nx\r\n", 400)
	tests := []struct {
		name, wire string
		last       bool // the server closes the connection
		payload    int
		want       page.Truncation
		malformed  bool
	}{
		{"just the limit", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + long[:100], false, 100, page.Whole, false},
		{"too long", "HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n" + long, false, 100, page.Length, false},
		{"endless", "HTTP/1.1 200 OK\r\n\r\n" + long, false, 100, page.Length, false},
		{"too many chunks", chunks, false, 100, page.Length, false},
		{"lost", "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n" + long[:20], true, 20, page.Disconnect, false},
		{"lost between chunks", chunks[:65], true, 3, page.Disconnect, false},
		{"bad chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\nzz\r\n", true, 1, page.Disconnect,
			true},
		{"stalled", "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n" + long[:20], false, 20, page.Time, false},
		{"stalled chunk", chunks[:65], false, 3, page.Time, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newClient(t, Config{MaxBody: 100, Timeout: 100 * time.Millisecond})
			resp := get(t, c, answering(t, tt.wire, tt.last))
			if resp.Truncated != tt.want || (resp.Malformed != "") != tt.malformed {
				t.Errorf("truncated %q, malformed %q", resp.Truncated, resp.Malformed)
			}
			if len(resp.Payload) != tt.payload || strings.Trim(string(resp.Payload), "x") != "" {
				t.Errorf("payload of %d bytes, want %d: %q", len(resp.Payload), tt.payload, resp.Payload)
			}
			if resp.Status != 200 || !strings.HasPrefix(tt.wire, string(resp.Raw)) || len(resp.Raw) < resp.HeadLen+tt.payload {
				t.Errorf("status %d, raw %q", resp.Status, resp.Raw)
			}
		})
	}
}

func TestMalformed(t *testing.T) {
	tests := []struct {
		name, wire string
		want       page.Failure
	}{
		{"other protocol", "220 mail.example ESMTP\r\n", page.Malformed},
		{"only a body", "<html><title>HTTP/0.9</title>", page.Malformed},
		{"bad status", "HTTP/1.1 2OO OK\r\n\r\n", page.Malformed},
		{"no status", "HTTP/1.1 000 OK\r\n\r\n", page.Malformed},
		{"low status", "HTTP/1.1 099 OK\r\n\r\n", page.Malformed},
		{"a field without a name", "HTTP/1.1 200 OK\r\n: no name\r\n\r\n", page.Malformed},
		{"many empty lines before it", "\r\n\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", page.Malformed},
		{"other transfer codings", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n\r\n",
			page.Malformed},
		{"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", page.Malformed},
		{"two lengths in a list", "HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\n\r\nab", page.Malformed},
		{"two lengths in all", "HTTP/1.1 200 OK\r\nContent-Length: 1,1\r\nContent-Length: 2\r\n\r\nab", page.Malformed},
		{"half a list of lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1,\r\n\r\nab", page.Malformed},
		{"a length that is none", "HTTP/1.1 200 OK\r\nContent-Length: 1 1\r\n\r\nab", page.Malformed},
		{"no length", "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\nab", page.Malformed},
		{"unknown transfer coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", page.Malformed},
		{"long head", "HTTP/1.1 200 OK\r\nA: " + strings.Repeat("a", 5000) + "\r\n\r\n", page.Malformed},
		{"many fields", "HTTP/1.1 200 OK\r\n" + strings.Repeat("a:\r\n", 2000) + "\r\n", page.Malformed},
		{"many interim answers", strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 200), page.Malformed},
		{"a NUL in a field", "HTTP/1.1 200 OK\r\nA: b\x00c\r\n\r\n", page.Malformed},
		{"a bare CR in a field", "HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n", page.Malformed},
		{"a control character in a name", "HTTP/1.1 200 OK\r\nA\x01: b\r\n\r\n", page.Malformed},
		{"half a head", "HTTP/1.1 200 OK\r\nContent-", page.Reset},
		{"half a status line", "HTT", page.Reset},
		{"nothing", "", page.Reset},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			resp, _ := failure(t, newClient(t, Config{MaxHeader: 4096}), answering(t, tt.wire, true), tt.want)
			if !strings.HasPrefix(tt.wire, string(resp.Raw)) || len(resp.Raw) < min(len(tt.wire), 4096) {
				t.Errorf("raw %q, want %q", resp.Raw, tt.wire)
			}
			if resp.HeadLen != 0 || resp.Status != 0 || resp.Header != nil || len(resp.Payload) != 0 {
				t.Errorf("head of %d bytes, status %d, header %v", resp.HeadLen, resp.Status, resp.Header)
			}
			if (resp.Malformed != "") != (tt.want == page.Malformed) {
				t.Errorf("malformed %q", resp.Malformed)
			}
			if !strings.HasPrefix(string(resp.RequestRaw), "GET / HTTP/1.1\r\n") {
				t.Errorf("request %q", resp.RequestRaw)
			}
		})
	}
}

// A server may send its response before the request, at any time.
func TestSpeaksFirst(t *testing.T) {
	addr := serve(t, func(_ int, conn net.Conn) { io.WriteString(conn, "SSH-2.0-x\r\n"); io.Copy(io.Discard, conn) })
	for range 20 {
		resp, _ := failure(t, newClient(t, Config{}), "http://"+addr+"/", page.Malformed)
		if string(resp.Raw) != "SSH-2.0-x\r\n" {
			t.Fatalf("raw %q", resp.Raw)
		}
	}
}

func TestSwitchingProtocols(t *testing.T) {
	resp := get(t, newClient(t, Config{}), answering(t, "HTTP/1.1 101 Switching Protocols\r\nConnection: "+
		"upgrade\r\nUpgrade: x\r\n\r\nabc", false))
	if resp.Status != 101 || resp.Malformed == "" {
		t.Errorf("status %d, malformed %q", resp.Status, resp.Malformed)
	}
}

func TestCancel(t *testing.T) {
	for _, wire := range []string{"", "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nabc"} {
		ctx, cancel := context.WithCancel(t.Context())
		addr := serve(t, func(_ int, conn net.Conn) {
			r := bufio.NewReader(conn)
			readHead(r)
			io.WriteString(conn, wire)
			cancel()
			io.Copy(io.Discard, r)
		})
		err := newClient(t, Config{}).Get(ctx, Request{URL: "http://" + addr + "/"}, new(page.Response))
		if !errors.Is(err, context.Canceled) {
			t.Errorf("after %q: %v, want context.Canceled", wire, err)
		}
	}
}

// Many goroutines use few connections, some of them to a misbehaving server: every response belongs to its request.
func TestConcurrent(t *testing.T) {
	addr := serve(t, func(n int, conn net.Conn) {
		r := bufio.NewReader(conn)
		for i := 0; ; i++ {
			head := readHead(r)
			if head == "" || (n+i)%7 == 6 {
				return
			}
			path := strings.Fields(head)[1]
			if (n+i)%5 == 4 {
				fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(path), path)
			} else {
				fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(path), path)
			}
		}
	})
	c := newClient(t, Config{PerHost: 4})
	var wg sync.WaitGroup
	var answers atomic.Int32
	for g := range 16 {
		wg.Go(func() {
			resp := new(page.Response)
			for i := range 50 {
				path := fmt.Sprintf("/%d/%d", g, i)
				err := c.Get(t.Context(), Request{URL: "http://" + addr + path}, resp)
				if err != nil {
					continue // a fresh connection may be closed too
				}
				answers.Add(1)
				if string(resp.Payload) != path || !strings.HasPrefix(string(resp.RequestRaw), "GET "+path+" ") {
					t.Errorf("%s: payload %q, request %q", path, resp.Payload, resp.RequestRaw)
				}
			}
		})
	}
	wg.Wait()
	if n := answers.Load(); n < 600 {
		t.Errorf("%d answers to 800 requests", n)
	}
}
