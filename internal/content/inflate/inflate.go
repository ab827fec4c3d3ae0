package inflate

import (
	"errors"
	"io"
	"math"
	"slices"
)

// Errors of streams, other than truncation.
var (
	ErrCorrupt  = errors.New("corrupt deflate stream")
	ErrHeader   = errors.New("invalid gzip header")
	ErrGarbage  = errors.New("data after a gzip member")
	ErrChecksum = errors.New("invalid gzip checksum")
	ErrLimit    = errors.New("decoded data exceeds the limit")
)

// A Decoder decodes streams. The zero value is ready to use. It may be reused, but not concurrently, and retains
// nothing of its input.
type Decoder struct {
	src  []byte
	next int    // index of the first byte of src that is not in hold
	hold uint64 // input bits, the next one lowest; bits above have may be those that follow
	have uint   // number of valid bits in hold

	buf  []byte // output, up to its capacity
	pos  int    // end of the output
	base int    // start of the stream's output, the lower limit of matches
	end  int    // limit of pos

	tables tables
	pre    [1 << maxPre]entry
	lens   [numLit + numDist]uint8
}

// Deflate decodes a bare stream. used is the number of bytes of src that were consumed; more data may follow.
func (d *Decoder) Deflate(dst, src []byte, limit int) (out []byte, used int, err error) {
	d.begin(dst, src, limit)
	err = d.stream()
	return d.finish(), d.next, err
}

func (d *Decoder) begin(dst, src []byte, limit int) {
	d.src, d.next = src, 0
	d.buf, d.pos = dst[:cap(dst)], len(dst)
	d.end = len(dst) + min(limit, math.MaxInt-len(dst))
}

// finish returns the output and drops all references.
func (d *Decoder) finish() []byte {
	out := d.buf[:d.pos]
	d.src, d.buf = nil, nil
	return out
}

// stream decodes the blocks of a stream that begins at next, and sets next to its end.
func (d *Decoder) stream() error {
	d.hold, d.have, d.base = 0, 0, d.pos
	for {
		d.refill()
		if d.have < 3 {
			return io.ErrUnexpectedEOF
		}
		final, kind := d.hold&1 != 0, d.hold>>1&3
		d.consume(3)
		if err := d.block(kind); err != nil {
			return err
		}
		if final {
			d.align()
			return nil
		}
	}
}

func (d *Decoder) block(kind uint64) error {
	switch kind {
	case 0:
		return d.stored()
	case 1:
		return d.codes(fixed())
	case 2:
		if err := d.trees(); err != nil {
			return err
		}
		return d.codes(&d.tables)
	}
	return ErrCorrupt
}

// refill increases have to at least 56, if there is enough input.
func (d *Decoder) refill() {
	if d.next <= len(d.src)-8 {
		d.hold |= load64(d.src, d.next) << (d.have & 63)
		d.next += int(63-d.have) >> 3
		d.have |= 56
		return
	}
	for d.have < 56 && d.next < len(d.src) {
		d.hold |= uint64(d.src[d.next]) << d.have
		d.next++
		d.have += 8
	}
}

func (d *Decoder) consume(n uint) {
	d.hold >>= n
	d.have -= n
}

// align drops the rest of a started byte, and returns unread bytes to the input.
func (d *Decoder) align() {
	d.next -= int(d.have / 8)
	d.hold, d.have = 0, 0
}

// stored copies a stored block.
func (d *Decoder) stored() error {
	d.align()
	head := d.src[d.next:]
	if len(head) < 4 {
		return io.ErrUnexpectedEOF
	}
	n, check := int(head[0])|int(head[1])<<8, int(head[2])|int(head[3])<<8
	if n != check^0xffff {
		return ErrCorrupt
	}
	d.next += 4
	there := d.src[d.next:min(d.next+n, len(d.src))]
	fits := min(len(there), d.end-d.pos)
	d.buf = append(d.buf[:d.pos], there[:fits]...)
	d.pos += fits
	d.buf = d.buf[:cap(d.buf)]
	d.next += fits
	switch {
	case fits < len(there):
		return ErrLimit
	case fits < n:
		return io.ErrUnexpectedEOF
	}
	return nil
}

// trees reads the code lengths of a block (RFC 1951, section 3.2.7).
func (d *Decoder) trees() error {
	d.refill()
	if d.have < 14 {
		return io.ErrUnexpectedEOF
	}
	lits, dists, pres := int(d.hold&31)+257, int(d.hold>>5&31)+1, int(d.hold>>10&15)+4
	d.consume(14)
	if lits > numLit || dists > numDist {
		return ErrCorrupt
	}
	var lens [numPre]uint8
	for _, sym := range preOrder[:pres] {
		if d.have < 3 {
			if d.refill(); d.have < 3 {
				return io.ErrUnexpectedEOF
			}
		}
		lens[sym] = uint8(d.hold & 7)
		d.consume(3)
	}
	if !build(d.pre[:], maxPre, lens[:], preMeaning[:]) {
		return ErrCorrupt
	}
	if err := d.lengths(d.lens[:lits+dists]); err != nil {
		return err
	}
	if !build(d.tables.lit[:], litBits, d.lens[:lits], litMeaning[:]) || !build(d.tables.dist[:], distBits,
		d.lens[lits:lits+dists], distMeaning[:]) {
		return ErrCorrupt
	}
	return nil
}

// preOrder is the order of the code length codes.
var preOrder = [numPre]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

// lengths reads the code lengths of both trees. A repetition may cross from one to the other.
func (d *Decoder) lengths(lens []uint8) error {
	for i := 0; i < len(lens); {
		if d.have < maxPre+7 {
			d.refill()
		}
		e := d.pre[d.hold&(1<<maxPre-1)]
		takes := uint(e & takesMask)
		if takes > d.have {
			return io.ErrUnexpectedEOF
		}
		if e&special != 0 {
			return ErrCorrupt
		}
		extra := int(d.hold & (1<<takes - 1) >> (e >> codeShift & codeMask))
		d.consume(takes)
		value, times := uint8(e>>valueShift), 3+extra
		switch value {
		case repeatLast:
			if i == 0 {
				return ErrCorrupt
			}
			value = lens[i-1]
		case repeatZero:
			value = 0
		case repeatZeros:
			value, times = 0, 11+extra
		default:
			times = 1
		}
		if times > len(lens)-i {
			return ErrCorrupt
		}
		for range times {
			lens[i] = value
			i++
		}
	}
	return nil
}

// grow enlarges the output buffer, up to the limit.
func (d *Decoder) grow() {
	n := min(max(len(d.buf), 4*(len(d.src)-d.next), 1<<10), d.end-d.pos)
	d.buf = slices.Grow(d.buf[:d.pos], n)
	d.buf = d.buf[:cap(d.buf)]
}
