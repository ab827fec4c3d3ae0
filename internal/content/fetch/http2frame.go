package fetch

import (
	"encoding/binary"
	"fmt"
)

// HTTP/2 frames (RFC 9113, 4 and 6).

const (
	frameHeader = 9
	maxFrame    = 1 << 14 // bytes of payload that either side may send by default
	settingSize = 6
)

// A frame is the header of a frame.
type frame struct {
	length int
	kind   frameKind
	flags  uint8
	stream uint32
}

type frameKind uint8

const (
	dataFrame frameKind = iota
	headersFrame
	priorityFrame
	resetFrame
	settingsFrame
	pushFrame
	pingFrame
	goAwayFrame
	windowUpdateFrame
	continuationFrame
)

var frameNames = [...]string{"DATA", "HEADERS", "PRIORITY", "RST_STREAM", "SETTINGS", "PUSH_PROMISE", "PING", "GOAWAY",
	"WINDOW_UPDATE", "CONTINUATION"}

func (k frameKind) String() string {
	if int(k) < len(frameNames) {
		return frameNames[k]
	}
	return fmt.Sprintf("a frame of type %d", uint8(k))
}

const (
	flagAck        = 0x1
	flagEndStream  = 0x1
	flagEndHeaders = 0x4
	flagPadded     = 0x8
	flagPriority   = 0x20
)

const (
	settingHeaderTableSize   = 1
	settingEnablePush        = 2
	settingInitialWindowSize = 4
	settingMaxFrameSize      = 5
	settingMaxHeaderListSize = 6
)

// An errorCode is the reason for the end of a stream or connection.
type errorCode uint32

const (
	refusedStream  errorCode = 7
	http11Required errorCode = 13
)

var errorNames = [...]string{"NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT",
	"STREAM_CLOSED", "FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR",
	"ENHANCE_YOUR_CALM", "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED"}

func (c errorCode) Error() string {
	if int64(c) < int64(len(errorNames)) {
		return errorNames[c]
	}
	return fmt.Sprintf("error %d", uint32(c))
}

func parseFrame(b []byte) frame {
	return frame{
		length: int(b[0])<<16 | int(b[1])<<8 | int(b[2]),
		kind:   frameKind(b[3]),
		flags:  b[4],
		stream: binary.BigEndian.Uint32(b[5:]) & maxStream,
	}
}

func (f frame) has(flag uint8) bool { return f.flags&flag != 0 }
func (f frame) known() bool         { return f.kind <= continuationFrame }

// fits reports whether the length is valid for the frame's kind.
func (f frame) fits() bool {
	switch f.kind {
	case dataFrame, headersFrame:
		return f.length > 0 || !f.has(flagPadded)
	case priorityFrame:
		return f.length == 5
	case resetFrame, windowUpdateFrame:
		return f.length == 4
	case settingsFrame:
		return f.length%settingSize == 0 && (f.length == 0 || !f.has(flagAck))
	case pingFrame:
		return f.length == 8
	case goAwayFrame:
		return f.length >= 8
	}
	return true
}

// fragment returns the field block fragment of a HEADERS frame, without padding and priority.
func (f frame) fragment(payload []byte) ([]byte, error) {
	pad, before := 0, 0
	if f.has(flagPadded) {
		pad, before = int(payload[0]), 1
	}
	if f.has(flagPriority) {
		before += 5
	}
	if before+pad > len(payload) {
		return nil, protocolError("HEADERS of %d bytes with padding of %d", f.length, pad)
	}
	return payload[before : len(payload)-pad], nil
}

func appendFrame(b []byte, kind frameKind, flags uint8, stream uint32, length int) []byte {
	b = append(b, byte(length>>16), byte(length>>8), byte(length), byte(kind), flags)
	return binary.BigEndian.AppendUint32(b, stream)
}

func appendWindowUpdate(b []byte, stream uint32, more int64) []byte {
	return binary.BigEndian.AppendUint32(appendFrame(b, windowUpdateFrame, 0, stream, 4), uint32(more))
}

func appendSetting(b []byte, id uint16, value uint32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(b, id), value)
}
