package fetch

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"kumo/internal/base/page"
)

const okHead = "\x88" // :status 200 in the static table

// wrongFrames are invalid frames in place of a head. Each ends the exchange at once.
var wrongFrames = []struct {
	name string
	send func(p *peer, stream uint32)
	want string
}{
	{"DATA on stream 0", one(http2.FrameData, 0, 0, "x"), "DATA on stream 0"},
	{"DATA on an idle stream", one(http2.FrameData, 0, 7, "x"), "DATA on stream 7"},
	{"DATA before the head", one(http2.FrameData, 0, 1, "x"), "DATA before the head"},
	{"DATA without its padding's length", one(http2.FrameData, http2.FlagDataPadded, 1, ""), "DATA of 0 bytes"},
	{"HEADERS on stream 0", one(http2.FrameHeaders, http2.FlagHeadersEndHeaders, 0, okHead), "HEADERS on stream 0"},
	{"HEADERS on a stream of the server's", one(http2.FrameHeaders, http2.FlagHeadersEndHeaders, 2, okHead),
		"HEADERS on stream 2"},
	{"HEADERS on an idle stream", one(http2.FrameHeaders, http2.FlagHeadersEndHeaders, 7, okHead), "HEADERS on stream 7"},
	{"HEADERS with too much padding", one(http2.FrameHeaders, 0xc, 1, "\x09"+okHead), "padding of 9"},
	{"HEADERS without its padding's length", one(http2.FrameHeaders, 0xc, 1, ""), "HEADERS of 0 bytes"},
	{"HEADERS with half a priority", one(http2.FrameHeaders, 0x24, 1, "\x00\x00\x00"), "HEADERS of 3 bytes"},
	{"PRIORITY on stream 0", one(http2.FramePriority, 0, 0, "\x00\x00\x00\x00\x00"), "PRIORITY on stream 0"},
	{"PRIORITY too short", one(http2.FramePriority, 0, 1, "\x00\x00\x00\x00"), "PRIORITY of 4 bytes"},
	{"RST_STREAM on stream 0", one(http2.FrameRSTStream, 0, 0, "\x00\x00\x00\x08"), "RST_STREAM on stream 0"},
	{"RST_STREAM on an idle stream", one(http2.FrameRSTStream, 0, 3, "\x00\x00\x00\x08"), "RST_STREAM on stream 3"},
	{"RST_STREAM too short", one(http2.FrameRSTStream, 0, 1, "\x00\x00\x08"), "RST_STREAM of 3 bytes"},
	{"SETTINGS on a stream", one(http2.FrameSettings, 0, 1, ""), "SETTINGS on stream 1"},
	{"SETTINGS of half a setting", one(http2.FrameSettings, 0, 0, "\x00\x01\x00"), "SETTINGS of 3 bytes"},
	{"SETTINGS acknowledged with settings", one(http2.FrameSettings, 1, 0, "\x00\x01\x00\x00\x00\x00"),
		"SETTINGS of 6 bytes"},
	{"SETTINGS with push", one(http2.FrameSettings, 0, 0, "\x00\x02\x00\x00\x00\x01"), "setting 2 is 1"},
	{"SETTINGS with a huge window", one(http2.FrameSettings, 0, 0, "\x00\x04\x80\x00\x00\x00"), "setting 4 is"},
	{"SETTINGS with tiny frames", one(http2.FrameSettings, 0, 0, "\x00\x05\x00\x00\x00\x01"), "setting 5 is 1"},
	{"SETTINGS with huge frames", one(http2.FrameSettings, 0, 0, "\x00\x05\x01\x00\x00\x00"), "setting 5 is"},
	{"SETTINGS that make a window overflow", func(p *peer, stream uint32) {
		p.raw(http2.FrameWindowUpdate, 0, stream, "\x7f\xff\x00\x00")
		p.raw(http2.FrameSettings, 0, 0, "\x00\x04\x7f\xff\xff\xff")
	}, "window is larger"},
	{"PUSH_PROMISE", one(http2.FramePushPromise, 4, 1, "\x00\x00\x00\x02"+okHead), "PUSH_PROMISE"},
	{"PING on a stream", one(http2.FramePing, 0, 1, "12345678"), "PING on stream 1"},
	{"PING too short", one(http2.FramePing, 0, 0, "1234567"), "PING of 7 bytes"},
	{"GOAWAY on a stream", one(http2.FrameGoAway, 0, 1, "\x00\x00\x00\x01\x00\x00\x00\x00"), "GOAWAY on stream 1"},
	{"GOAWAY too short", one(http2.FrameGoAway, 0, 0, "\x00\x00\x00\x01"), "GOAWAY of 4 bytes"},
	{"WINDOW_UPDATE of nothing", one(http2.FrameWindowUpdate, 0, 0, "\x00\x00\x00\x00"), "WINDOW_UPDATE of 0"},
	{"WINDOW_UPDATE of nothing on the stream", one(http2.FrameWindowUpdate, 0, 1, "\x80\x00\x00\x00"),
		"WINDOW_UPDATE of 0"},
	{"WINDOW_UPDATE too short", one(http2.FrameWindowUpdate, 0, 0, "\x00\x00\x01"), "WINDOW_UPDATE of 3 bytes"},
	{"WINDOW_UPDATE on an idle stream", one(http2.FrameWindowUpdate, 0, 9, "\x00\x00\x00\x01"), "stream 9, which is idle"},
	{"WINDOW_UPDATE beyond all bounds", one(http2.FrameWindowUpdate, 0, 0, "\x7f\xff\xff\xff"), "window of stream 0"},
	{"WINDOW_UPDATE twice", func(p *peer, stream uint32) { // net/http's transport deadlocked on it
		p.raw(http2.FrameWindowUpdate, 0, stream, "\x7f\xff\xff\xff")
		p.raw(http2.FrameWindowUpdate, 0, stream, "\x7f\xff\xff\xff")
	}, "window of stream 1"},
	{"CONTINUATION alone", one(http2.FrameContinuation, 4, 1, okHead), "CONTINUATION without"},
	{"CONTINUATION on another stream", func(p *peer, stream uint32) {
		p.raw(http2.FrameHeaders, 0, stream, okHead)
		p.raw(http2.FrameContinuation, 4, 3, "")
	}, "inside a field block"},
	{"PING in the middle of a field block", func(p *peer, stream uint32) {
		p.raw(http2.FrameHeaders, 0, stream, okHead)
		p.raw(http2.FramePing, 0, 0, "12345678")
	}, "PING inside a field block"},
	{"a frame too long", one(http2.FramePing, 0, 0, strings.Repeat("x", 1<<14+1)), "frame of 16385 bytes"},
	{"an unknown frame too long", one(0xbe, 0, 0, strings.Repeat("x", 1<<14+1)), "frame of 16385 bytes"},

	{"fields of an unknown index", one(http2.FrameHeaders, 4, 1, "\xff\x80\x01"), "field block"},
	{"half a field", one(http2.FrameHeaders, 4, 1, okHead+"\x40\x05ab"), "field block"},
	{"a dynamic table that was not allowed", one(http2.FrameHeaders, 4, 1, "\x3f\xe2\x1f"+okHead), "field block"},
	{"bad Huffman code", one(http2.FrameHeaders, 4, 1, okHead+"\x40\x84\xff\xff\xff\xff\x00"), "field block"},
	{"no status", sending("a", "b"), "no :status"},
	{"two statuses", sending(":status", "200", ":status", "200"), ":status"},
	{"a status after fields", sending("a", "b", ":status", "200"), ":status"},
	{"a request's pseudo-field", sending(":status", "200", ":path", "/"), ":path"},
	{"an unknown pseudo-field", sending(":status", "200", ":x", "/"), ":x"},
	{"a status that is none", sending(":status", "2000"), "status"},
	{"a status of letters", sending(":status", "OK."), "status"},
	{"a change of protocols", sending(":status", "101"), "101"},
	{"a name in capitals", sending(":status", "200", "Server", "x"), "Server"},
	{"a name with a space", sending(":status", "200", "a b", "x"), "a b"},
	{"no name", sending(":status", "200", "", "x"), "field name"},
	{"a line end in a value", sending(":status", "200", "a", "b\r\nc: d"), "field"},
	{"a NUL in a value", sending(":status", "200", "a", "b\x00"), "field"},
	{"two lengths", sending(":status", "200", "content-length", "1", "content-length", "2"), "Content-Length"},
	{"a length that is none", sending(":status", "200", "content-length", "-1"), "Content-Length"},
	{"a stream that ends with an interim answer", func(p *peer, stream uint32) { p.head(stream, true, ":status", "103") },
		"status 103"},
	{"a long field", sending(":status", "200", "a", strings.Repeat("x", 5000)), "head exceeds"},
	{"many fields", func(p *peer, stream uint32) {
		p.raw(http2.FrameHeaders, 4, stream, okHead+strings.Repeat("\x90", 200)) // accept-encoding: gzip, deflate
	}, "head exceeds"},
}

