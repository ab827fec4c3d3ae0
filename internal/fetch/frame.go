package fetch

import (
	"bytes"
	"strconv"
)

// A framer follows an HTTP/1 answer as its bytes arrive and knows where it ends. It reads framing as net/http does, but for what
// it is unsure of, which it takes to last until the connection closes: then net/http decides alone.
type framer struct {
	state frameState
	pos   int // all before it is understood
	seen  int // no line ends between pos and here

	start, end int // the final answer's head; end is 0 until it is complete
	status     int
	version1   bool // HTTP/1.1, where chunks are known
	length     int64
	chunked    bool
	unsure     bool
	left       int64 // bytes of body or chunk to come
}

type frameState uint8

const (
	statusLine frameState = iota
	fields
	plainBody
	untilClose
	chunkHead
	chunkData
	chunkTail
	trailers
	complete
)

// advance looks at what has arrived since the last call, raw being all of the answer so far, and returns where the answer ends:
// len(raw), or less if there is more in raw than that.
func (f *framer) advance(raw []byte) int {
	for f.step(raw) {
	}
	if f.state == complete {
		return f.pos
	}
	return len(raw)
}

// step reads one line or one stretch of body. It reports whether to go on.
func (f *framer) step(raw []byte) bool {
	switch f.state {
	case complete, untilClose:
		return false
	case plainBody, chunkData:
		n := min(f.left, int64(len(raw)-f.pos))
		f.pos += int(n)
		if f.left -= n; f.left > 0 {
			return false
		}
		if f.state == plainBody {
			f.state = complete
		} else {
			f.state = chunkTail
		}
		return true
	}
	line, ok := f.line(raw)
	if ok {
		f.take(line)
	}
	return ok
}

// line returns the next line without its end.
func (f *framer) line(raw []byte) ([]byte, bool) {
	from := max(f.pos, f.seen)
	n := bytes.IndexByte(raw[from:], '\n')
	if n < 0 {
		f.seen = len(raw)
		return nil, false
	}
	line := raw[f.pos : from+n]
	f.pos = from + n + 1
	return bytes.TrimSuffix(line, []byte("\r")), true
}

func (f *framer) take(line []byte) {
	switch f.state {
	case statusLine:
		f.takeStatus(line)
	case fields:
		f.takeField(line)
	case chunkHead:
		f.takeChunk(line)
	case chunkTail:
		f.state = chunkHead
		if len(line) > 0 {
			f.state = untilClose // damaged: net/http will say so
		}
	case trailers:
		if len(line) == 0 {
			f.state = complete
		}
	}
}

func (f *framer) takeStatus(line []byte) {
	version, status, _ := bytes.Cut(line, []byte(" "))
	status, _, _ = bytes.Cut(bytes.TrimLeft(status, " "), []byte(" "))
	f.version1 = string(version) == "HTTP/1.1"
	f.status, _ = strconv.Atoi(string(status))
	f.length, f.chunked, f.unsure = -1, false, false
	f.state = fields
}

func (f *framer) takeField(line []byte) {
	if len(line) == 0 {
		f.takeHead()
		return
	}
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimSpace(value)
	switch {
	case line[0] == ' ' || line[0] == '\t':
		f.unsure = true // a folded field; it might be one of those below
	case bytes.EqualFold(name, []byte("Content-Length")):
		n, err := strconv.ParseUint(string(value), 10, 63)
		f.unsure = f.unsure || err != nil || f.length >= 0 && f.length != int64(n)
		f.length = int64(n)
	case bytes.EqualFold(name, []byte("Transfer-Encoding")):
		f.unsure = f.unsure || f.chunked || !bytes.EqualFold(value, []byte("chunked"))
		f.chunked = true
	}
}

// takeHead decides what follows a head. Interim answers (1xx) are followed by another head; 101 ends the exchange.
func (f *framer) takeHead() {
	interim := f.status/100 == 1
	if interim && f.status != 101 {
		f.start, f.state = f.pos, statusLine
		return
	}
	f.end = f.pos
	switch {
	case interim || f.status == 204 || f.status == 304:
		f.state = complete
	case f.unsure:
		f.state = untilClose
	case f.chunked && f.version1:
		f.state = chunkHead
	case f.length >= 0:
		f.state, f.left = plainBody, f.length
	default:
		f.state = untilClose
	}
}

func (f *framer) takeChunk(line []byte) {
	line, _, _ = bytes.Cut(line, []byte(";"))
	size, err := strconv.ParseUint(string(bytes.TrimSpace(line)), 16, 62)
	switch {
	case err != nil:
		f.state = untilClose // damaged: net/http will say so
	case size == 0:
		f.state = trailers
	default:
		f.state, f.left = chunkData, int64(size)
	}
}
