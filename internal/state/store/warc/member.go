package warc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// A member is how one record is compressed.
type member interface {
	// open returns what the member at src holds. It takes no byte of src behind the member, and all of it once text is
	// read.
	open(src *counted) (io.Reader, error)
	canBegin(head []byte) bool // whether a member may begin with these magicLen bytes
}

const magicLen = 4

type gzipMember struct{ z gzip.Reader }

// A writer of members sets no flag, so the magic number goes on.
func (m *gzipMember) canBegin(head []byte) bool {
	return bytes.HasPrefix(head, []byte{0x1f, 0x8b, 8, 0})
}

func (m *gzipMember) open(src *counted) (io.Reader, error) {
	head, err := src.r.Peek(magicLen)
	if err != nil {
		return nil, err
	}
	if !m.canBegin(head) {
		return nil, errors.New("no gzip member begins there")
	}
	if err := m.z.Reset(src); err != nil {
		return nil, err
	}
	m.z.Multistream(false)
	return &m.z, nil
}

type zstdMember struct {
	z           *zstd.Decoder
	frame, data []byte
}

func (m *zstdMember) canBegin(head []byte) bool {
	return bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd})
}

// open finds where the frame ends by its blocks' heads: a decoder would read on.
func (m *zstdMember) open(src *counted) (io.Reader, error) {
	var head zstd.Header
	begin, err := src.r.Peek(zstd.HeaderMaxSize)
	if len(begin) < magicLen {
		return nil, err
	}
	if err := head.Decode(begin); err != nil || head.Skippable {
		return nil, errors.New("no zstd frame begins there")
	}
	m.frame = m.frame[:0]
	if err := m.read(src, head.HeaderSize); err != nil {
		return nil, err
	}
	for last := false; !last; {
		if err := m.read(src, 3); err != nil {
			return nil, err
		}
		b := m.frame[len(m.frame)-3:]
		block := binary.LittleEndian.Uint32([]byte{b[0], b[1], b[2], 0})
		n := int(block >> 3)
		if last = block&1 != 0; block>>1&3 == 1 { // one byte, n times
			n = 1
		}
		if err := m.read(src, n); err != nil {
			return nil, err
		}
	}
	if head.HasCheckSum {
		if err := m.read(src, 4); err != nil {
			return nil, err
		}
	}
	if m.data, err = m.z.DecodeAll(m.frame, m.data[:0]); err != nil {
		return nil, fmt.Errorf("zstd: %w", err)
	}
	return bytes.NewReader(m.data), nil
}

// read reads n bytes more of the frame.
func (m *zstdMember) read(src *counted, n int) error {
	at := len(m.frame)
	m.frame = append(m.frame, make([]byte, n)...)
	_, err := io.ReadFull(src, m.frame[at:])
	return err
}