// one sends one frame.
func one(kind http2.FrameType, flags http2.Flags, on uint32, payload string) func(*peer, uint32) {
	return func(p *peer, _ uint32) { p.raw(kind, flags, on, payload) }
}

func sending(all ...string) func(*peer, uint32) {
	return func(p *peer, stream uint32) { p.head(stream, false, all...) }
}

func TestHTTP2WrongFrames(t *testing.T) {
	const patience = 30 * time.Second // longer than all tests take
	for _, tt := range wrongFrames {
		t.Run(tt.name, func(t *testing.T) {
			ended := make(chan bool, 1)
			addr := serveSecond(t, func(_ int, p *peer) {
				p.WriteSettings()
				tt.send(p, p.request())
				p.drain()
				ended <- true
			})
			c := newClient(t, Config{InsecureTLS: true, MaxHeader: 4096, Timeout: patience})
			resp, err := failure(t, c, "https://"+addr+"/", page.Malformed)
			if !strings.Contains(err.Error(), tt.want) || !strings.Contains(resp.Malformed, tt.want) {
				t.Errorf("%v, malformed %q, want it to speak of %q", err, resp.Malformed, tt.want)
			}
			if resp.HeadLen != 0 || len(resp.Payload) != 0 || !strings.HasPrefix(string(resp.RequestRaw),
				"GET / HTTP/1.1\r\nHost: "+addr+"\r\n") {
				t.Errorf("raw %q, request %q", resp.Raw, resp.RequestRaw)
			}
			<-ended // the connection is closed
		})
	}
}

