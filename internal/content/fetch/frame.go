package fetch

import (
	"bytes"
	"errors"
	"net/http"
	"strconv"
)

// A framer parses an HTTP/1 response incrementally. It parses the head, removes chunk headers from the body, and finds
// the end of the response. Of the data it holds only the content of chunks.
type framer struct {
	maxHead int64 // including interim responses
	maxBody int64
	// limits of some media types, which replace maxBody when the head is known
	bodyLimits []TypeLimit
	noBody     bool // the response to a HEAD request

	state frameState
	pos   int // all bytes before it are parsed
	seen  int // there is no line end between pos and seen

	start, end int // position of the final response's head; end is 0 until it is complete
	blankBytes int // bytes of empty lines before the response
	head       head
	fields     http.Header // reused; empty at the beginning
	left       int64       // remaining bytes of the body or chunk
	body       int64       // bytes of body, at most maxBody
	chunks     []byte      // the body, if it is chunked
}

type frameState uint8

const (
	inHead frameState = iota
	plainBody
	untilClose
	chunkHead
	chunkData
	chunkTail
	trailers
	complete
	broken
)

// maxInterim is the number of fields of an interim response up to which their map is reused for the final one.
const maxInterim = 32

// maxLead limits the empty lines before a status line, in bytes. They are left over from a previous response that was
// slightly longer than declared, and are not part of this one.
const maxLead = 4

// maxChunkLine limits the line of a chunk's size and extensions, in bytes. It is the same as in net/http.
const maxChunkLine = 4096

var (
	errFull     = errors.New("response exceeds the size limit")
	errLongHead = errors.New("head exceeds the size limit")
)

// advance parses the data that arrived since the last call. raw is the whole response so far. It returns the end of the
// response: len(raw), or less if other data follows. The error is errFull or describes malformed data; it is final.
func (f *framer) advance(raw []byte) (end int, err error) {
	for more := true; more && err == nil; {
		more, err = f.step(raw)
	}
	switch {
	case err != nil:
		f.state = broken
	case f.state == complete:
		return f.pos, nil
	case f.end == 0 && int64(len(raw)) >= f.maxHead:
		return len(raw), errLongHead
	}
	if errors.Is(err, errFull) {
		return f.pos, err
	}
	return len(raw), err
}

// step parses one line, one head or one part of a body. It reports whether to continue.
func (f *framer) step(raw []byte) (more bool, err error) {
	switch f.state {
	case complete, broken:
		return false, nil
	case plainBody, chunkData, untilClose:
		return f.readBody(raw)
	case inHead:
		return f.readHead(raw)
	}
	line, ok := f.line(raw)
	switch {
	case ok:
		return true, f.addBody(line)
	case f.state != trailers && len(raw)-f.pos > maxChunkLine, int64(len(raw)-f.pos) > f.maxHead:
		return false, malformed("chunk", string(raw[f.pos:min(len(raw), f.pos+quoted)]))
	}
	return false, nil
}

// readBody consumes the available part of a body or chunk.
func (f *framer) readBody(raw []byte) (more bool, err error) {
	n := int64(len(raw) - f.pos)
	if f.state != untilClose {
		n = min(n, f.left)
	}
	fits := min(n, f.maxBody-f.body)
	if f.state == chunkData {
		f.chunks = append(f.chunks, raw[f.pos:f.pos+int(fits)]...)
	}
	f.pos += int(fits)
	f.body += fits
	f.left -= n
	switch {
	case fits < n:
		return false, errFull
	case f.state == untilClose || f.left > 0:
		return false, nil
	case f.state == plainBody:
		f.state = complete
	default:
		f.state = chunkTail
	}
	return true, nil
}

// line returns the next line without its line end.
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

// readHead parses the head when it is complete. It fails as soon as the first line is not a status line.
func (f *framer) readHead(raw []byte) (more bool, err error) {
	for {
		begin := f.pos
		line, ok := f.line(raw)
		switch {
		case !ok:
			return false, nil
		case begin == f.start && len(line) == 0 && f.blankBytes+f.pos-begin <= maxLead:
			f.blankBytes += f.pos - begin
			f.start = f.pos
		case begin == f.start && !isHTTP(line), begin == f.start && len(line) < len("HTTP/"):
			return false, malformed("status line", string(line))
		case begin > f.start && len(line) == 0:
			return true, f.parseHead(raw[f.start:f.pos])
		}
	}
}

// parseHead parses a head and decides what follows it. Another head follows an interim response (1xx); 101 ends the
// exchange.
func (f *framer) parseHead(raw []byte) (err error) {
	if int64(f.pos) > f.maxHead {
		return errLongHead
	}
	clear(f.fields)
	if f.head, err = parseHead(raw, f.fields); err != nil {
		return err
	}
	if f.head.status/100 == 1 && f.head.status != http.StatusSwitchingProtocols {
		f.start = f.pos
		f.dropFields()
		return nil
	}
	f.startBody()
	return nil
}

// setHead sets a head that was parsed elsewhere, as for HTTP/2. The body begins at end. Interim heads are skipped.
func (f *framer) setHead(hd head, end int) error {
	if hd.status/100 == 1 {
		f.dropFields()
		return nil
	}
	f.head, f.pos = hd, end
	if err := f.head.frame(f.fields); err != nil {
		return err
	}
	f.startBody()
	return nil
}

// dropFields discards the fields of an interim response.
func (f *framer) dropFields() {
	if len(f.fields) > maxInterim {
		f.fields = make(http.Header) // maps never shrink
	}
	clear(f.fields)
}

// startBody decides how the body after the head is framed.
func (f *framer) startBody() {
	if len(f.bodyLimits) > 0 {
		f.maxBody = bodyLimit(f.bodyLimits, f.fields.Get("Content-Type"), f.maxBody)
	}
	f.end = f.pos
	switch {
	case f.noBody:
		f.state = complete
	case f.head.chunked:
		f.state = chunkHead
	case f.head.length == 0:
		f.state = complete
	case f.head.length > 0:
		f.state, f.left = plainBody, f.head.length
	default:
		f.state, f.head.closing = untilClose, true
	}
}

func (f *framer) addBody(line []byte) error {
	switch f.state {
	case chunkHead:
		return f.readChunkSize(line)
	case chunkTail:
		f.state = chunkHead
		if len(line) > 0 {
			return malformed("end of a chunk", string(line))
		}
	case trailers:
		if len(line) == 0 {
			f.state = complete
		}
	}
	return nil
}

func (f *framer) readChunkSize(line []byte) error {
	text, _, _ := bytes.Cut(line, []byte(";"))
	size, err := strconv.ParseUint(string(bytes.TrimRight(text, " \t\r")), 16, 62)
	switch {
	case err != nil:
		return malformed("size of a chunk", string(line))
	case size == 0:
		f.state = trailers
	default:
		f.state, f.left = chunkData, int64(size)
	}
	return nil
}
