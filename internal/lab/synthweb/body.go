package synthweb

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"

	"github.com/klauspost/compress/flate"

	"kumo/internal/lab/dice"
)

// A piece is part of a body: a shared block, or bytes generated for this response.
type piece struct {
	shared   *block
	from, to int // range in body.made if shared is nil
}

const maxStoredBlock = 0xffff // maximum length of a stored deflate block in bytes

// A body is the content of a response in pieces, so that it can be sent plain or compressed without being assembled.
type body struct {
	pieces []piece
	made   []byte // all bytes generated for this response
	sealed int    // how many of them are in pieces
}

func (b *body) reset() { b.pieces, b.made, b.sealed = b.pieces[:0], b.made[:0], 0 }

// seal makes a piece of the bytes generated since the last piece.
func (b *body) seal() {
	if len(b.made) > b.sealed {
		b.pieces = append(b.pieces, piece{from: b.sealed, to: len(b.made)})
		b.sealed = len(b.made)
	}
}

func (b *body) add(shared *block) {
	b.seal()
	b.pieces = append(b.pieces, piece{shared: shared})
}

func (b *body) raw(p *piece) []byte {
	if p.shared != nil {
		return p.shared.raw
	}
	return b.made[p.from:p.to]
}

// size returns the length of the body in bytes, gzipped or not.
func (b *body) size(gzipped bool) (n int) {
	if gzipped {
		n = len(gzipHead) + len(gzipTail) + 8
	}
	for i := range b.pieces {
		switch p := &b.pieces[i]; {
		case gzipped && p.shared != nil:
			n += len(p.shared.deflated)
		case gzipped:
			n += p.to - p.from + 5*((p.to-p.from+maxStoredBlock-1)/maxStoredBlock)
		default:
			n += len(b.raw(p))
		}
	}
	return n
}

const (
	gzipHead = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
	gzipTail = "\x01\x00\x00\xff\xff" // an empty last block
)

func (b *body) plain(emit func([]byte)) {
	for i := range b.pieces {
		emit(b.raw(&b.pieces[i]))
	}
}

// gzipped emits the body as one gzip member (RFC 1952). Shared blocks are already compressed; the rest is stored.
func (b *body) gzipped(emit func([]byte)) {
	emit([]byte(gzipHead))
	crc, length := uint32(0), 0
	for i := range b.pieces {
		p := &b.pieces[i]
		raw := b.raw(p)
		crc, length = crc32.Update(crc, crc32.IEEETable, raw), length+len(raw)
		if p.shared != nil {
			emit(p.shared.deflated)
			continue
		}
		for len(raw) > 0 {
			n := min(len(raw), maxStoredBlock)
			emit([]byte{0, byte(n), byte(n >> 8), ^byte(n), ^byte(n >> 8)})
			emit(raw[:n])
			raw = raw[n:]
		}
	}
	tail := binary.LittleEndian.AppendUint32([]byte(gzipTail), crc)
	emit(binary.LittleEndian.AppendUint32(tail, uint32(length)))
}

const (
	smallestBlock = 256 // size of the smallest block in bytes
	sizes         = 6   // each size is twice the one before: 256 bytes to 8 KB
	variants      = 8
)

// A block is part of a page that many pages share, with its compressed form: complete deflate blocks without references
// to earlier data, so that blocks can be combined in any order.
type block struct {
	raw      []byte
	deflated []byte
}

type blocks [sizes][variants]block

func newBlocks(words [][]byte, d *dice.Dice) blocks {
	var b blocks
	for size := range b {
		for v := range b[size] {
			raw := filler(words, d, smallestBlock<<size)
			b[size][v] = block{raw: raw, deflated: deflate(raw)}
		}
	}
	return b
}

// filler returns exactly n bytes of markup, about as repetitive as real pages.
func filler(words [][]byte, d *dice.Dice, n int) []byte {
	const open, shut = `<li class="item"><span>`, "</span></li>\n"
	var out []byte
	used := words[d.Below(len(words)-60):][:60]
	for {
		item := []byte(open)
		for range 3 + d.Below(10) {
			item = append(append(item, used[d.Ranked(len(used))]...), ' ')
		}
		item = append(item, shut...)
		if len(out)+len(item) > n {
			return append(out, bytes.Repeat([]byte{' '}, n-len(out))...)
		}
		out = append(out, item...)
	}
}

func deflate(raw []byte) []byte {
	var out bytes.Buffer
	z, err := flate.NewWriter(&out, flate.DefaultCompression)
	if err == nil {
		_, err = z.Write(raw)
	}
	if err == nil {
		err = z.Flush()
	}
	if err != nil {
		panic("synthweb: deflate: " + err.Error())
	}
	return out.Bytes()
}
