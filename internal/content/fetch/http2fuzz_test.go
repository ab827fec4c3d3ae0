package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"kumo/internal/base/page"
)

// A canned connection returns fixed data in pieces of a given size, and discards writes.
type canned struct {
	net.Conn
	text []byte
	step int
	sent int
}

func (c *canned) Read(b []byte) (int, error) {
	if len(c.text) == 0 {
		return 0, io.EOF
	}
	n := copy(b, c.text[:min(len(c.text), c.step)])
	c.text = c.text[n:]
	return n, nil
}
func (c *canned) Write(b []byte) (int, error)      { c.sent += len(b); return len(b), nil }
func (c *canned) Close() error                     { return nil }
func (c *canned) SetDeadline(time.Time) error      { return nil }
func (c *canned) SetReadDeadline(time.Time) error  { return nil }
func (c *canned) SetWriteDeadline(time.Time) error { return nil }
func (c *canned) RemoteAddr() net.Addr             { return &net.TCPAddr{} }

func framesOf(frames ...[]byte) []byte { return bytes.Join(frames, nil) }

// FuzzHTTP2: whatever a server sends, the exchange ends within its limits, with the same result however the bytes
// arrive. A response that counts as complete is what another implementation reads.
func FuzzHTTP2(f *testing.F) {
	settings, head := rawFrame(4, 0, 0, ""), rawFrame(1, 4, 1, okHead)
	for _, text := range [][]byte{
		framesOf(settings, head, rawFrame(0, 1, 1, "hello")),
		framesOf(settings, rawFrame(1, 4, 1, "\x08\x03103"), head, rawFrame(0, 8, 1, "\x02ab\x00\x00"),
			rawFrame(1, 5, 1, "\x40\x01a\x01b")),
		framesOf(settings, rawFrame(1, 0, 1, okHead), rawFrame(9, 4, 1, "\x40\x04etag\x01x\x90\xbe"), rawFrame(0, 1, 1, "")),
		framesOf(settings, rawFrame(6, 0, 0, "12345678"), rawFrame(8, 0, 1, "\x7f\xff\xff\xff"),
			rawFrame(3, 0, 1, "\x00\x00\x00\x07")),
		framesOf(settings, rawFrame(7, 0, 0, "\x00\x00\x00\x01\x00\x00\x00\x00"), rawFrame(1, 5, 1, "\x8b")),
		[]byte("HTTP/1.1 200 OK\r\n\r\n"),
	} {
		f.Add(text, uint8(0))
		f.Add(text, uint8(200))
	}
	f.Fuzz(func(t *testing.T, text []byte, step uint8) {
		whole, crumbs := cannedGet(t, text, 1<<20), cannedGet(t, text, int(step)+1)
		if fmt.Sprint(whole.err) != fmt.Sprint(crumbs.err) || !bytes.Equal(whole.Raw, crumbs.Raw) ||
			whole.Truncated != crumbs.Truncated {
			t.Fatalf("%v, %q, %q; in steps of %d %v, %q, %q; of %x", whole.err, whole.Raw, whole.Truncated, int(step)+1,
				crumbs.err, crumbs.Raw, crumbs.Truncated, text)
		}
		if whole.err == nil && whole.Truncated == page.Whole {
			compareFramer(t, text, whole)
		}
	})
}

type cannedAnswer struct {
	page.Response
	err error
}

func cannedGet(t *testing.T, text []byte, step int) *cannedAnswer {
	c := newClient(t, Config{MaxBody: 1000, MaxHeader: 2000})
	c.connectTo = func(_ context.Context, _ target) (link, error) { return link{}, errors.New("only one connection") }
	wire := &canned{text: bytes.Clone(text), step: step}
	w := c.newWire(wire)
	conn := &conn{Conn: w, wire: w, site: site{tls: true, host: "a.example"}, socket: newSocket(wire),
		session: newSession(2000)}
	resp := new(page.Response)
	tg, _ := parseTarget("https://a.example/")
	x := newExchange(t.Context(), c, Request{URL: "https://a.example/"}, tg, resp)
	if c, err := c.conns.acquire(t.Context(), conn.site, x.deadline); c != nil || err != nil {
		t.Fatal(c, err)
	}
	err := x.roundTrip(conn)
	x.returnBuffers()
	if len(resp.Payload) > 1000 || resp.HeadLen > 2000+200 || err == nil && resp.HeadLen == 0 {
		t.Fatalf("%v: head of %d bytes, payload of %d, of %x", err, resp.HeadLen, len(resp.Payload), text)
	}
	if most := 1000 + 17*maxEmptyFrames; wire.sent > most {
		t.Fatalf("%d bytes were sent, of %x", wire.sent, text)
	}
	return &cannedAnswer{*resp, err}
}

// compareFramer checks that golang.org/x/net/http2 reads the same complete response.
func compareFramer(t *testing.T, text []byte, resp *cannedAnswer) {
	fr := http2.NewFramer(io.Discard, bytes.NewReader(text))
	fr.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	fr.MaxHeaderListSize = 1 << 20
	var body []byte
	var status string
	fields := make(http.Header)
	for ended := false; !ended; {
		f, err := fr.ReadFrame()
		if err != nil && strings.HasPrefix(fmt.Sprint(fr.ErrorDetail()), "invalid header field value") {
			return // it rejects all control characters, RFC 9113 (8.2.1) only NUL, CR and LF
		}
		if err != nil {
			t.Fatalf("x/net: %v (%v), of %x", err, fr.ErrorDetail(), text)
		}
		switch f := f.(type) {
		case *http2.MetaHeadersFrame:
			if ended = f.StreamEnded(); status != "" && status[0] != '1' {
				continue // trailers
			}
			status = f.PseudoValue("status")
			clear(fields)
			for _, field := range f.RegularFields() {
				if !notOverHTTP2[field.Name] {
					name := textproto.CanonicalMIMEHeaderKey(field.Name)
					fields[name] = append(fields[name], strings.Trim(field.Value, " \t"))
				}
			}
		case *http2.DataFrame:
			body = append(body, f.Data()...)
			ended = f.StreamEnded()
		}
	}
	if n := fields["Content-Length"]; len(n) > 1 {
		fields["Content-Length"] = n[:1]
	}
	if fmt.Sprint(resp.Status) != strings.TrimLeft(status, "0") || !bytes.Equal(body, resp.Payload) {
		t.Fatalf("status %d, body %q; x/net has %s, %q, of %x", resp.Status, resp.Payload, status, body, text)
	}
	if got, want := fmt.Sprint(resp.Header), fmt.Sprint(fields); got != want {
		t.Fatalf("fields %s; x/net has %s, of %x", got, want, text)
	}
}
