package fetch

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/net/http2/hpack"
)

// A session is the client side of an HTTP/2 connection (RFC 9113) that carries one exchange at a time. It does no I/O:
// it parses the server's bytes, returns their content, and queues the frames to send in reply.
//
// As in browsers and curl, a protocol violation ends the connection. Frames that are allowed but useless (PING,
// SETTINGS, PRIORITY, unknown types, empty frames) are counted, and too many of them in an exchange also end the
// connection.
type session struct {
	maxHead int64  // bytes of an exchange's field sections, counted as for SETTINGS_MAX_HEADER_LIST_SIZE
	out     []byte // frames to send

	frameInput

	gotSettings bool // the server's SETTINGS were received
	goingAway   bool // the server accepts no further streams
	resetTable  bool // the next field block must set the size of the dynamic table to 0

	stream      uint32 // of the current exchange, or of the last one
	state       streamState
	answered    bool // a frame was received on the stream
	emptyFrames int  // frames of this exchange without body data
	heads       int64

	fields     []byte // a field block that continues in CONTINUATION frames
	open       bool   // the field block is incomplete
	endsStream bool   // the stream ends with the field block
	decoder    *hpack.Decoder
	section    *section // target of the decoder
	small      [smallRead]byte
	received   struct{ stream, all int64 }          // bytes that the server may still send
	granted    struct{ stream, all, initial int64 } // bytes that the client may still send
}

// A frameInput is the position in the server's frames.
type frameInput struct {
	part    []byte // the beginning of an incomplete frame header or payload
	frame   frame  // current frame, if inFrame
	inFrame bool
	left    int // remaining bytes of a payload that is read in parts
	pad     int // bytes of padding at its end
}

type streamState uint8

const (
	ended    streamState = iota // or not yet opened
	awaiting                    // the request was sent
	inBody                      // the head was received
)

// An event is a result of parsing input.
type event uint8

const (
	needInput  event = iota // all input was consumed
	fieldBlock              // the fields of an interim response, a head, or trailers
	bodyPart                // bytes of the body
)

const (
	// The window is large because TCP throttles a server that sends too fast, as for HTTP/1: there is only one stream.
	receiveWindow = 1 << 30
	firstWindow   = 1<<16 - 1 // initial windows of both sides
	maxWindowSize = 1<<31 - 1
	maxStream     = 1<<31 - 1
	headerTable   = 4096 // bytes of the server's dynamic table, the default of the standard

	// maxEmptyFrames limits the frames without body data in an exchange.
	maxEmptyFrames = 1000
)

var (
	// errRefused means that the server did not process the request. It can be sent again on another connection.
	errRefused = errors.New("the server refused the request (HTTP/2)")
	// errHTTP1Required means that the server requires HTTP/1.1 for the request.
	errHTTP1Required = errors.New("the server requires HTTP/1.1 although it selected HTTP/2")
	errShort         = errors.New("the body is shorter than its Content-Length")
)

func newSession(maxHead int64) *session {
	s := &session{maxHead: maxHead}
	s.decoder = hpack.NewDecoder(headerTable, s.emit)
	s.decoder.SetMaxStringLength(int(min(maxHead, maxWindowSize)))
	s.received.all = firstWindow
	s.granted.all, s.granted.initial = firstWindow, firstWindow
	return s
}

// begin opens the next stream.
func (s *session) begin() {
	s.stream = (s.stream + 1) | 1 // the next odd number
	s.state, s.answered, s.emptyFrames, s.heads = awaiting, false, 0, 0
	s.received.stream, s.granted.stream = receiveWindow, s.granted.initial
}

// reusable reports whether another exchange may follow the last one.
func (s *session) reusable() bool {
	return s.state == ended && !s.goingAway && !s.open && s.stream < maxStream-1
}

// step parses input up to the next event. It returns the event's data, which is valid until the next step, and the rest
// of the input. An error is final.
func (s *session) step(in []byte) (e event, what, rest []byte, err error) {
	for err == nil && e == needInput {
		var b []byte
		var ok bool
		if !s.inFrame {
			if b, in, ok = s.readWhole(in, frameHeader); !ok {
				return needInput, nil, nil, nil
			}
			if err = s.beginFrame(parseFrame(b)); err != nil {
				break
			}
		}
		if s.frame.kind == dataFrame || !s.frame.known() {
			if e, what, in, err = s.consumePart(in); s.inFrame && e == needInput {
				return needInput, nil, nil, err
			}
			continue
		}
		if b, in, ok = s.readWhole(in, s.frame.length); !ok {
			return needInput, nil, nil, nil
		}
		s.inFrame = false
		e, what, err = s.handleFrame(b)
	}
	return e, what, in, err
}

