package fetch

import (
	"encoding/binary"
	"strings"

	"golang.org/x/net/http2/hpack"
)

// preface is what a client says first, RFC 9113 3.4. SETTINGS follow.
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// Requests are encoded without the dynamic table: what all of them share is encoded once for all, and no state can
// differ from the server's.
const (
	indexedGet    = 0x82 // fields that the static table has, RFC 7541 appendix A
	indexedHTTPS  = 0x87
	authorityName = 1 // names that it has
	methodName    = 2
	pathName      = 4

	neverIndexed = 0x10 // of a literal, which a proxy must not put into its table either
	huffmanCoded = 0x80 // of a string
	emptyTable   = 0x20 // sets the size of the dynamic table to 0
)

// appendFrames appends what the session has to say and the request for t as HTTP/2 sends it.
func (c *Client) appendFrames(b []byte, s *session, m *liveSettings, req *Request, t target, cookie string) []byte {
	if s.stream == 1 {
		b = s.appendPreface(b)
	}
	b, s.out = append(b, s.out...), s.out[:0]
	start := len(b)
	b = appendFrame(b, headersFrame, flagEndHeaders|flagEndStream, s.stream, 0)
	if s.resetTable {
		b, s.resetTable = append(b, emptyTable), false
	}
	if req.Head {
		b = appendString(append(b, methodName), "HEAD")
	} else {
		b = append(b, indexedGet)
	}
	b = append(b, indexedHTTPS)
	b = appendString(append(b, authorityName), t.host)
	b = appendString(append(b, pathName), t.path)
	b = append(b, m.fieldsFor(req).block...)
	for _, f := range c.requestFields(req, t, cookie) {
		b = appendLiteral(b, f.name, f.value)
	}
	return splitBlock(b, start)
}

func (s *session) appendPreface(b []byte) []byte {
	b = append(b, preface...)
	b = appendFrame(b, settingsFrame, 0, 0, 3*settingSize)
	b = appendSetting(b, settingEnablePush, 0)
	b = appendSetting(b, settingInitialWindowSize, receiveWindow)
	b = appendSetting(b, settingMaxHeaderListSize, uint32(min(s.maxHead, maxWindowSize)))
	b = appendWindowUpdate(b, 0, receiveWindow-s.received.all)
	s.received.all = receiveWindow
	return b
}

// splitBlock gives the HEADERS frame at start, which goes on to the end of b, its length. What one frame must not hold
// goes on in others.
func splitBlock(b []byte, start int) []byte {
	rest := b[start+frameHeader:]
	if len(rest) <= maxFrame {
		putLength(b[start:], len(rest))
		return b
	}
	rest = append([]byte(nil), rest[maxFrame:]...)
	b = b[:start+frameHeader+maxFrame]
	putLength(b[start:], maxFrame)
	b[start+4] &^= flagEndHeaders
	stream := binary.BigEndian.Uint32(b[start+5:])
	for len(rest) > 0 {
		n, flags := min(len(rest), maxFrame), uint8(0)
		if n == len(rest) {
			flags = flagEndHeaders
		}
		b = append(appendFrame(b, continuationFrame, flags, stream, n), rest[:n]...)
		rest = rest[n:]
	}
	return b
}

func putLength(frame []byte, n int) { frame[0], frame[1], frame[2] = byte(n>>16), byte(n>>8), byte(n) }

// appendLiteral appends a field whose name the static table need not have.
func appendLiteral(b []byte, name, value string) []byte {
	var kind byte
	if IsSecret(name) {
		kind = neverIndexed
	}
	return appendString(appendString(append(b, kind), strings.ToLower(name)), value)
}

func appendString(b []byte, s string) []byte {
	if n := hpack.HuffmanEncodeLength(s); n < uint64(len(s)) {
		return hpack.AppendHuffmanString(appendPrefixed(b, huffmanCoded, n), s)
	}
	return append(appendPrefixed(b, 0, uint64(len(s))), s...)
}

// appendPrefixed appends an integer whose first byte has seven bits for it, RFC 7541 5.1.
func appendPrefixed(b []byte, first byte, n uint64) []byte {
	const prefix = 1<<7 - 1
	if n < prefix {
		return append(b, first|byte(n))
	}
	return binary.AppendUvarint(append(b, first|prefix), n-prefix)
}
