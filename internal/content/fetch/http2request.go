package fetch

import (
	"encoding/binary"
	"strings"

	"golang.org/x/net/http2/hpack"
)

// preface is the start of each client connection (RFC 9113, 3.4). SETTINGS follows.
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// Requests do not use the dynamic table. So the fields common to all requests are encoded once, and no state can
// diverge from the server's.
const (
	indexedGet    = 0x82 // fields in the static table (RFC 7541, appendix A)
	indexedHTTPS  = 0x87
	authorityName = 1 // names in the static table
	methodName    = 2
	pathName      = 4

	neverIndexed = 0x10 // literal that proxies must not add to their tables either
	huffmanCoded = 0x80 // flag of a string
	emptyTable   = 0x20 // sets the size of the dynamic table to 0
)

// appendFrames appends the frames that the session has queued and the request for t as HTTP/2 frames.
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

// splitBlock sets the length of the HEADERS frame that begins at start and extends to the end of b. It moves data
// beyond the maximum frame size into CONTINUATION frames.
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

// appendLiteral appends a field with a literal name.
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

// appendPrefixed appends an integer with a 7-bit prefix (RFC 7541, 5.1).
func appendPrefixed(b []byte, first byte, n uint64) []byte {
	const prefix = 1<<7 - 1
	if n < prefix {
		return append(b, first|byte(n))
	}
	return binary.AppendUvarint(append(b, first|prefix), n-prefix)
}
