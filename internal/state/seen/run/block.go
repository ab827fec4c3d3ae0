package run

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// A block is a sequence of entries: their keys, and their values. Stored separately, they compress better.
type block struct{ keys, values []byte }

// add appends an entry whose key shares its first shared bytes with the key before.
func (k *block) add(shared int, suffix, value []byte) {
	b := append(k.keys, byte(min(len(suffix), 15)<<4|min(len(value), 15)))
	b = binary.AppendUvarint(b, uint64(shared))
	if len(suffix) >= 15 {
		b = binary.AppendUvarint(b, uint64(len(suffix)-15))
	}
	if len(value) >= 15 {
		b = binary.AppendUvarint(b, uint64(len(value)-15))
	}
	k.keys = append(b, suffix...)
	k.values = append(k.values, value...)
}

func (k *block) len() int { return len(k.keys) + len(k.values) }

func (k *block) reset() { k.keys, k.values = k.keys[:0], k.values[:0] }

type cursor struct {
	block
	shared int
	suffix []byte
	value  []byte
}

func (c *cursor) next() error {
	b, at := c.keys, 1
	var shared uint64
	if len(b) > 1 && b[1] < 0x80 { // nearly always
		shared, at = uint64(b[1]), 2
	} else if shared, at = uvarint(b, at); at < 0 {
		return ErrDamaged
	}
	suffix, value := uint64(b[0]>>4), uint64(b[0]&15)
	if suffix == 15 {
		if suffix, at = longer(b, at); at < 0 {
			return ErrDamaged
		}
	}
	if value == 15 {
		if value, at = longer(b, at); at < 0 {
			return ErrDamaged
		}
	}
	if shared > maxBlock || suffix > uint64(len(b)-at) || value > uint64(len(c.values)) {
		return ErrDamaged
	}
	end := at + int(suffix)
	c.shared, c.suffix, c.keys = int(shared), b[at:end], b[end:]
	c.value, c.values = c.values[:value], c.values[value:]
	return nil
}

func uvarint(b []byte, at int) (v uint64, next int) {
	v, n := binary.Uvarint(b[at:])
	if n <= 0 {
		return 0, -1
	}
	return v, at + n
}

func longer(b []byte, at int) (length uint64, next int) {
	v, next := uvarint(b, at)
	if v > maxBlock {
		return 0, -1
	}
	return v + 15, next
}

// common returns the length of the common prefix of a and b.
func common(a, b []byte) int {
	n := min(len(a), len(b))
	i := 0
	for ; i+8 <= n; i += 8 {
		if x := binary.LittleEndian.Uint64(a[i:]) ^ binary.LittleEndian.Uint64(b[i:]); x != 0 {
			return i + bits.TrailingZeros64(x)/8
		}
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}

// separator returns the shortest key that is greater than last and not greater than first.
func separator(last, first []byte) []byte {
	if bytes.Equal(last, first) {
		return first
	}
	return first[:min(common(last, first)+1, len(first))]
}
