package mem

import "iter"

// A sub is a table of slots with linear probing: the hash in the upper half, the Ref in the lower.
type sub struct {
	slots []uint64
	n     int
}

// add adds a slot, and returns by how many slots the table has grown.
func (s *sub) add(slot uint64) (grown int) {
	if s.n >= len(s.slots)*13/16 {
		grown = s.grow()
	}
	s.put(slot)
	s.n++
	return grown
}

func (s *sub) grow() int {
	old := s.slots
	s.slots = make([]uint64, max(2*len(old), 8))
	for _, slot := range old {
		if slot != 0 {
			s.put(slot)
		}
	}
	return len(s.slots) - len(old)
}

func (s *sub) put(slot uint64) {
	mask := uint32(len(s.slots) - 1)
	i := uint32(slot>>32) & mask
	for s.slots[i] != 0 {
		i = (i + 1) & mask
	}
	s.slots[i] = slot
}

// Groups is the number of groups that Group iterates over.
const Groups = subs

// Group iterates over one of the groups of records, unsorted.
func (t *Table) Group(i int) iter.Seq[Ref] {
	return func(yield func(Ref) bool) {
		for _, slot := range t.subs[i].slots {
			if slot != 0 && !yield(Ref(slot)) {
				return
			}
		}
	}
}
