package inflate

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"slices"
)

// Flags of a gzip member's header.
const (
	hasHeaderSum = 1 << (1 + iota)
	hasExtra
	hasName
	hasComment
	reserved = 0xe0
)

const (
	headerLen  = 10
	trailerLen = 8
	maxString  = 512 // bytes of a name or comment in the header with its final 0, as in compress/gzip
)

// usualRatio is the compression ratio up to which a declared length is trusted for allocation.
const usualRatio = 16

// Gzip decodes a file of one or more members. Only further members may follow a member.
func (d *Decoder) Gzip(dst, src []byte, limit int) (out []byte, err error) {
	d.begin(slices.Grow(dst, expected(src, limit)), src, limit)
	err = d.member()
	for err == nil && d.next < len(src) {
		if err = d.member(); errors.Is(err, ErrHeader) {
			err = ErrGarbage
		}
	}
	return d.finish(), err
}

// Member decodes the first member of a file. used is the number of bytes of src that were consumed; more data may follow.
func (d *Decoder) Member(dst, src []byte, limit int) (out []byte, used int, err error) {
	d.begin(dst, src, limit)
	err = d.member()
	return d.finish(), d.next, err
}

// expected returns the approximate output size, from the length in the last member's trailer.
func expected(src []byte, limit int) int {
	if len(src) < headerLen+trailerLen {
		return 0
	}
	n := binary.LittleEndian.Uint32(src[len(src)-4:])
	return min(int(min(uint64(n), uint64(usualRatio*len(src))))+roundOutput+overshoot, limit)
}

func (d *Decoder) member() error {
	n, err := header(d.src[d.next:])
	if err != nil {
		return err
	}
	d.next += n
	if err := d.stream(); err != nil {
		return err
	}
	trailer := d.src[d.next:]
	if len(trailer) < trailerLen {
		return io.ErrUnexpectedEOF
	}
	d.next += trailerLen
	text := d.buf[d.base:d.pos]
	if binary.LittleEndian.Uint32(trailer) != crc32.ChecksumIEEE(text) ||
		binary.LittleEndian.Uint32(trailer[4:]) != uint32(len(text)) {
		return ErrChecksum
	}
	return nil
}

// header returns the length of the header at the beginning of src (RFC 1952, section 2.3).
func header(src []byte) (n int, err error) {
	if len(src) < headerLen {
		return 0, io.ErrUnexpectedEOF
	}
	if src[0] != 0x1f || src[1] != 0x8b || src[2] != 8 {
		return 0, ErrHeader
	}
	flags := src[3]
	n = headerLen
	if flags&hasExtra != 0 {
		if len(src) < n+2 {
			return 0, io.ErrUnexpectedEOF
		}
		n += 2 + int(binary.LittleEndian.Uint16(src[n:]))
		if len(src) < n {
			return 0, io.ErrUnexpectedEOF
		}
	}
	for _, flag := range [...]byte{hasName, hasComment} {
		if flags&flag == 0 {
			continue
		}
		text := src[n:min(n+maxString, len(src))]
		switch i := bytes.IndexByte(text, 0); {
		case i >= 0:
			n += i + 1
		case len(text) == maxString:
			return 0, ErrHeader
		default:
			return 0, io.ErrUnexpectedEOF
		}
	}
	if flags&hasHeaderSum != 0 {
		if len(src) < n+2 {
			return 0, io.ErrUnexpectedEOF
		}
		if binary.LittleEndian.Uint16(src[n:]) != uint16(crc32.ChecksumIEEE(src[:n])) {
			return 0, ErrHeader
		}
		n += 2
	}
	if flags&reserved != 0 {
		return 0, ErrHeader
	}
	return n, nil
}
