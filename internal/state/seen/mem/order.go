package mem

import (
	"bytes"
	"math/bits"
	"slices"
	"sort"
)

// Keys is a snapshot of a table's keys. It may be read while others are added.
type Keys struct{ pieces [][]byte }

// Keys returns the keys of all current records.
func (t *Table) Keys() Keys { return Keys{t.pieces} }

// Key returns a record's key.
func (k Keys) Key(r Ref) []byte {
	b := k.pieces[r/perPiece][r%perPiece*unit:]
	return b[headLen:][:int(b[1])|int(b[2])<<8|int(b[3])<<16] // without the flags, which may be changing
}

// An Order is a snapshot of a table's records, sorted by key. It consists of several lists, so that the cost of an
// update depends on the new records.
type Order struct {
	keys  Keys
	n     int // records
	end   Ref // all its records are before it
	lists [][]Ref
}

// LongList is the number of records from which a list is not merged with others, and that are sorted at once: they take
// a few megabytes of the arena, which are sorted fast as they are contiguous.
const LongList = 1 << 16

// Order returns the stored order; an empty one if there is none.
func (t *Table) Order() *Order {
	if t.order == nil {
		return &Order{}
	}
	return t.order
}

// KeepOrder stores an order until Reset.
func (t *Table) KeepOrder(o *Order) { t.order = o }

// Next returns a position at or before that of the next record.
func (t *Table) Next() Ref { return Ref(t.at / unit) }

// End returns the position behind the last record of an order.
func (o *Order) End() Ref { return o.end }

// Len returns the number of records of an order.
func (o *Order) Len() int { return o.n }

const marksAtOnce = 1 << 10

// Refs appends records from a position on, for a bounded part of the table. It returns the position where it has ended.
func (t *Table) Refs(from Ref, refs []Ref) ([]Ref, Ref) {
	if int(from/perPiece) >= len(t.marks) {
		return refs, from
	}
	marks, first := t.marks[from/perPiece], int(from%perPiece/64)
	last := min(first+marksAtOnce, perPiece/64)
	base := from / perPiece * perPiece
	for i := first; i < min(last, len(marks)); i++ {
		for word := marks[i]; word != 0; word &= word - 1 {
			if ref := base + Ref(i*64+bits.TrailingZeros64(word)); ref >= from {
				refs = append(refs, ref)
			}
		}
	}
	return refs, min(base+Ref(last*64), t.Next())
}

// With returns the order extended by some records, those from its end to another.
func (o *Order) With(keys Keys, refs []Ref, end Ref) *Order {
	to := &Order{keys: keys, n: o.n + len(refs), end: end, lists: slices.Clone(o.lists)}
	if len(refs) > 0 {
		to.add(keys.sorted(refs))
	}
	return to
}

// add adds a sorted list, and merges short lists.
func (o *Order) add(list []Ref) {
	o.lists = append(o.lists, list)
	for n := len(o.lists); n > 1 && len(o.lists[n-2]) < LongList/2 && len(o.lists[n-2]) <= 2*len(o.lists[n-1]); n-- {
		o.lists = append(o.lists[:n-2], o.keys.merged(o.lists[n-2], o.lists[n-1]))
	}
}

func (k Keys) sorted(refs []Ref) []Ref {
	items := make([]Item, len(refs))
	for i, ref := range refs {
		items[i].Ref = ref
	}
	s := sorter{k}
	s.load(items, 0)
	s.sort(items, 0)
	sorted := make([]Ref, len(refs))
	for i := range items {
		sorted[i] = items[i].Ref
	}
	return sorted
}

func (k Keys) merged(a, b []Ref) []Ref {
	all := make([]Ref, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if bytes.Compare(k.Key(a[0]), k.Key(b[0])) < 0 {
			all, a = append(all, a[0]), a[1:]
		} else {
			all, b = append(all, b[0]), b[1:]
		}
	}
	return append(append(all, a...), b...)
}

// A Walk iterates over an order.
type Walk struct {
	keys  Keys
	lists [][]Ref // the rest of each list, as a heap by the first key; none is empty
	began bool
}

// From starts a walk at the first key that is not less than key.
func (o *Order) From(key []byte) *Walk {
	w := &Walk{keys: o.keys}
	for _, list := range o.lists {
		i := sort.Search(len(list), func(i int) bool { return bytes.Compare(o.keys.Key(list[i]), key) >= 0 })
		if i < len(list) {
			w.lists = append(w.lists, list[i:])
		}
	}
	for i := len(w.lists)/2 - 1; i >= 0; i-- {
		w.down(i)
	}
	return w
}

// Next advances to the next record; the first call, to the first record.
func (w *Walk) Next() bool {
	if w.began && len(w.lists) > 0 {
		w.advance(1)
	}
	w.began = true
	return len(w.lists) > 0
}

// Skip makes the next call of Next go to the first record whose key is not less than key, which must be greater than
// the current one.
func (w *Walk) Skip(key []byte) {
	for len(w.lists) > 0 && bytes.Compare(w.Key(), key) < 0 {
		list := w.lists[0]
		least, most := 1, 2 // it is usually near
		for most < len(list) && bytes.Compare(w.keys.Key(list[most-1]), key) < 0 {
			least, most = most, 2*most
		}
		most = min(most, len(list))
		w.advance(least + sort.Search(most-least, func(i int) bool {
			return bytes.Compare(w.keys.Key(list[least+i]), key) >= 0
		}))
	}
	w.began = false
}

func (w *Walk) advance(n int) {
	if w.lists[0] = w.lists[0][n:]; len(w.lists[0]) == 0 {
		last := len(w.lists) - 1
		w.lists[0] = w.lists[last]
		w.lists = w.lists[:last]
	}
	w.down(0)
}

func (w *Walk) down(i int) {
	for {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(w.lists); c++ {
			if bytes.Compare(w.keys.Key(w.lists[c][0]), w.keys.Key(w.lists[least][0])) < 0 {
				least = c
			}
		}
		if least == i {
			return
		}
		w.lists[i], w.lists[least] = w.lists[least], w.lists[i]
		i = least
	}
}

// Ref returns the current record.
func (w *Walk) Ref() Ref { return w.lists[0][0] }

// Key returns the current record's key.
func (w *Walk) Key() []byte { return w.keys.Key(w.Ref()) }
