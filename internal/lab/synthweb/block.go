package synthweb

import (
	"bytes"

	"kumo/internal/lab/dice"

	"github.com/klauspost/compress/flate"
)

const (
	smallest = 256 // bytes of a block of the first size
	sizes    = 6   // each twice the one before: 256 bytes to 8 KB
	variants = 8
)

// A block is a stretch of page that many pages share, with its compressed form ready: a run of whole deflate blocks
// that refer to nothing before them, so that blocks can be strung together in any order.
type block struct {
	raw      []byte
	deflated []byte
}

type blocks [sizes][variants]block

func newBlocks(words [][]byte, d *dice.Dice) blocks {
	var b blocks
	for size := range b {
		for v := range b[size] {
			raw := filler(words, d, smallest<<size)
			b[size][v] = block{raw: raw, deflated: deflate(raw)}
		}
	}
	return b
}

// filler is markup of exactly n bytes, about as repetitive as real pages are.
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
		panic("synthweb: deflate into memory: " + err.Error())
	}
	return out.Bytes()
}
