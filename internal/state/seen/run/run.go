// Package run reads and writes runs, immutable files of sorted keys and values, for a late merge.
//
// A run is written from beginning to end in one pass over sorted input. The memory for this does not grow with the run:
//
//	"kumo run 1\n"
//	blocks of about 16 KiB       which parts are zstd frames (a byte), length of the keys, keys, values, CRC-32C
//	filters, among the blocks    one for each half a million keys
//	index                        a separator, offset and length for each block; offset and length of each filter
//	footer, 48 bytes             offset and length of the index, counts, CRC-32C
//
// A key consists of a byte (lengths of suffix and value, four bits each; 15 means that the rest follows), the length of
// the prefix that it shares with the key before, the rest of the suffix's length, the rest of the value's length, and
// the suffix. Lengths are varints. The first key of a block shares no prefix. The shared prefix is always the longest
// possible, so a lookup can skip most keys without comparing them.
//
// The index and the filters of an open run are in memory: 9 bits per key for the filter, about half a bit for the
// index. A filter is a binary fuse filter (Graf and Lemire, "Binary Fuse Filters: Fast and Smaller Than Xor Filters",
// 2022). It has false positives with a probability of 1 in 256, and no false negatives. Each filter covers a range of
// keys, so it can be built while the keys are written.
package run

import (
	"encoding/binary"
	"errors"
	"hash/crc32"

	"github.com/cespare/xxhash/v2"
)

const (
	magic     = "kumo run 1\n"
	family    = "kumo run "
	footerLen = 48
	blockSize = 16 << 10
	maxBlock  = 1 << 30
	shardKeys = 1 << 19 // keys per filter; building one takes 16 MB of memory
)

var (
	// ErrVersion means that a file was written by another version of kumo, or is not a run.
	ErrVersion = errors.New("not a run that this version of kumo reads")
	// ErrDamaged means that a run's content is not as it was written.
	ErrDamaged = errors.New("the run is damaged")
	// ErrOrder means that a key is not greater than the one before.
	ErrOrder = errors.New("keys must ascend")
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Hash returns the hash of a key for filters. It is part of the format.
func Hash(key []byte) uint64 { return xxhash.Sum64(key) }

// HashString is Hash of a string.
func HashString(key string) uint64 { return xxhash.Sum64String(key) }

// A Source iterates over keys in ascending order with their values. Key and Value are valid until the next call of
// Next.
type Source interface {
	Next() bool
	Key() []byte
	Value() []byte
	Err() error // the error that ended the iteration, nil at the end
}

// Pairs is a Source of keys and values in memory.
type Pairs struct {
	All []Pair
	now Pair
}

// A Pair is a key and its value.
type Pair struct{ Key, Value []byte }

// Next advances to the next pair.
func (p *Pairs) Next() bool {
	if len(p.All) == 0 {
		return false
	}
	p.now, p.All = p.All[0], p.All[1:]
	return true
}

// Key returns the current key.
func (p *Pairs) Key() []byte { return p.now.Key }

// Value returns the current value.
func (p *Pairs) Value() []byte { return p.now.Value }

// Err returns nil.
func (p *Pairs) Err() error { return nil }

func seal(b []byte) []byte { return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli)) }

func unseal(b []byte) ([]byte, error) {
	n := len(b) - 4
	if n < 0 || binary.LittleEndian.Uint32(b[n:]) != crc32.Checksum(b[:n], castagnoli) {
		return nil, ErrDamaged
	}
	return b[:n], nil
}
