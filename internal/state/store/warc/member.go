package warc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"kumo/internal/content/inflate"
)

// A member decompresses one record.
type member interface {
	// decode returns a reader of the decompressed member at src. When it has been read to its end, exactly the bytes of
	// the member were consumed.
	decode(src *counted) (io.Reader, error)
	canBegin(head []byte) bool // reports whether a member may begin with these magicLen bytes
}

const magicLen = 4

// A gzipMember decodes a member whole, from the buffer of its source. If the buffer is too small or the member is damaged,
// it decodes it as a stream.
type gzipMember struct {
	whole *inflate.Decoder // nil: stream always, for callers that read the beginning of a record only
	text  []byte
	z     gzip.Reader
}

// Written members have no flags, so the flag byte can be checked along with the magic number.
func (m *gzipMember) canBegin(head []byte) bool {
	return bytes.HasPrefix(head, []byte{0x1f, 0x8b, 8, 0})
}

func (m *gzipMember) decode(src *counted) (io.Reader, error) {
	head, err := src.r.Peek(magicLen)
	if err != nil {
		return nil, err
	}
	if !m.canBegin(head) {
		return nil, errors.New("not a gzip member")
	}
	if m.whole != nil && m.decodeWhole(src) {
		return bytes.NewReader(m.text), nil
	}
	if err := m.z.Reset(src); err != nil {
		return nil, err
	}
	m.z.Multistream(false)
	return &m.z, nil
}

const (
	maxWhole    = 64 << 20 // bytes of a decoded member
	fewBuffered = 16 << 10 // bytes; most members are shorter
)

// decodeWhole decodes the member at src if it can. If not, src is as before.
func (m *gzipMember) decodeWhole(src *counted) bool {
	size := src.r.Buffered()
	if size < fewBuffered {
		size = src.r.Size()
	}
	for {
		data, readErr := src.r.Peek(size) // less at the end of the file
		text, used, err := m.whole.Member(m.text[:0], data, maxWhole)
		m.text = text
		if err == nil {
			src.skip(used)
			return true
		}
		if !errors.Is(err, io.ErrUnexpectedEOF) || readErr != nil || size == src.r.Size() {
			return false
		}
		size = src.r.Size()
	}
}

type zstdMember struct {
	z           *zstd.Decoder
	frame, data []byte
}

func (m *zstdMember) canBegin(head []byte) bool {
	return bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd})
}

// decode finds the end of the frame from its block headers, because a decoder would read beyond it.
func (m *zstdMember) decode(src *counted) (io.Reader, error) {
	var head zstd.Header
	begin, err := src.r.Peek(zstd.HeaderMaxSize)
	if len(begin) < magicLen {
		return nil, err
	}
	if err := head.Decode(begin); err != nil || head.Skippable {
		return nil, errors.New("not a zstd frame")
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
		if last = block&1 != 0; block>>1&3 == 1 { // an RLE block has a single byte
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

// read appends n bytes of src to the frame.
func (m *zstdMember) read(src *counted, n int) error {
	at := len(m.frame)
	m.frame = append(m.frame, make([]byte, n)...)
	_, err := io.ReadFull(src, m.frame[at:])
	return err
}
