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

// A table finds records by the names of their hosts. It is open-addressed and divided into shards, so that growing one
// is short. Records are numbered from 1 and never move.
type table struct {
	chunks [][]record
	n      uint32 // number of the last record
	shards [shards]shard
	memory int64 // bytes that the table takes
	buf    []byte
}

type shard struct {
	slots []uint32 // record numbers, 0 for none; the length is a power of two
	n     int
}

// identity returns the 96 bits that identify a host.
func (t *table) identity(name string) (hi uint64, lo uint32) {
	t.buf = append(t.buf[:0], name...)
	sum := sha256.Sum256(t.buf)
	return binary.LittleEndian.Uint64(sum[:]), binary.LittleEndian.Uint32(sum[8:])
}

func (t *table) at(id uint32) *record { return &t.chunks[(id-1)>>chunkBits][(id-1)&(chunkLen-1)] }

// find returns the number of a record, 0 if there is none.
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

// add creates a record for a host without one.
func (t *table) add(hi uint64, lo uint32) uint32 {
	t.set(t.n+1, &record{hi: hi, lo: lo})
	return t.n
}

// set stores a record under a number that is not in use.
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
