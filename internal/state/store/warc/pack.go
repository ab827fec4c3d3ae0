package warc

import (
	"encoding/binary"
	"hash/crc32"
	"sync"

	"kumo/internal/state/store/warc/deflate"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zstd"
)

// A packer makes a record of its head and its block.
type packer interface {
	// pack appends the record to dst, as one member (gzip) or frame (zstd). Long texts are worth Huffman codes of their
	// own.
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

// A gzipPacker takes the cheap way where it costs little room: what is small, and bodies that came compressed, as most
// do.
type gzipPacker struct {
	cheap deflate.Encoder
	full  *flate.Writer
	out   appender // of full
	begin []byte   // of a record
}

// An appender is a slice as an io.Writer.
type appender []byte

func (a *appender) Write(p []byte) (int, error) {
	*a = append(*a, p...)
	return len(p), nil
}

func newGzipPacker() packer {
	full, _ := flate.NewWriter(nil, flate.BestSpeed) // fails for unknown levels only
	return &gzipPacker{full: full}
}

// gzipHead has no flags, no time and no system; 4 says that speed mattered (RFC 1952).
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
		_, _ = g.full.Write(part) // an appender does not fail
	}
	_ = g.full.Close()
	dst, g.out = g.out, nil
	return dst
}

const maxJoined = 32 << 10 // bytes of a block that are copied behind its head

// The sizes up to which codes of its own make a block shorter by a few hundred bytes at most.
const (
	smallText = 2 << 10 // of prose
	smallList = 8 << 10 // of what repeats itself, as links do, or is said to come compressed
)

// isText reports whether letters alone would compress most of a block (of 32 bytes or more): in a sample over all of
// it, equal bytes meet far more often than among bytes at random. What came compressed is not like that, whatever its
// Content-Type and Content-Encoding say.
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
	return pairs > 5*atRandom // English has some 16, HTML 10
}

// A zstdPacker has two encoders: the cheap one builds no codes for letters.
type zstdPacker struct{ record []byte }

// These encode in as many goroutines at once as there are processors, whatever the number of packers.
var (
	cheapZstd = sync.OnceValue(func() *zstd.Encoder { return newZstd(true) })
	fullZstd  = sync.OnceValue(func() *zstd.Encoder { return newZstd(false) })
)

func newZstd(cheap bool) *zstd.Encoder {
	z, _ := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(1<<20),
		zstd.WithLowerEncoderMem(true), zstd.WithNoEntropyCompression(cheap)) // fails for bad options only
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
