package frontier

import (
	"crypto/sha256"
	"encoding/binary"
)

const (
	chunkBits = 12
	chunkLen  = 1 << chunkBits
	shards    = 256
)

// A table finds records by their hosts' names. It is open-addressed and in shards, so that growing one is short.
// Records are numbered from 1 and never move.
type table struct {
	chunks [][]record
	n      uint32 // the last record's number
	shards [shards]shard
	memory int64 // that it takes, in bytes
	buf    []byte
}

type shard struct {
	slots []uint32 // numbers of records, 0 for none; a power of two of them
	n     int
}

// identity is what a host is known by.
func (t *table) identity(name string) (hi uint64, lo uint32) {
	t.buf = append(t.buf[:0], name...)
	sum := sha256.Sum256(t.buf)
	return binary.LittleEndian.Uint64(sum[:]), binary.LittleEndian.Uint32(sum[8:])
}

func (t *table) at(id uint32) *record { return &t.chunks[(id-1)>>chunkBits][(id-1)&(chunkLen-1)] }

// find returns a record's number, 0 if there is none.
func (t *table) find(hi uint64, lo uint32) uint32 {
	s := &t.shards[hi>>56]
	if s.n == 0 {
		return 0
	}
	mask := uint64(len(s.slots) - 1)
	for i := hi & mask; ; i = (i + 1) & mask {
		id := s.slots[i]
		if id == 0 {
			return 0
		}
		if r := t.at(id); r.hi == hi && r.lo == lo {
			return id
		}
	}
}

// add makes a record of a host that has none.
func (t *table) add(hi uint64, lo uint32) uint32 {
	t.set(t.n+1, &record{hi: hi, lo: lo})
	return t.n
}

// nextSet gives a record a number that none has.
func (t *table) set(id uint32, r *record) {
	for int(id-1)>>chunkBits >= len(t.chunks) {
		t.chunks = append(t.chunks, nil)
	}
	if c := &t.chunks[(id-1)>>chunkBits]; *c == nil {
		*c = make([]record, chunkLen)
		t.memory += chunkLen * recordLen
	}
	t.n = max(t.n, id)
	*t.at(id) = *r
	s := &t.shards[r.hi>>56]
	if s.n++; 4*s.n > 3*len(s.slots) {
		t.grow(s)
	}
	s.put(r.hi, id)
}

func (t *table) grow(s *shard) {
	old := s.slots
	s.slots = make([]uint32, max(16, 2*len(old)))
	t.memory += 4 * int64(len(s.slots)-len(old))
	for _, id := range old {
		if id != 0 {
			s.put(t.at(id).hi, id)
		}
	}
}

func (s *shard) put(hi uint64, id uint32) {
	mask := uint64(len(s.slots) - 1)
	i := hi & mask
	for s.slots[i] != 0 {
		i = (i + 1) & mask
	}
	s.slots[i] = id
}
