package entry

import (
	"encoding/binary"
	"maps"
	"slices"

	"kumo/internal/cluster/member"
)

// Links are the links in the outbox for other nodes: candidates, encoded by Candidate, by outbox number.
type Links map[uint64]string

// Delivered removes links that other nodes have received.
func (l Links) Delivered(first, last uint64) {
	if last-first > uint64(len(l)) {
		maps.DeleteFunc(l, func(n uint64, _ string) bool { return first <= n && n <= last })
		return
	}
	for n := first; n <= last; n++ {
		delete(l, n)
	}
}

// Numbers returns the numbers of all links, sorted.
func (l Links) Numbers() []uint64 { return slices.Sorted(maps.Keys(l)) }

// Batches calls f with all links, in the batches that nodes send to each other.
func (l Links) Batches(f func(data []byte) error) error {
	data := []byte{member.LinksVersion}
	for _, n := range l.Numbers() {
		data = append(binary.AppendUvarint(data, uint64(len(l[n]))), l[n]...)
		if len(data) < batchBytes {
			continue
		}
		if err := f(data); err != nil {
			return err
		}
		data = data[:1]
	}
	if len(data) == 1 {
		return nil
	}
	return f(data)
}

const batchBytes = 256 << 10
