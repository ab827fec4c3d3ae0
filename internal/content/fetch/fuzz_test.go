package fetch

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"kumo/internal/base/page"
	"kumo/internal/state/store/warc"
)

var answers = []string{
	"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\nabc\r\n0\r\nT: x\r\n\r\nmore",
	"HTTP/1.1 103 Early\r\n\r\nHTTP/1.0 404 No\nTransfer-Encoding: chunked\n\n5\n",
	"HTTP/1.1 200 OK\r\nContent-Length:\r\n 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\nhello", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: " +
		"5,6\r\n\r\nhello",
	"HTTP/1.1 200 OK\nContent-Length:2\n \n\nok",
	"HTTP/1.1 200 OK\r\nX: a\x01b\x7f\r\nContent-Length: 2\r\n\r\nok", "HTTP/1.1 200 OK\r\nX: a\x00b\r\n\r\n",
	"\r\nHTTP/1.1 200 OK\r\nno colon\r\n  on\r\nContent-Encoding : x\r\nContent-Length: 2, 2\r\n\r\nok",
	"http/1.0 200\nTransfer-Encoding: chunked\n\nok",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked, Chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
	"HTTP/1.1 000 x\n\nbody", "HTTP/1.1 304 x\r\nContent-Length: 5\r\n\r\n", "HTTP/1.1 101 x\r\n\r\n", "SSH-2.0\r\n", "",
}

// FuzzFramer compares the framer with net/http: the status, fields, body and end of a response must be equal, however
// the bytes arrive. The reader of WARC records must parse everything that the framer accepts beyond that in the same
// way.
func FuzzFramer(f *testing.F) {
	for _, a := range answers {
		f.Add([]byte(a), uint8(1))
	}
	f.Fuzz(func(t *testing.T, raw []byte, step uint8) {
		fr := framer{maxHead: 1 << 30, maxBody: 1 << 30, fields: http.Header{}}
		end := len(raw)
		var bad error
		for n := 0; n < len(raw) && end == len(raw) && bad == nil; {
			n = min(len(raw), n+int(step)+1)
			var e int
			if e, bad = fr.advance(raw[:n]); e < n {
				end = e
			}
		}
		in := bytes.NewReader(raw)
		r := bufio.NewReader(in)
		answer, err := http.ReadResponse(r, nil)
		for err == nil && answer.StatusCode/100 == 1 && answer.StatusCode != 101 {
			answer, err = http.ReadResponse(r, nil)
		}
		if bytes.Contains(raw, []byte(" +")) && fr.end == 0 {
			return // net/http accepts "+00" as a status of three digits
		}
		if err == nil && answer.StatusCode < minStatus || bytes.Count(raw, []byte("\n")) > maxFields {
			return // net/http accepts it
		}
		if err == nil && fr.end == 0 {
			t.Fatalf("net/http reads a head, but the framer none (%v) of %q", bad, raw)
		}
		if fr.end == 0 || fr.head.status == 101 || fr.head.proto == "HTTP/0.0" { // net/http reads it as 1.1
			return
		}
		rec := warc.Record{Block: raw[fr.start:]}
		kept, keptErr := rec.Response()
		if keptErr != nil || kept.StatusCode != fr.head.status || kept.Proto != fr.head.proto {
			t.Fatalf("the framer has %+v, a record %v (%v) of %q", fr.head, kept, keptErr, raw)
		}
		if err != nil || blankColon.Match(raw[:fr.end]) { // net/http keeps the blank in the name
			answer, in, r = kept, nil, nil
		}
		if answer.StatusCode != fr.head.status || answer.Proto != fr.head.proto || answer.Close != fr.head.closing &&
			answer.ContentLength >= 0 {
			t.Fatalf("net/http has %s %d, close %v; framer %+v of %q", answer.Proto, answer.StatusCode, answer.Close, fr.head,
				raw)
		}
		fr.fields.Del("Connection") // net/http removes "close"
		answer.Header.Del("Connection")
		for _, h := range []http.Header{answer.Header, fr.fields} {
			for _, values := range h { // net/http keeps the space of a blank folded line
				for i := range values {
					values[i] = strings.Trim(noControls(values[i]), " ")
				}
			}
		}
		if !maps.EqualFunc(answer.Header, fr.fields, slices.Equal) {
			t.Fatalf("net/http has %v, framer %v of %q", answer.Header, fr.fields, raw)
		}
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			return
		}
		mine := raw[fr.end:end]
		if fr.head.chunked {
			mine = fr.chunks
		}
		if in == nil {
			if bad == nil && !bytes.Equal(mine, body) {
				t.Fatalf("a record has a body of %q, the framer %q of %q", body, mine, raw)
			}
			return
		}
		if used := len(raw) - in.Len() - r.Buffered(); bad != nil || !bytes.Equal(mine, body) || fr.state == complete &&
			end != used {
			t.Fatalf("net/http reads %d bytes and a body of %q, framer %d (%v) and %q of %q", used, body, end, bad, mine, raw)
		}
	})
}