// The server's first frame must be SETTINGS.
func TestHTTP2WrongPreface(t *testing.T) {
	for name, first := range map[string][]byte{
		"PING":        rawFrame(http2.FramePing, 0, 0, "12345678"),
		"SETTINGS":    rawFrame(http2.FrameSettings, http2.FlagSettingsAck, 0, ""),
		"HTTP/1.1":    []byte("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"),
		"a mail":      []byte("220 mail.example ESMTP\r\n"),
		"one frame":   rawFrame(http2.FrameHeaders, 5, 1, okHead),
		"zero length": rawFrame(http2.FrameData, 0, 0, ""),
	} {
		t.Run(name, func(t *testing.T) {
			addr := serveSecond(t, func(_ int, p *peer) { p.Write(first); p.drain() })
			failure(t, newClient(t, Config{InsecureTLS: true}), "https://"+addr+"/", page.Malformed)
		})
	}
}

// An invalid frame after the head truncates the response there.
func TestHTTP2WrongBody(t *testing.T) {
	tests := []struct {
		name      string
		send      func(p *peer, stream uint32)
		payload   string
		want      page.Truncation
		malformed bool
	}{
		{"too much padding", one(http2.FrameData, 8, 1, "\x05ab"), "abc", page.Disconnect, true},
		{"more than its length", func(p *peer, s uint32) { p.WriteData(s, true, []byte("defghijklmnop")) }, "abcdefghij",
			page.Disconnect, true},
		{"less than its length", func(p *peer, s uint32) { p.WriteData(s, true, []byte("de")) }, "abcde", page.Disconnect,
			false},
		{"another head", func(p *peer, s uint32) { p.head(s, false, ":status", "200") }, "abc", page.Disconnect, true},
		{"trailers with a status", func(p *peer, s uint32) { p.head(s, true, ":status", "200") }, "abc", page.Disconnect,
			true},
		{"trailers in capitals", func(p *peer, s uint32) { p.head(s, true, "X", "y") }, "abc", page.Disconnect, true},
		{"trailers too long", func(p *peer, s uint32) { p.head(s, true, "x", strings.Repeat("y", 5000)) }, "abc",
			page.Disconnect, false},
		{"trailers too early", func(p *peer, s uint32) { p.head(s, true, "x", "y") }, "abc", page.Disconnect, false},
		{"reset", func(p *peer, s uint32) { p.WriteRSTStream(s, http2.ErrCodeInternal) }, "abc", page.Disconnect, false},
		{"reset without an error", func(p *peer, s uint32) { p.WriteRSTStream(s, http2.ErrCodeNo) }, "abc", page.Disconnect,
			false},
		{"refused too late", func(p *peer, s uint32) { p.WriteRSTStream(s, http2.ErrCodeRefusedStream) }, "abc",
			page.Disconnect, false},
		{"closed", func(p *peer, s uint32) { p.Close() }, "abc", page.Disconnect, false},
		{"goodbye, closed", func(p *peer, s uint32) { p.WriteGoAway(s, http2.ErrCodeNo, nil); p.Close() }, "abc",
			page.Disconnect, false},
		{"push", func(p *peer, s uint32) {
			p.WritePushPromise(http2.PushPromiseParam{StreamID: s, PromiseID: 2, EndHeaders: true})
		}, "abc", page.Disconnect, true},
		{"too much for the limit", func(p *peer, s uint32) { p.WriteData(s, true, []byte("defg")) }, "abcd", page.Length,
			false},
		{"stalled", func(*peer, uint32) {}, "abc", page.Time, false},
		{"half a frame", func(p *peer, s uint32) { p.Write(rawFrame(http2.FrameData, 0, s, "defghij")[:11]) }, "abcde",
			page.Time, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			addr := serveSecond(t, func(_ int, p *peer) {
				p.WriteSettings()
				stream := p.request()
				p.head(stream, false, ":status", "200", "content-length", "10")
				p.WriteData(stream, false, []byte("abc"))
				tt.send(p, stream)
				p.drain()
			})
			cfg := Config{InsecureTLS: true, MaxHeader: 4096, MaxBody: 100}
			if tt.want == page.Length {
				cfg.MaxBody = 4
			}
			if tt.want == page.Time {
				cfg.Timeout = 200 * time.Millisecond
			}
			resp := get(t, newClient(t, cfg), "https://"+addr+"/")
			if string(resp.Payload) != tt.payload || resp.Truncated != tt.want || (resp.Malformed != "") != tt.malformed {
				t.Errorf("payload %q, truncated %q, malformed %q", resp.Payload, resp.Truncated, resp.Malformed)
			}
			if resp.Status != 200 || string(resp.Raw) != "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"+tt.payload {
				t.Errorf("raw %q", resp.Raw)
			}
		})
	}
}

