package robots

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// A frame is a response in a segment: the length of the body and its CRC-32C, four bytes each, little-endian, then the
// body: expiry, flags and status, the origin's length and the origin, and the text.
type frame struct {
	expires   uint32 // Unix seconds
	status    uint16
	needsText bool // the rules do not follow from the status alone
	hasDelay  bool
	origin    []byte
	text      []byte
}

const (
	frameHead = 8
	maxFrame  = 1 << 20 // bytes of a body; a longer one is corrupt

	flagText  = 1
	flagDelay = 2
)

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	errFrame   = errors.New("damaged")
)

func (f *frame) rules(agent string) *Rules { return FromStatus(int(f.status), f.text, agent) }

func (f *frame) delayBit() uint32 {
	if f.hasDelay {
		return delayBit
	}
	return 0
}

func (f *frame) append(b []byte) []byte {
	head := len(b)
	b = append(b, make([]byte, frameHead)...)
	b = binary.LittleEndian.AppendUint32(b, f.expires)
	b = binary.LittleEndian.AppendUint16(b, f.status)
	var flags byte
	if f.needsText {
		flags |= flagText
	}
	if f.hasDelay {
		flags |= flagDelay
	}
	b = binary.AppendUvarint(append(b, flags), uint64(len(f.origin)))
	b = append(append(b, f.origin...), f.text...)
	body := b[head+frameHead:]
	binary.LittleEndian.PutUint32(b[head:], uint32(len(body)))
	binary.LittleEndian.PutUint32(b[head+4:], crc32.Checksum(body, castagnoli))
	return b
}

// bodyLen returns the length of the body after a frame's head.
func bodyLen(head []byte) (int, error) {
	n := binary.LittleEndian.Uint32(head)
	if n > maxFrame {
		return 0, errFrame
	}
	return int(n), nil
}

// parse parses the body of a frame. The frame refers to its memory.
func (f *frame) parse(head, body []byte) error {
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(head[4:]) || len(body) < 8 {
		return errFrame
	}
	f.expires, f.status = binary.LittleEndian.Uint32(body), binary.LittleEndian.Uint16(body[4:])
	f.needsText, f.hasDelay = body[6]&flagText != 0, body[6]&flagDelay != 0
	size, n := binary.Uvarint(body[7:])
	body = body[7:]
	if n <= 0 || size > uint64(len(body)-n) {
		return errFrame
	}
	f.origin, f.text = body[n:][:size], body[n:][size:]
	return nil
}
