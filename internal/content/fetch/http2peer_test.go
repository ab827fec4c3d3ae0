package fetch

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/http/httptest"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

func testCertificate(t testing.TB) tls.Certificate {
	t.Helper()
	s := httptest.NewUnstartedServer(nil)
	s.StartTLS()
	defer s.Close()
	return s.TLS.Certificates[0]
}

// A peer is the server's end of an HTTP/2 connection. Another implementation's framer writes well-formed frames; raw
// writes all others.
type peer struct {
	net.Conn
	*http2.Framer
	fields  bytes.Buffer
	encoder *hpack.Encoder
}

// serveSecond runs handle for each TLS connection with HTTP/2, after the client's preface was read.
func serveSecond(t testing.TB, handle func(n int, p *peer)) string {
	cert := testCertificate(t)
	return serve(t, func(n int, raw net.Conn) {
		conn := tls.Server(raw, &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2"}})
		p := newPeer(conn)
		if p.greeted() {
			handle(n, p)
		}
	})
}

func newPeer(conn net.Conn) *peer {
	p := &peer{Conn: conn, Framer: http2.NewFramer(conn, conn)}
	p.AllowIllegalWrites = true
	p.encoder = hpack.NewEncoder(&p.fields)
	return p
}

func (p *peer) greeted() bool {
	preface := make([]byte, len(http2.ClientPreface))
	_, err := io.ReadFull(p.Conn, preface)
	return err == nil && string(preface) == http2.ClientPreface
}

// request reads frames up to the end of a request's head, and returns its stream; 0 at the end of the connection.
func (p *peer) request() uint32 {
	for {
		f, err := p.ReadFrame()
		if err != nil {
			return 0
		}
		switch f := f.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() && p.WriteSettingsAck() != nil {
				return 0
			}
		case *http2.HeadersFrame:
			if f.HeadersEnded() {
				return f.StreamID
			}
		case *http2.ContinuationFrame:
			if f.HeadersEnded() {
				return f.StreamID
			}
		}
	}
}

// drain reads until the client closes the connection.
func (p *peer) drain() {
	for p.request() != 0 {
	}
}

// block encodes fields, given as alternating names and values.
func (p *peer) block(fields ...string) []byte {
	p.fields.Reset()
	for i := 0; i < len(fields); i += 2 {
		p.encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return bytes.Clone(p.fields.Bytes())
}

// head sends the head of a response.
func (p *peer) head(stream uint32, last bool, fields ...string) {
	p.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: p.block(fields...), EndHeaders: true,
		EndStream: last})
}

// answer sends a complete response.
func (p *peer) answer(stream uint32, body string) {
	p.head(stream, false, ":status", "200")
	p.WriteData(stream, true, []byte(body))
}

// raw writes a frame of any type, with flags and a payload that may be invalid for it.
func (p *peer) raw(kind http2.FrameType, flags http2.Flags, stream uint32, payload string) {
	p.Write(rawFrame(kind, flags, stream, payload))
}

func rawFrame(kind http2.FrameType, flags http2.Flags, stream uint32, payload string) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
	b = append(b, byte(flags))
	return append(binary.BigEndian.AppendUint32(b, stream), payload...)
}