// An endless flood of frames without data ends the exchange soon, not at the time limit.
func TestHTTP2Floods(t *testing.T) {
	head := func(p *peer, stream uint32) { p.head(stream, false, ":status", "200") }
	nothing := func(*peer, uint32) {}
	tests := []struct {
		name          string
		before, again func(p *peer, stream uint32)
	}{
		{"SETTINGS", nothing, one(http2.FrameSettings, 0, 0, "\x00\x03\x00\x00\x00\x01")},
		{"SETTINGS acknowledged", nothing, one(http2.FrameSettings, 1, 0, "")},
		{"PING", nothing, one(http2.FramePing, 0, 0, "12345678")},
		{"PRIORITY", nothing, one(http2.FramePriority, 0, 5, "\x00\x00\x00\x00\x00")},
		{"WINDOW_UPDATE", nothing, one(http2.FrameWindowUpdate, 0, 0, "\x00\x00\x00\x01")},
		{"GOAWAY", nothing, one(http2.FrameGoAway, 0, 0, "\x7f\xff\xff\xff\x00\x00\x00\x00")},
		{"unknown", nothing, one(0xfe, 0, 1, "what")},
		{"empty unknown", nothing, one(0xfe, 0, 0, "")},
		{"CONTINUATION", func(p *peer, s uint32) { p.raw(http2.FrameHeaders, 0, s, okHead) },
			one(http2.FrameContinuation, 0, 1, "")},
		{"long CONTINUATION", func(p *peer, s uint32) { p.raw(http2.FrameHeaders, 0, s, okHead) },
			one(http2.FrameContinuation, 0, 1, strings.Repeat("\x90", 1000))},
		{"interim answers", nothing, func(p *peer, s uint32) { p.head(s, false, ":status", "103", "link", "</a>") }},
		{"empty DATA", head, one(http2.FrameData, 0, 1, "")},
		{"DATA of padding", head, one(http2.FrameData, 8, 1, "\x03xxx")},
		{"DATA of much padding", head, one(http2.FrameData, 8, 1, "\xff"+strings.Repeat("x", 255))},
		{"little DATA with much padding", head, one(http2.FrameData, 8, 1, "\xffa"+strings.Repeat("x", 255))},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var sent atomic.Int32
			addr := serveSecond(t, func(_ int, p *peer) {
				p.WriteSettings()
				stream := p.request()
				ctx, cancel := context.WithCancel(context.Background())
				go func() { defer cancel(); p.drain() }() // consume the client's replies
				for tt.before(p, stream); ctx.Err() == nil; sent.Add(1) {
					tt.again(p, stream)
				}
			})
			c := newClient(t, Config{InsecureTLS: true, MaxHeader: 64 << 10, MaxBody: 20_000, Timeout: time.Minute})
			resp := new(page.Response)
			err := c.Get(t.Context(), Request{URL: "https://" + addr + "/"}, resp)
			var e *Error
			switch {
			case resp.HeadLen == 0 && (!errors.As(err, &e) || e.Failure != page.Malformed):
				t.Errorf("%v, want a malformed response", err)
			case resp.HeadLen > 0 && resp.Truncated == page.Whole:
				t.Errorf("%d bytes, whole", len(resp.Payload))
			}
		})
	}
}

// pipedSecond replaces the network by a function, which acts as every server on connections with HTTP/2.
func pipedSecond(t testing.TB, c *Client, server func(p *peer)) {
	cert := testCertificate(t)
	piped(t, c, func(conn net.Conn) {
		tlsConn := tls.Server(newMailbox(conn), &tls.Config{Certificates: []tls.Certificate{cert},
			NextProtos: []string{"h2"}})
		defer tlsConn.Close()
		if tlsConn.Handshake() == nil {
			server(newPeer(tlsConn))
		}
	})
}

