package parse

import (
	"encoding/binary"
	"math/bits"
)

// A nameTable maps names, in any letter case, to values. It is a perfect hash of names of up to eight bytes, read as
// one number. Longer names are few and are compared one by one.
type nameTable[T ~uint8] struct {
	factor uint64
	keys   [tableSize]uint64
	values [tableSize]T
	long   []longName[T]
}

type longName[T ~uint8] struct {
	name  string
	value T
}

const (
	tableBits = 10
	tableSize = 1 << tableBits
	keyLength = 8 // bytes of a name that fit into a key
)

// newNameTable returns a table of names, which must be in lower case.
func newNameTable[T ~uint8](names map[string]T) *nameTable[T] {
	t := &nameTable[T]{}
	for name, value := range names {
		if len(name) > keyLength {
			t.long = append(t.long, longName[T]{name, value})
		}
	}
	for t.factor = 0x9E3779B97F4A7C15; !t.fill(names); t.factor = t.factor*0xD1342543DE82EF95 + 2 {
		t.keys = [tableSize]uint64{}
	}
	return t
}

// fill adds the short names. It returns false if two of them collide.
func (t *nameTable[T]) fill(names map[string]T) bool {
	for name, value := range names {
		if len(name) > keyLength {
			continue
		}
		key := keyOf([]byte(name))
		slot := t.slot(key)
		if t.keys[slot] != 0 {
			return false
		}
		t.keys[slot], t.values[slot] = key, value
	}
	return true
}

func (t *nameTable[T]) slot(key uint64) uint64 { return key * t.factor >> (64 - tableBits) }

// read looks up the name at i. The name has at least one byte and ends before the next byte whose class is in ends. It
// returns the value, zero if the name is unknown, and the end of the name.
func (t *nameTable[T]) read(src []byte, i int, ends uint8) (value T, end int) {
	if i+keyLength < len(src) {
		// Bytes that end a name are below 0x40, and letters are not. Most names end before the first such byte of the
		// eight.
		word := binary.LittleEndian.Uint64(src[i:])
		n := bits.TrailingZeros64(^(word|word<<1)&highs) / 8
		if class[src[i+n]]&ends != 0 && n > 0 {
			key := lowerKey(word & (1<<(8*n) - 1))
			if slot := t.slot(key); t.keys[slot] == key {
				value = t.values[slot]
			}
			return value, i + n
		}
	}
	end = nameEnd(src, i, ends)
	return t.find(src, i, end), end
}

// find returns the value of the name from start to end, which must not be empty; zero if it is unknown.
func (t *nameTable[T]) find(src []byte, start, end int) T {
	n := end - start
	if n > keyLength {
		return t.findLong(src[start:end])
	}
	var key uint64
	if start+keyLength <= len(src) {
		key = firstKey(src[start:], n)
	} else {
		key = keyOf(src[start:end])
	}
	if slot := t.slot(key); t.keys[slot] == key && src[end-1] != 0 {
		return t.values[slot]
	}
	return 0
}

func (t *nameTable[T]) findLong(name []byte) T {
	for _, l := range t.long {
		if equalFold(name, l.name) {
			return l.value
		}
	}
	return 0
}

// keyOf returns the name's bytes in lower case as a number, the first byte lowest. The key is unique among names of at
// most eight bytes that do not end with a zero byte.
func keyOf(name []byte) (key uint64) {
	for i, c := range name {
		key |= uint64(toLower(c)) << (8 * i)
	}
	return key
}

// firstKey returns the key of the first n bytes of text, which must have at least eight. It also changes six characters
// that are not letters; no name contains them.
func firstKey(text []byte, n int) uint64 {
	unused := 8 * (keyLength - n)
	return lowerKey(binary.LittleEndian.Uint64(text) << unused >> unused)
}

func lowerKey(key uint64) uint64 { return key | key>>1&0x2020202020202020 }
