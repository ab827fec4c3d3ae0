package warc

import (
	"encoding/binary"
	"hash/crc32"
	"sync"

	"kumo/internal/state/store/warc/deflate"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zstd"
)

// A packer compresses a record.
type packer interface {
	// pack appends the compressed record to dst, as one member (gzip) or frame (zstd). longText requests Huffman codes
	// built for this text.
	pack(dst, head, block []byte, longText bool) []byte
}

var packers = map[string]func() packer{
	"gzip": newGzipPacker,
	"zstd": func() packer { return new(zstdPacker) },
	"none": func() packer { return plainPacker{} },
}

var recordEnd = []byte("\r\n\r\n")

type plainPacker struct{}

func (plainPacker) pack(dst, head, block []byte, _ bool) []byte {
	return append(append(append(dst, head...), block...), recordEnd...)
}

// A gzipPacker compresses cheaply where that costs little space: small blocks, and bodies that are compressed already,
// as most are.
type gzipPacker struct {
	cheap deflate.Encoder
	full  *flate.Writer
	out   appender // output of full
	begin []byte   // the first bytes of a record
}

// An appender is a slice that implements io.Writer.
type appender []byte

func (a *appender) Write(p []byte) (int, error) {
	*a = append(*a, p...)
	return len(p), nil
}

func newGzipPacker() packer {
	full, _ := flate.NewWriter(nil, flate.BestSpeed) // fails only for unknown levels
	return &gzipPacker{full: full}
}

// gzipHead has no flags, time or system; 4 means the fastest compression (RFC 1952).
const gzipHead = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff"

func (g *gzipPacker) pack(dst, head, block []byte, longText bool) []byte {
	dst = append(dst, gzipHead...)
	if longText {
		dst = g.packText(dst, head, block)
	} else {
		n := min(len(block), maxJoined)
		g.begin = append(append(g.begin[:0], head...), block[:n]...)
		if n == len(block) {
			g.begin = append(g.begin, recordEnd...)
			dst = g.cheap.Append(dst, g.begin)
		} else {
			dst = g.cheap.Append(dst, g.begin, block[n:], recordEnd)
		}
	}
	sum := crc32.ChecksumIEEE(head)
	sum = crc32.Update(sum, crc32.IEEETable, block)
	sum = crc32.Update(sum, crc32.IEEETable, recordEnd)
	dst = binary.LittleEndian.AppendUint32(dst, sum)
	return binary.LittleEndian.AppendUint32(dst, uint32(len(head)+len(block)+len(recordEnd)))
}

func (g *gzipPacker) packText(dst, head, block []byte) []byte {
	g.out = dst
	g.full.Reset(&g.out)
	for _, part := range [...][]byte{head, block, recordEnd} {
		_, _ = g.full.Write(part) // an appender never fails
	}
	_ = g.full.Close()
	dst, g.out = g.out, nil
	return dst
}

const maxJoined = 32 << 10 // maximum size of a block that is copied to follow its head

// Blocks up to these sizes would shrink by at most a few hundred bytes with codes of their own.
const (
	smallText = 2 << 10 // for prose
	smallList = 8 << 10 // for repetitive data such as links, and for compressed content codings
)

// isText reports whether coding the letters of a block (at least 32 bytes) would compress it well: in a sample, equal
// bytes are much more frequent than in random data. Compressed data fails this test, whatever its Content-Type and
// Content-Encoding are.
func isText(block []byte) bool {
	const runs, run = 16, 32
	var counts [256]uint16
	for i := range runs {
		at := i * (len(block) - run) / (runs - 1)
		for _, b := range block[at : at+run] {
			counts[b]++
		}
	}
	pairs := 0
	for _, c := range counts {
		pairs += int(c) * (int(c) - 1)
	}
	const atRandom = runs * run * (runs*run - 1) / 256
	return pairs > 5*atRandom // English has about 16 times as many, HTML 10 times
}

// A zstdPacker uses one of two encoders. The cheap one does not code letters.
type zstdPacker struct{ record []byte }

// The encoders run concurrently on all processors, independent of the number of packers.
var (
	cheapZstd = sync.OnceValue(func() *zstd.Encoder { return newZstd(true) })
	fullZstd  = sync.OnceValue(func() *zstd.Encoder { return newZstd(false) })
)

func newZstd(cheap bool) *zstd.Encoder {
	z, _ := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(1<<20),
		zstd.WithLowerEncoderMem(true), zstd.WithNoEntropyCompression(cheap)) // fails only for invalid options
	return z
}

func (p *zstdPacker) pack(dst, head, block []byte, longText bool) []byte {
	p.record = append(append(append(p.record[:0], head...), block...), recordEnd...)
	z := cheapZstd()
	if longText {
		z = fullZstd()
	}
	dst = z.EncodeAll(p.record, dst)
	if cap(p.record) > maxPooled {
		p.record = nil
	}
	return dst
}