// A mailbox is a connection whose writes do not block. A plain pipe has no buffer.
type mailbox struct {
	net.Conn
	out  chan []byte
	gone atomic.Bool // nobody reads
	once sync.Once
}

func newMailbox(conn net.Conn) *mailbox {
	m := &mailbox{Conn: conn, out: make(chan []byte, 1000)}
	go func() {
		for b := range m.out {
			if _, err := conn.Write(b); err != nil {
				m.gone.Store(true)
			}
		}
	}()
	return m
}

func (m *mailbox) Write(b []byte) (int, error) {
	if m.gone.Load() {
		return 0, io.ErrClosedPipe
	}
	m.out <- bytes.Clone(b)
	return len(b), nil
}

func (m *mailbox) Close() error {
	m.once.Do(func() { close(m.out) })
	return m.Conn.Close()
}

// Time limits for servers that send slowly without end, in virtual time.
func TestHTTP2SlowServers(t *testing.T) {
	always := func(frames ...[]byte) func(p *peer, stream uint32) {
		return func(p *peer, stream uint32) {
			for ; ; time.Sleep(10 * time.Second) { // virtual
				for _, f := range frames {
					if _, err := p.Write(f); err != nil {
						return
					}
				}
			}
		}
	}
	after := func(head []byte, then func(p *peer, stream uint32)) func(p *peer, stream uint32) {
		return func(p *peer, stream uint32) { p.Write(head); then(p, stream) }
	}
	silence := func(*peer, uint32) {}
	crumbs := func(text []byte) func(p *peer, stream uint32) {
		return func(p *peer, stream uint32) {
			for i := range text {
				if _, err := p.Write(text[i : i+1]); err != nil {
					return
				}
				time.Sleep(4 * time.Second)
			}
		}
	}
	head, long := rawFrame(http2.FrameHeaders, 4, 1, okHead), rawFrame(http2.FrameData, 0, 1, strings.Repeat("x", 1000))
	tests := []struct {
		name   string
		server func(p *peer, stream uint32)
		took   time.Duration
		answer bool
	}{
		{"silence", silence, 30 * time.Second, false},
		{"half a header", after(head[:5], silence), 30 * time.Second, false},
		{"half a field block", after(rawFrame(http2.FrameHeaders, 0, 1, okHead), silence), 30 * time.Second, false},
		{"half a PING", after(rawFrame(http2.FramePing, 0, 0, "12345678")[:12], silence), 30 * time.Second, false},
		{"PING for ever", always(rawFrame(http2.FramePing, 0, 0, "12345678")), 30 * time.Second, false},
		{"SETTINGS for ever", always(rawFrame(http2.FrameSettings, 0, 0, "")), 30 * time.Second, false},
		{"interim answers for ever", always(rawFrame(http2.FrameHeaders, 4, 1, "\x08\x03103")), 30 * time.Second, false},
		{"head by bytes", crumbs(append(rawFrame(http2.FrameHeaders, 0, 1, okHead),
			rawFrame(http2.FrameContinuation, 4, 1, "")...)),
			30 * time.Second, false},
		{"no body", after(head, silence), 30 * time.Second, true},
		{"half a DATA", after(head, after(rawFrame(http2.FrameData, 0, 1, "abcdef")[:7], silence)), 30 * time.Second, true},
		{"PING in place of a body", after(head, always(rawFrame(http2.FramePing, 0, 0, "12345678"))), 30 * time.Second, true},
		{"empty DATA for ever", after(head, always(rawFrame(http2.FrameData, 0, 1, ""))), 30 * time.Second, true},
		{"body by bytes", after(head, always(rawFrame(http2.FrameData, 0, 1, "x"))), 5 * time.Minute, true},
		{"a frame by bytes", after(append(bytes.Clone(head), long[:9]...), crumbs(long[9:])), 5 * time.Minute, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server := func(p *peer) {
				p.greeted()
				p.WriteSettings()
				if stream := p.request(); stream != 0 {
					ctx, cancel := context.WithCancel(context.Background())
					go func() { defer cancel(); p.drain() }()
					tt.server(p, stream)
					<-ctx.Done()
				}
			}
			synctest.Test(t, func(t *testing.T) {
				c := newClient(t, Config{InsecureTLS: true})
				pipedSecond(t, c, server)
				resp := new(page.Response)
				err := c.Get(t.Context(), Request{URL: "https://slow.example/"}, resp)
				var e *Error
				if tt.answer && (err != nil || resp.Truncated != page.Time) {
					t.Errorf("%v, truncated %q, %d bytes", err, resp.Truncated, len(resp.Payload))
				}
				if !tt.answer && (!errors.As(err, &e) || e.Failure != page.Timeout) {
					t.Errorf("got %v, want a timeout", err)
				}
				if resp.Total != tt.took {
					t.Errorf("took %v, want %v", resp.Total, tt.took)
				}
			})
			synctest.Test(t, func(t *testing.T) { // canceling the crawl's context ends it at once
				c := newClient(t, Config{InsecureTLS: true})
				pipedSecond(t, c, server)
				ctx, cancel := context.WithTimeout(t.Context(), 17*time.Second)
				defer cancel()
				resp := new(page.Response)
				if err := c.Get(ctx, Request{URL: "https://slow.example/"}, resp); !errors.Is(err, context.DeadlineExceeded) ||
					resp.Total != 17*time.Second {
					t.Errorf("after %v: %v", resp.Total, err)
				}
			})
		})
	}
}

