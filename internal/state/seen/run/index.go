package run

import (
	"encoding/binary"
	"kumo/internal/base/varint"
	"sort"
)

// An index has the position of each block, and a separator: a key greater than the last of the block before, and not
// greater than the block's first.
type index struct {
	keys []byte   // all separators, one after the other
	ends []uint32 // where each separator ends in keys
	at   []int64  // where each block begins
	size []uint32 // of each block, checksum included
}

func (x *index) add(separator []byte, at int64, size int) {
	x.keys = append(x.keys, separator...)
	x.ends = append(x.ends, uint32(len(x.keys)))
	x.at = append(x.at, at)
	x.size = append(x.size, uint32(size))
}

func (x *index) len() int { return len(x.at) }

func (x *index) separator(i int) []byte {
	from := uint32(0)
	if i > 0 {
		from = x.ends[i-1]
	}
	return x.keys[from:x.ends[i]]
}

// find returns the last block that can hold key; -1 if key is before all blocks.
func (x *index) find(key []byte) int {
	return sort.Search(x.len(), func(i int) bool { return string(x.separator(i)) > string(key) }) - 1
}

// next is find, optimized for keys in block i or soon after; i is -1 at the start.
func (x *index) next(i int, key []byte) int {
	const near = 4
	if i < 0 || string(x.separator(i)) > string(key) {
		return x.find(key)
	}
	for end := min(i+near, x.len()); i < end; i++ {
		if i+1 == x.len() || string(x.separator(i+1)) > string(key) {
			return i
		}
	}
	return x.find(key)
}

func (x *index) bytes() int64 {
	return int64(len(x.keys)) + 4*int64(len(x.ends)+len(x.size)) + 8*int64(len(x.at))
}

func (x *index) append(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(x.len()))
	var last []byte
	for i := range x.at {
		sep := x.separator(i)
		shared := common(last, sep)
		b = binary.AppendUvarint(b, uint64(shared))
		b = appendBytes(b, sep[shared:])
		b = binary.AppendUvarint(b, uint64(x.at[i]))
		b = binary.AppendUvarint(b, uint64(x.size[i]))
		last = sep
	}
	return b
}

// read decodes the entries of n blocks; all must be before end.
func (x *index) read(r *varint.Reader, end int64) {
	var key []byte
	for n := r.Count(); n > 0 && !r.Bad; n-- {
		shared := r.UintMax(uint64(len(key)))
		key = append(key[:shared], r.Bytes()...)
		at := r.UintMax(uint64(end))
		size := r.UintMax(min(uint64(end)-at, maxBlock))
		if size < 4 {
			r.Bad = true
		}
		x.add(key, int64(at), int(size))
	}
}

func appendBytes(b, s []byte) []byte { return append(binary.AppendUvarint(b, uint64(len(s))), s...) }
