package fetch

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/net/http2/hpack"
)

// A session is the client's side of an HTTP/2 connection (RFC 9113) that carries one exchange at a time. It does no
// I/O: it is given the server's bytes as they come, says what they bring, and collects the frames that must be sent in
// reply.
//
// What a server does against the standard ends the connection, as it does for browsers and curl. What is allowed but
// useless (PING, SETTINGS, PRIORITY, frames of unknown type, empty ones) is counted, and too much of it in one exchange
// ends the connection, too.
type session struct {
	maxHead int64  // bytes of an exchange's field sections, as SETTINGS_MAX_HEADER_LIST_SIZE counts them
	out     []byte // frames to be sent

	frameInput

	gotSettings bool // the server's SETTINGS have come
	goingAway   bool // it takes no further streams
	resetTable  bool // the next field block must say that our dynamic table is empty

	stream      uint32 // the current exchange's, or the last one's
	state       streamState
	answered    bool // something has come on it
	emptyFrames int  // frames in this exchange that brought no byte of its body
	heads       int64

	fields     []byte // a field block that goes on in CONTINUATION frames
	open       bool   // it does
	endsStream bool   // the stream ends with it
	decoder    *hpack.Decoder
	section    *section // is being decoded
	small      [smallRead]byte
	received   struct{ stream, all int64 }          // bytes that the server may still send
	granted    struct{ stream, all, initial int64 } // bytes that it would take from us
}

// A frameInput is how far the server's frames were read.
type frameInput struct {
	part    []byte // a frame's header or payload of which the rest has not come yet
	frame   frame  // is being read, if inFrame
	inFrame bool
	left    int // bytes of its payload to come, where it is taken in parts
	pad     int // the last so many of them are padding
}

type streamState uint8

const (
	ended    streamState = iota // or not yet opened
	awaiting                    // the request is sent
	inBody                      // the head has come
)

// An event is what a session has met in its input.
type event uint8

const (
	needInput  event = iota // the input is used up
	fieldBlock              // an interim answer's fields, a head's, or trailers
	bodyPart                // bytes of the body
)

const (
	// TCP holds back a server that sends faster than it is read, as it does with HTTP/1: there is but one stream.
	receiveWindow = 1 << 30
	firstWindow   = 1<<16 - 1 // both sides' windows before anything is said
	maxWindowSize = 1<<31 - 1
	maxStream     = 1<<31 - 1
	headerTable   = 4096 // bytes of the server's dynamic table, the standard's default

	// maxEmptyFrames is how many frames of an exchange may bring nothing.
	maxEmptyFrames = 1000
)

var (
	// errRefused says that the server did not look at the request, which can be sent again on another connection.
	errRefused = errors.New("the server refuses the request (HTTP/2)")
	// errHTTP1Required says that the server wants to be asked by HTTP/1.1.
	errHTTP1Required = errors.New("the server wants HTTP/1.1 after it has chosen HTTP/2")
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

// setHead opens the next stream.
func (s *session) begin() {
	s.stream = (s.stream + 1) | 1 // the next odd number
	s.state, s.answered, s.emptyFrames, s.heads = awaiting, false, 0, 0
	s.received.stream, s.granted.stream = receiveWindow, s.granted.initial
}

// reusable reports whether another exchange may follow the one that has ended.
func (s *session) reusable() bool {
	return s.state == ended && !s.goingAway && !s.open && s.stream < maxStream-1
}

// step reads on to the next event and returns what it brings, which lies in the input or in the session until the next
// step, and the rest of the input. An error is final.
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

// whole returns the next n bytes of input once they have all come.
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

// maxKeptPart is how much room a session that waits for its next exchange keeps.
const maxKeptPart = 512

// beginFrame begins a frame: whether it may come here, and be so long.
func (s *session) beginFrame(f frame) error {
	s.frame, s.inFrame, s.left, s.pad = f, true, f.length, 0
	s.answered = s.answered || f.stream == s.stream && f.stream != 0
	switch {
	case f.length > maxFrame:
		return protocolError("a frame of %d bytes", f.length)
	case !s.gotSettings && (f.kind != settingsFrame || f.has(flagAck)):
		return protocolError("the server does not begin with its settings, but with %s", f.kind)
	case s.open && (f.kind != continuationFrame || f.stream != s.stream):
		return protocolError("%s in the middle of a field block", f.kind)
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

// countEmpty counts a frame that brings no byte of the body.
func (s *session) countEmpty() error {
	if s.emptyFrames++; s.emptyFrames > maxEmptyFrames {
		return protocolError("more than %d frames that bring nothing", maxEmptyFrames)
	}
	return nil
}

// admit reports whether a frame of this kind may come on its stream.
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

// pass takes the input's part of a frame that need not be whole: of DATA the body, of others nothing.
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

// endData lets the server send more where it has used half of what it may.
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

// take handles a frame that is whole.
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

// addFragment collects a field block until it is complete. It is decoded only then: what comes in crumbs would be
// decoded again and again.
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

// handleGoAway notes that the server will end the connection. What it has processed, it still answers.
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

// handleWindowUpdate keeps to the letter of flow control, although requests have no body that it would hold back.
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