// A server that reads nothing at all, and a server that stops reading while it provokes replies.
func TestHTTP2ServerDoesNotRead(t *testing.T) {
	for _, asks := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := newClient(t, Config{InsecureTLS: true})
			pipedSecond(t, c, func(p *peer) {
				if asks && p.greeted() && p.WriteSettings() == nil && p.request() != 0 {
					p.raw(http2.FramePing, 0, 0, "12345678")
				}
				time.Sleep(time.Hour) // virtual
			})
			resp := new(page.Response)
			var e *Error
			if err := c.Get(t.Context(), Request{URL: "https://slow.example/"}, resp); !errors.As(err, &e) ||
				e.Failure != page.Timeout {
				t.Errorf("got %v, want a timeout", err)
			}
			if resp.Total != 30*time.Second {
				t.Errorf("took %v", resp.Total)
			}
		})
	}
}

// Frames that are allowed but unusual do no harm, and the connection is reused.
func TestHTTP2Unusual(t *testing.T) {
	const body = "hello, world"
	text := func(status, extra, body string) string { return "HTTP/1.1 " + status + "\r\n" + extra + "\r\n" + body }
	tests := []struct {
		name string
		send func(p *peer, stream uint32)
		want string
	}{
		{"plain", func(p *peer, s uint32) { p.answer(s, body) }, text("200 OK", "", body)},
		{"fields in their order", func(p *peer, s uint32) {
			p.head(s, false, ":status", "200", "x-b", "1", "a", "2", "x-b", " 3\t", "content-length", "12", "empty", "")
			p.WriteData(s, true, []byte(body))
		}, text("200 OK", "X-B: 1\r\nA: 2\r\nX-B: 3\r\nContent-Length: 12\r\nEmpty: \r\n", body)},
		{"all in crumbs", func(p *peer, s uint32) {
			w := p.Conn
			for _, f := range [][]byte{rawFrame(http2.FrameHeaders, 4, s, okHead), rawFrame(http2.FrameData, 1, s, body)} {
				for i := range f {
					w.Write(f[i : i+1])
				}
			}
		}, text("200 OK", "", body)},
		{"interim answers", func(p *peer, s uint32) {
			p.head(s, false, ":status", "100")
			p.head(s, false, ":status", "103", "link", "</style.css>")
			p.answer(s, body)
		}, text("200 OK", "", body)},
		{"trailers", func(p *peer, s uint32) {
			p.head(s, false, ":status", "200", "trailer", "digest")
			p.WriteData(s, false, []byte(body))
			p.head(s, true, "digest", "x")
		}, text("200 OK", "Trailer: digest\r\n", body)},
		{"padding", func(p *peer, s uint32) {
			p.WriteHeaders(http2.HeadersFrameParam{StreamID: s, BlockFragment: []byte(okHead), EndHeaders: true, PadLength: 7,
				Priority: http2.PriorityParam{StreamDep: 3, Weight: 1}})
			p.WriteDataPadded(s, false, []byte(body[:5]), make([]byte, 200))
			p.WriteDataPadded(s, true, []byte(body[5:]), nil)
		}, text("200 OK", "", body)},
		{"continued", func(p *peer, s uint32) {
			block := p.block(":status", "404", "a", "b", "c", "d")
			p.WriteHeaders(http2.HeadersFrameParam{StreamID: s, BlockFragment: block[:1]})
			p.WriteContinuation(s, false, nil)
			p.WriteContinuation(s, false, block[1:4])
			p.WriteContinuation(s, true, block[4:])
			p.WriteData(s, true, []byte(body))
		}, text("404 Not Found", "A: b\r\nC: d\r\n", body)},
		{"no body", func(p *peer, s uint32) { p.head(s, true, ":status", "204") }, text("204 No Content", "", "")},
		{"not modified", func(p *peer, s uint32) { p.head(s, true, ":status", "304", "content-length", "77") },
			text("304 Not Modified", "Content-Length: 77\r\n", "")},
		{"empty end", func(p *peer, s uint32) {
			p.head(s, false, ":status", "200")
			p.WriteData(s, false, []byte(body))
			p.WriteData(s, true, nil)
		}, text("200 OK", "", body)},
		{"an unknown status", func(p *peer, s uint32) { p.head(s, true, ":status", "799") }, text("799 ", "", "")},
		{"one length, twice", func(p *peer, s uint32) {
			p.head(s, false, ":status", "200", "content-length", "12, 12", "content-length", "12")
			p.WriteData(s, true, []byte(body))
		}, text("200 OK", "Content-Length: 12, 12\r\nContent-Length: 12\r\n", body)},
		{"fields of a connection", func(p *peer, s uint32) {
			p.head(s, false, ":status", "200", "connection", "upgrade", "upgrade", "h2c", "transfer-encoding", "chunked",
				"keep-alive", "x", "a", "b")
			p.WriteData(s, true, []byte(body))
		}, text("200 OK", "A: b\r\n", body)},
		{"in between", func(p *peer, s uint32) {
			for range 100 {
				p.WritePing(false, [8]byte{1})
				p.WritePriority(s+2, http2.PriorityParam{StreamDep: s})
				p.raw(0xa, 0, 0, "alternative service")
				p.WriteWindowUpdate(s, 1)
				p.WriteWindowUpdate(0, 1)
				p.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 1}, http2.Setting{ID: 99, Val: 1 << 31})
			}
			p.answer(s, body)
			p.WritePing(false, [8]byte{2})
			p.WriteRSTStream(s, http2.ErrCodeNo)
			p.WriteWindowUpdate(s, 1)
		}, text("200 OK", "", body)},
		{"tables that change", func(p *peer, s uint32) {
			p.encoder.SetMaxDynamicTableSize(0)
			p.encoder.SetMaxDynamicTableSize(100)
			p.WriteSettings(http2.Setting{ID: http2.SettingHeaderTableSize, Val: 0})
			p.answer(s, body)
		}, text("200 OK", "", body)},
	}
	var conns atomic.Int32
	addr := serveSecond(t, func(_ int, p *peer) {
		conns.Add(1)
		p.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		for _, tt := range append(tests, tests...) {
			stream := p.request()
			if stream == 0 {
				return
			}
			tt.send(p, stream)
		}
		p.drain()
	})
	c, resp := newClient(t, Config{InsecureTLS: true}), new(page.Response)
	for i, tt := range append(tests, tests...) {
		if err := c.Get(t.Context(), Request{URL: "https://" + addr + "/"}, resp); err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		odd := strings.HasPrefix(tt.name, "fields of a connection")
		if string(resp.Raw) != tt.want || resp.Truncated != page.Whole || (resp.Malformed != "") != odd ||
			resp.Proto != "HTTP/2.0" {
			t.Errorf("%s: truncated %q, malformed %q, %s, raw %q, want %q", tt.name, resp.Truncated, resp.Malformed, resp.Proto,
				resp.Raw, tt.want)
		}
		if string(resp.Payload) != tt.want[resp.HeadLen:] || resp.FirstByte <= 0 || (resp.Handshake > 0) != (i == 0) {
			t.Errorf("%s: payload %q, first byte %v, handshake %v", tt.name, resp.Payload, resp.FirstByte, resp.Handshake)
		}
	}
	if n := conns.Load(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}