// readWhole returns the next n bytes of input once they are complete.
func (s *frameInput) readWhole(in []byte, n int) (b, rest []byte, ok bool) {
	if len(s.part) == 0 && len(in) >= n {
		return in[:n:n], in[n:], true
	}
	missing := min(n-len(s.part), len(in))
	s.part = append(s.part, in[:missing]...)
	if len(s.part) < n {
		return nil, nil, false
	}
	b, s.part = s.part, s.part[:0]
	if cap(b) > maxKeptPart {
		s.part = nil
	}
	return b, in[missing:], true
}

// maxKeptPart is the buffer size that an idle session may retain, in bytes.
const maxKeptPart = 512

// beginFrame checks a frame's position and length.
func (s *session) beginFrame(f frame) error {
	s.frame, s.inFrame, s.left, s.pad = f, true, f.length, 0
	s.answered = s.answered || f.stream == s.stream && f.stream != 0
	switch {
	case f.length > maxFrame:
		return protocolError("frame of %d bytes", f.length)
	case !s.gotSettings && (f.kind != settingsFrame || f.has(flagAck)):
		return protocolError("the first frame of the server is %s, not SETTINGS", f.kind)
	case s.open && (f.kind != continuationFrame || f.stream != s.stream):
		return protocolError("%s inside a field block", f.kind)
	}
	if !f.fits() {
		return protocolError("%s of %d bytes", f.kind, f.length)
	}
	if err := s.checkFrame(f); err != nil {
		return err
	}
	if f.kind != dataFrame || f.length == 0 {
		return s.countEmpty()
	}
	return nil
}

// countEmpty counts a frame without body data.
func (s *session) countEmpty() error {
	if s.emptyFrames++; s.emptyFrames > maxEmptyFrames {
		return protocolError("more than %d frames without data", maxEmptyFrames)
	}
	return nil
}

// checkFrame returns an error if a frame of this kind is not allowed on its stream.
func (s *session) checkFrame(f frame) error {
	current := f.stream == s.stream && s.state != ended
	switch f.kind {
	case settingsFrame, pingFrame, goAwayFrame:
		if f.stream != 0 {
			return protocolError("%s on stream %d", f.kind, f.stream)
		}
	case priorityFrame:
		if f.stream == 0 {
			return protocolError("%s on stream 0", f.kind)
		}
	case windowUpdateFrame:
		if f.stream != 0 && !s.wasOpened(f.stream) {
			return protocolError("%s on stream %d, which is idle", f.kind, f.stream)
		}
	case resetFrame:
		if !s.wasOpened(f.stream) {
			return protocolError("%s on stream %d, which is idle", f.kind, f.stream)
		}
	case headersFrame, dataFrame:
		if !current {
			return protocolError("%s on stream %d, which is not open", f.kind, f.stream)
		}
	case continuationFrame:
		if !s.open {
			return protocolError("%s without a field block", f.kind)
		}
	case pushFrame:
		return protocolError("%s, which was declined", f.kind)
	}
	if f.kind == dataFrame {
		return s.checkData(f)
	}
	return nil
}

// checkData counts a DATA frame against the windows.
func (s *session) checkData(f frame) error {
	if s.state != inBody {
		return protocolError("DATA before the head")
	}
	s.received.stream -= int64(f.length)
	s.received.all -= int64(f.length)
	if s.received.stream < 0 || s.received.all < 0 {
		return protocolError("more DATA than the window allows")
	}
	return nil
}

func (s *session) wasOpened(stream uint32) bool { return stream%2 == 1 && stream <= s.stream }

// consumePart consumes the available part of a frame that is read in parts. For DATA it returns the body.
func (s *session) consumePart(in []byte) (e event, body, rest []byte, err error) {
	if s.frame.has(flagPadded) && s.frame.kind == dataFrame && s.left == s.frame.length {
		if len(in) == 0 {
			return needInput, nil, nil, nil
		}
		s.pad, in = int(in[0]), in[1:]
		if s.left--; s.pad > s.left {
			return needInput, nil, nil, protocolError("DATA of %d bytes with padding of %d", s.frame.length, s.pad)
		}
		if s.pad == s.left {
			if err := s.countEmpty(); err != nil {
				return needInput, nil, nil, err
			}
		}
	}
	n := min(s.left, len(in))
	if s.frame.kind == dataFrame {
		body = in[:min(n, max(0, s.left-s.pad))]
	}
	s.left -= n
	if s.left == 0 {
		s.inFrame = false
		if s.frame.kind == dataFrame {
			s.endData()
		}
	}
	if len(body) > 0 {
		return bodyPart, body, in[n:], nil
	}
	return needInput, nil, in[n:], nil
}

