package run

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"sort"

	"github.com/FastFilter/xorfilter"
)

const filterHead = 8 + 3*4

// A shard is the filter of a range of keys, up to the first key of the next shard.
type shard struct {
	first  string
	filter xorfilter.BinaryFuse[uint8]
}

type sharder struct {
	builder xorfilter.BinaryFuseBuilder
	hashes  []uint64
	first   []byte
	buf     []byte
}

func (s *sharder) add(key []byte) {
	if len(s.hashes) == 0 {
		s.first = append(s.first[:0], key...)
	}
	s.hashes = append(s.hashes, Hash(key))
}

func (s *sharder) full() bool { return len(s.hashes) >= shardKeys }

// build returns the filter's bytes, valid until the next call.
func (s *sharder) build() ([]byte, error) {
	f, err := xorfilter.BuildBinaryFuse[uint8](&s.builder, s.hashes)
	if err != nil {
		return nil, err
	}
	s.hashes = s.hashes[:0]
	b := binary.LittleEndian.AppendUint64(s.buf[:0], f.Seed)
	b = binary.LittleEndian.AppendUint32(b, f.SegmentLength)
	b = binary.LittleEndian.AppendUint32(b, f.SegmentCount)
	b = binary.LittleEndian.AppendUint32(b, f.SegmentCountLength)
	s.buf = seal(append(b, f.Fingerprints...))
	return s.buf, nil
}

// A Probe is a query to filters: May is set to true if the key may be present, and left unchanged otherwise.
type Probe struct {
	Key  string
	Hash uint64 // HashString of Key
	May  bool
}

// Probe sets May of the probes that do not have it set. Each takes a few cache misses, which the processor overlaps.
func (r *Reader) Probe(all []Probe) {
	var filters [32]*xorfilter.BinaryFuse[uint8]
	last := 0
	for part := range slices.Chunk(all, len(filters)) {
		for i := range part {
			if filters[i] = nil; !part[i].May {
				last, filters[i] = r.shard(last, part[i].Key)
			}
		}
		for i, f := range filters[:len(part)] {
			if f != nil && f.Contains(part[i].Hash) {
				part[i].May = true
			}
		}
	}
}

// shard returns the filter for key and its index. i is the index of the previous look-up, often the same.
func (r *Reader) shard(i int, key string) (int, *xorfilter.BinaryFuse[uint8]) {
	n := len(r.shards)
	if i >= n || r.shards[i].first > key || i+1 < n && r.shards[i+1].first <= key {
		if i = sort.Search(n, func(i int) bool { return r.shards[i].first > key }) - 1; i < 0 {
			return 0, nil
		}
	}
	return i, &r.shards[i].filter
}

// readFilter decodes a filter, and checks that no look-up can exceed the fingerprints.
func readFilter(b []byte) (f xorfilter.BinaryFuse[uint8], err error) {
	if b, err = unseal(b); err != nil || len(b) < filterHead {
		return f, ErrDamaged
	}
	f.Seed = binary.LittleEndian.Uint64(b)
	f.SegmentLength = binary.LittleEndian.Uint32(b[8:])
	f.SegmentCount = binary.LittleEndian.Uint32(b[12:])
	f.SegmentCountLength = binary.LittleEndian.Uint32(b[16:])
	f.SegmentLengthMask = f.SegmentLength - 1
	f.Fingerprints = b[filterHead:]
	if bits.OnesCount32(f.SegmentLength) != 1 || f.SegmentCountLength == 0 ||
		uint64(len(f.Fingerprints)) < uint64(f.SegmentCountLength)+2*uint64(f.SegmentLength) {
		return f, ErrDamaged
	}
	return f, nil
}