// A request that the server refused to process is sent again on another connection, a limited number of times.
func TestHTTP2Refused(t *testing.T) {
	refuse := map[string]func(p *peer, stream uint32){
		"REFUSED_STREAM": func(p *peer, s uint32) { p.WriteRSTStream(s, http2.ErrCodeRefusedStream) },
		"GOAWAY":         func(p *peer, s uint32) { p.WriteGoAway(s-1, http2.ErrCodeEnhanceYourCalm, []byte("calm")) },
		"GOAWAY twice": func(p *peer, s uint32) {
			p.WriteGoAway(1<<31-1, http2.ErrCodeNo, nil)
			p.WriteGoAway(s-1, http2.ErrCodeNo, nil)
		},
	}
	for name, refuse := range refuse {
		for _, times := range []int{1, 2, 3} {
			t.Run(fmt.Sprintf("%s %d", name, times), func(t *testing.T) {
				var conns atomic.Int32
				addr := serveSecond(t, func(n int, p *peer) {
					conns.Add(1)
					p.WriteSettings()
					for stream := p.request(); stream != 0; stream = p.request() {
						if n < times {
							refuse(p, stream)
						} else {
							p.answer(stream, "at last")
						}
					}
				})
				c := newClient(t, Config{InsecureTLS: true, PerHost: 1})
				if times == maxRefusals {
					failure(t, c, "https://"+addr+"/", page.Reset)
				} else if resp := get(t, c, "https://"+addr+"/"); string(resp.Payload) != "at last" {
					t.Errorf("payload %q", resp.Payload)
				}
				if want := min(times+1, maxRefusals); int(conns.Load()) != want {
					t.Errorf("%d connections, want %d", conns.Load(), want)
				}
			})
		}
	}
}