// endData enlarges the windows when the server has used half of them.
func (s *session) endData() {
	if s.frame.has(flagEndStream) {
		s.state = ended
	} else if s.received.stream < receiveWindow/2 {
		s.out = appendWindowUpdate(s.out, s.stream, receiveWindow-s.received.stream)
		s.received.stream = receiveWindow
	}
	if s.received.all < receiveWindow/2 {
		s.out = appendWindowUpdate(s.out, 0, receiveWindow-s.received.all)
		s.received.all = receiveWindow
	}
}

// handleFrame processes a complete frame.
func (s *session) handleFrame(payload []byte) (e event, block []byte, err error) {
	switch s.frame.kind {
	case headersFrame:
		if payload, err = s.frame.fragment(payload); err != nil {
			return needInput, nil, err
		}
		s.open, s.endsStream, s.fields = true, s.frame.has(flagEndStream), s.fields[:0]
		return s.addFragment(payload)
	case continuationFrame:
		return s.addFragment(payload)
	case settingsFrame:
		return needInput, nil, s.applySettings(payload)
	case pingFrame:
		if !s.frame.has(flagAck) {
			s.out = append(appendFrame(s.out, pingFrame, flagAck, 0, len(payload)), payload...)
		}
	case resetFrame:
		return needInput, nil, s.handleReset(errorCode(binary.BigEndian.Uint32(payload)))
	case goAwayFrame:
		last, code := binary.BigEndian.Uint32(payload)&maxStream, binary.BigEndian.Uint32(payload[4:])
		return needInput, nil, s.handleGoAway(last, errorCode(code))
	case windowUpdateFrame:
		return needInput, nil, s.handleWindowUpdate(int64(binary.BigEndian.Uint32(payload) & maxWindowSize))
	}
	return needInput, nil, nil
}

// addFragment collects a field block until it is complete. Decoding it only then avoids repeated work for tiny
// fragments.
func (s *session) addFragment(fragment []byte) (event, []byte, error) {
	if int64(len(s.fields))+int64(len(fragment)) > s.maxHead {
		return needInput, nil, errLongHead
	}
	ends := s.frame.has(flagEndHeaders)
	if !ends || len(s.fields) > 0 {
		s.fields = append(s.fields, fragment...)
		fragment = s.fields
	}
	if !ends {
		return needInput, nil, nil
	}
	s.open = false
	if cap(s.fields) > maxKeptPart {
		s.fields = nil
	}
	return fieldBlock, fragment, nil
}

func (s *session) applySettings(payload []byte) error {
	if s.frame.has(flagAck) {
		return nil
	}
	s.gotSettings = true
	for ; len(payload) > 0; payload = payload[settingSize:] {
		value := int64(binary.BigEndian.Uint32(payload[2:]))
		switch id := binary.BigEndian.Uint16(payload); {
		case id == settingHeaderTableSize:
			s.resetTable = true
		case id == settingEnablePush && value != 0,
			id == settingInitialWindowSize && value > maxWindowSize,
			id == settingMaxFrameSize && (value < maxFrame || value > 1<<24-1):
			return protocolError("setting %d is %d", id, value)
		case id == settingInitialWindowSize:
			s.granted.stream += value - s.granted.initial
			s.granted.initial = value
			if s.granted.stream > maxWindowSize {
				return protocolError("the stream's window is larger than %d", maxWindowSize)
			}
		}
	}
	s.out = appendFrame(s.out, settingsFrame, flagAck, 0, 0)
	return nil
}

func (s *session) handleReset(code errorCode) error {
	switch {
	case s.frame.stream != s.stream || s.state == ended:
		return nil
	case s.state == awaiting && code == refusedStream:
		return errRefused
	case s.state == awaiting && code == http11Required:
		return errHTTP1Required
	}
	return fmt.Errorf("the server ended the stream: %w", code)
}

// handleGoAway records that the server is closing the connection. The server still answers the requests that it has
// processed.
func (s *session) handleGoAway(last uint32, code errorCode) error {
	s.goingAway = true
	switch {
	case s.state != awaiting || last >= s.stream:
		return nil
	case code == http11Required:
		return errHTTP1Required
	}
	return fmt.Errorf("%w: %w", errRefused, code)
}

// handleWindowUpdate checks flow control strictly, although requests have no body that it would limit.
func (s *session) handleWindowUpdate(more int64) error {
	window := &s.granted.all
	switch {
	case more == 0:
		return protocolError("WINDOW_UPDATE of 0")
	case s.frame.stream == s.stream && s.state != ended:
		window = &s.granted.stream
	case s.frame.stream != 0:
		return nil
	}
	if *window += more; *window > maxWindowSize {
		return protocolError("the window of stream %d is larger than %d", s.frame.stream, maxWindowSize)
	}
	return nil
}

func protocolError(format string, args ...any) error {
	return fmt.Errorf("%w: HTTP/2: %s", errSyntax, fmt.Sprintf(format, args...))
}
