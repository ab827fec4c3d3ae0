package xor

import "math/bits"

// A Pattern is the part of the space whose ids have Value's bits where Mask has ones. The zero Pattern is all of it.
type Pattern struct{ Value, Mask ID }

// Prefix is the part whose ids begin with the first n bits of id.
func Prefix(id ID, n int) Pattern {
	var ones ID
	for i := range ones {
		ones[i] = 0xff
	}
	return Pattern{id.Truncate(n), ones.Truncate(n)}
}

// List is the part whose ids have their first difference from id at a bit, the k-bucket of that number; id itself for
// -1.
func List(id ID, index int) Pattern {
	if index < 0 {
		return Prefix(id, Bits)
	}
	return Prefix(id.flip(index), Bits-index)
}

func (a ID) flip(index int) ID {
	a[(Bits-1-index)/8] ^= 1 << (index % 8)
	return a
}

// With is the part of p whose ids have a bit of this value at an index, at which p asks for none.
func (p Pattern) With(index int, value byte) Pattern {
	p.Mask = p.Mask.flip(index)
	if value != 0 {
		p.Value = p.Value.flip(index)
	}
	return p
}

// Contains reports whether an id is in the part.
func (p Pattern) Contains(id ID) bool {
	for i, m := range p.Mask {
		if (id[i]^p.Value[i])&m != 0 {
			return false
		}
	}
	return true
}

// Len is how many of an id's first bits p asks for: the ids of p lie together among those that begin so.
func (p Pattern) Len() int {
	for i, m := range p.Mask {
		if m != 0xff {
			return 8*i + bits.LeadingZeros8(^m)
		}
	}
	return Bits
}

// Whole reports whether p asks for its first bits alone: its ids are all that lie between its first and its last.
func (p Pattern) Whole() bool { return p.Mask == Prefix(p.Mask, p.Len()).Mask }

// First and Last are the least and the greatest id that begin as those of p do.
func (p Pattern) First() ID { return p.Value.Truncate(p.Len()) }

// Last is described with First.
func (p Pattern) Last() ID {
	id, n := p.First(), p.Len()
	for i := range id {
		switch free := 8*(i+1) - n; {
		case free >= 8:
			id[i] = 0xff
		case free > 0:
			id[i] |= 0xff >> (8 - free)
		}
	}
	return id
}