// A connection with GOAWAY is not reused. A connection that the server closed while idle costs no page.
func TestHTTP2Goodbye(t *testing.T) {
	for name, leave := range map[string]func(p *peer, stream uint32){
		"with the answer": func(p *peer, s uint32) { p.WriteGoAway(s, http2.ErrCodeNo, nil); p.answer(s, "hi") },
		"behind it":       func(p *peer, s uint32) { p.answer(s, "hi"); p.WriteGoAway(s, http2.ErrCodeNo, nil) },
		"closed":          func(p *peer, s uint32) { p.answer(s, "hi"); p.Close() },
		"nonsense": func(p *peer, s uint32) {
			p.answer(s, "hi")
			p.raw(http2.FrameData, 0, s, "stray")
			p.Write([]byte("nonsense"))
		},
		"next request": func(p *peer, s uint32) {
			p.answer(s, "hi")
			s = p.request()
			p.WriteGoAway(s-2, http2.ErrCodeNo, nil)
			p.Close()
		},
		"closed on next": func(p *peer, s uint32) { p.answer(s, "hi"); p.request(); p.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			addr := serveSecond(t, func(_ int, p *peer) {
				p.WriteSettings()
				if stream := p.request(); stream != 0 {
					leave(p, stream)
					p.drain()
				}
			})
			c := newClient(t, Config{InsecureTLS: true, PerHost: 1, Timeout: 10 * time.Second})
			for range 4 {
				if name == "nonsense" { // may be read before the next response
					resp := new(page.Response)
					if c.Get(t.Context(), Request{URL: "https://" + addr + "/"}, resp); len(resp.Payload) > 2 {
						t.Errorf("payload %q", resp.Payload)
					}
				} else if resp := get(t, c, "https://"+addr+"/"); string(resp.Payload) != "hi" {
					t.Errorf("payload %q", resp.Payload)
				}
			}
		})
	}
}

// A server that requires HTTP/1.1 for a request gets it.
func TestHTTP11Required(t *testing.T) {
	cert := testCertificate(t)
	var second atomic.Int32
	addr := serve(t, func(_ int, raw net.Conn) {
		conn := tls.Server(raw, &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2", "http/1.1"}})
		if conn.Handshake() != nil {
			return
		}
		if conn.ConnectionState().NegotiatedProtocol == "h2" {
			second.Add(1)
			p := newPeer(conn)
			p.greeted()
			p.WriteSettings()
			p.WriteRSTStream(p.request(), http2.ErrCodeHTTP11Required)
			p.drain()
			return
		}
		for r := bufio.NewReader(conn); readHead(r) != ""; {
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nHTTP/1.1")
		}
	})
	c := newClient(t, Config{InsecureTLS: true, PerHost: 1})
	for range 2 {
		if resp := get(t, c, "https://"+addr+"/"); string(resp.Payload) != "HTTP/1.1" {
			t.Errorf("payload %q", resp.Payload)
		}
	}
	if n := second.Load(); n != 1 {
		t.Errorf("%d connections for HTTP/2, want 1", n)
	}
}

// A request too large for one frame is split into several. Secrets are redacted in the recorded form.
func TestHTTP2LargeRequest(t *testing.T) {
	var got atomic.Value
	srv := httptest.NewUnstartedServer(handler(func(_ http.ResponseWriter, r *http.Request) { got.Store(r.Header) }))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	long, token := strings.Repeat("é~x", 20_000), strings.Repeat("secret", 100)
	c := newClient(t, Config{InsecureTLS: true, Header: http.Header{"X-Long": {long}, "X-Token": {token},
		"Two": {"1", "2"}}})
	resp := new(page.Response)
	for range 2 {
		if err := c.Get(t.Context(), Request{URL: srv.URL + "/", Trusted: true, ETag: `"x"`}, resp); err != nil {
			t.Fatal(err)
		}
		h := got.Load().(http.Header)
		if h.Get("X-Long") != long || h.Get("X-Token") != token || fmt.Sprint(h["Two"]) != "[1 2]" ||
			h.Get("If-None-Match") != `"x"` {
			t.Errorf("the server got %d bytes, %q, %q", len(h.Get("X-Long")), h.Get("X-Token"), h["Two"])
		}
		if raw := string(resp.RequestRaw); strings.Contains(raw, "secret") || !strings.Contains(raw,
			"X-Long: "+long+"\r\n") ||
			!strings.HasPrefix(raw, "GET / HTTP/1.1\r\nHost: ") || !strings.HasSuffix(raw, "\r\n\r\n") {
			t.Errorf("request of %d bytes", len(raw))
		}
	}
}