var blankColon = regexp.MustCompile(`[ \t]:`)

// noControls replaces each control character by a space, like the reader of records.
func noControls(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c < ' ' && c != '\t' || c == 0x7f {
			b[i] = ' '
		}
	}
	return string(b)
}

// FuzzGet has a server send any bytes, twice on one connection, into a reused Response.
func FuzzGet(f *testing.F) {
	for _, a := range answers {
		f.Add([]byte(a))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		c := newClient(t, Config{Timeout: 10 * time.Millisecond, MaxBody: 1000, MaxHeader: 2000})
		piped(t, c, func(conn net.Conn) {
			r := bufio.NewReader(conn)
			for i := 0; i < 2 && readHead(r) != ""; i++ {
				conn.Write(answer)
			}
		})
		resp := new(page.Response)
		for range 2 {
			err := c.Get(t.Context(), Request{URL: "http://a.example/"}, resp)
			if err != nil && resp.HeadLen != 0 || err == nil && resp.HeadLen == 0 {
				t.Fatalf("%v, but head of %d bytes, status %d", err, resp.HeadLen, resp.Status)
			}
			if !bytes.Contains(answer, resp.Raw) || len(resp.Payload) > 1000 || len(resp.Raw) > 2000+2*1000 {
				t.Fatalf("raw %q, payload %q of %q", resp.Raw, resp.Payload, answer)
			}
			Decode(resp, 5000)
			if len(resp.Body) > 5000 {
				t.Fatalf("body of %d bytes", len(resp.Body))
			}
		}
	})
}

func FuzzDecode(f *testing.F) {
	for _, name := range []string{"gzip", "deflate", "br", "zstd"} {
		f.Add(encode(f, sample[:1000], name), name, 2000)
	}
	f.Add(encode(f, sample[:1000], "gzip", "br"), "gzip, br", 10)
	f.Fuzz(func(t *testing.T, payload []byte, header string, limit int) {
		limit &= 1<<22 - 1
		resp := coded(payload, header)
		if err := Decode(resp, int64(limit)); len(resp.Body) > limit {
			t.Fatalf("%v: %d bytes, limit %d", err, len(resp.Body), limit)
		}
		if codings, err := contentCodings(resp.Header); err == nil && len(codings) == 1 && codings[0].whole != nil &&
			len(payload) > 0 {
			compareReader(t, payload, codings, int64(limit))
		}
	})
}

// compareReader checks that decoding in one call equals decoding by a reader. A reader accepts a few corrupt streams,
// as the tests of package inflate show, and may decode less of others.
func compareReader(t *testing.T, payload []byte, codings []coding, limit int64) {
	body, err := decodeWhole(nil, payload, codings[0], limit, ErrTooLong)
	want, wantErr := decodeLayers(nil, &page.Response{Payload: payload}, codings, limit, ErrTooLong)
	switch {
	case err != nil && wantErr == nil:
		return
	case errors.Is(err, ErrTooLong) && errors.Is(wantErr, io.ErrUnexpectedEOF) && bytes.HasPrefix(body, want):
		return // the last bits of a truncated stream exceeded the limit
	case (err == nil) != (wantErr == nil), errors.Is(err, ErrTooLong) != errors.Is(wantErr, ErrTooLong):
	case bytes.Equal(body, want), err != nil && bytes.HasPrefix(body, want):
		return
	}
	t.Fatalf("%s: %d bytes, %v, but a reader gives %d, %v; limit %d, of %x", codings[0].name, len(body), err, len(want),
		wantErr, limit, payload)
}

func FuzzLoadCookies(f *testing.F) {
	f.Add("example.com\tTRUE\t/\tFALSE\t0\ta\tb\n", "http://example.com/")
	f.Add("#HttpOnly_.example.com\tfalse\t/a\ttrue\t1e9\ta\n# x\n\n", "https://www.example.com/a/b?c")
	f.Fuzz(func(t *testing.T, file, url string) {
		c, err := LoadCookies(strings.NewReader(file))
		if err != nil {
			return
		}
		tg, err := parseTarget(url)
		if err != nil {
			return
		}
		if h := cookieHeader(c, tg, time.Unix(0, 0)); strings.ContainsAny(h, "\r\n\x00") {
			t.Fatalf("field %q", h)
		}
	})
}
