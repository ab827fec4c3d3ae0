package run

import (
	"kumo/internal/base/varint"

	"github.com/klauspost/compress/zstd"
)

// Bits of a block's first byte: which parts are zstd frames.
const (
	keysZipped = 1 << iota
	valuesZipped
)

type coder struct {
	zip  *zstd.Encoder // nil: no compression
	room block         // for frames
}

func newCoder(compress bool) (c coder, err error) {
	if compress {
		c.zip, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
			zstd.WithEncoderCRC(false), zstd.WithWindowSize(4*blockSize), zstd.WithLowerEncoderMem(true))
	}
	return c, err
}

func (c *coder) encode(to []byte, b *block) []byte {
	keys, values, how := b.keys, b.values, byte(0)
	if c.zip != nil {
		c.room.keys = c.zip.EncodeAll(keys, c.room.keys[:0])
		c.room.values = c.zip.EncodeAll(values, c.room.values[:0])
		if len(c.room.keys) < len(keys) {
			keys, how = c.room.keys, how|keysZipped
		}
		if len(c.room.values) < len(values) {
			values, how = c.room.values, how|valuesZipped
		}
	}
	to = appendBytes(append(to, how), keys)
	return append(to, values...)
}

// decoder has no state but its buffers, and serves all runs. It is created during initialization: otherwise its channel
// would belong to the synctest bubble that created it.
var decoder = newDecoder()

func newDecoder() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(4), zstd.WithDecoderMaxMemory(maxBlock))
	if err != nil {
		panic(err) // the options are constants
	}
	return d
}

// decode returns a block's entries: parts of b, or decompressed into room, which it may enlarge.
func decode(room *block, b []byte) (out block, err error) {
	if len(b) == 0 || b[0] > keysZipped|valuesZipped {
		return out, ErrDamaged
	}
	in := varint.Reader{Rest: b[1:]}
	out.keys = in.Bytes()
	if out.values = in.Rest; in.Bad {
		return out, ErrDamaged
	}
	if b[0]&keysZipped != 0 {
		out.keys, err = unzip(&room.keys, out.keys)
	}
	if b[0]&valuesZipped != 0 && err == nil {
		out.values, err = unzip(&room.values, out.values)
	}
	return out, err
}

func unzip(room *[]byte, b []byte) (_ []byte, err error) {
	if *room, err = decoder.DecodeAll(b, (*room)[:0]); err != nil {
		return nil, ErrDamaged
	}
	return *room, nil
}
