package mem

import (
	"bytes"
	"math/bits"
	"slices"
	"sort"
)

// Keys are the keys of the records that a table had when they were taken. They may be read while others are added.
type Keys struct{ pieces [][]byte }

// Keys are those of all records of now.
func (t *Table) Keys() Keys { return Keys{t.pieces} }

// Key is a record's key.
func (k Keys) Key(r Ref) []byte {
	b := k.pieces[r/perPiece][r%perPiece*unit:]
	return b[headLen:][:int(b[1])|int(b[2])<<8|int(b[3])<<16] // without the flags, which may just change
}

// An Order is a snapshot of a table's records, in the order of their keys. It has several lists, so that an update
// costs what has come since.
type Order struct {
	keys  Keys
	n     int // records
	end   Ref // before it are all records that it has
	lists [][]Ref
}

// LongList is how many records a list has from which it is not merged with others, and that are put in order in one go:
// a few megabytes of the arena, which are quickly sorted as they lie together.
const LongList = 1 << 16

// Order is the order that was kept; an empty one if none was.
func (t *Table) Order() *Order {
	if t.order == nil {
		return &Order{}
	}
	return t.order
}

// KeepOrder keeps an order until Reset.
func (t *Table) KeepOrder(o *Order) { t.order = o }

// Next is where the next record comes to lie, or behind that.
func (t *Table) Next() Ref { return Ref(t.at / unit) }

// End is behind the last record that an order has.
func (o *Order) End() Ref { return o.end }

// Len is how many records an order has.
func (o *Order) Len() int { return o.n }

const marksAtOnce = 1 << 10

// Refs appends records that lie from one place on, as far as is quickly gone through. It returns where it has ended.
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

// With is the order with the records between its end and another, which are not many.
func (o *Order) With(keys Keys, refs []Ref, end Ref) *Order {
	to := &Order{keys: keys, n: o.n + len(refs), end: end, lists: slices.Clone(o.lists)}
	if len(refs) > 0 {
		to.add(keys.sorted(refs))
	}
	return to
}

// add adds a sorted list, and merges short ones.
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

// A Walk goes through an order.
type Walk struct {
	keys  Keys
	lists [][]Ref // what is left of each, as a heap by the first; none is empty
	began bool
}

// From begins a walk at the first key that is not less than one.
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

// Next goes to the next record; the first time, to the first.
func (w *Walk) Next() bool {
	if w.began && len(w.lists) > 0 {
		w.advance(1)
	}
	w.began = true
	return len(w.lists) > 0
}

// Skip has Next go to the first record whose key is not less than one that is greater than the key at hand.
func (w *Walk) Skip(key []byte) {
	for len(w.lists) > 0 && bytes.Compare(w.Key(), key) < 0 {
		list := w.lists[0]
		least, most := 1, 2 // as a rule it is near
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

// Ref is the record at hand.
func (w *Walk) Ref() Ref { return w.lists[0][0] }

// Key is its key.
func (w *Walk) Key() []byte { return w.keys.Key(w.Ref()) }
