package mem

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// An Item is a record to be sorted. cache has eight bytes of the key at the current depth of the sort.
type Item struct {
	cache uint64
	Ref   Ref
}

// Sorted appends all records to items, sorted by key. It does not modify the table.
func (t *Table) Sorted(items []Item) []Item {
	from := len(items)
	items = slices.Grow(items, t.n)
	for i := range t.subs {
		for ref := range t.Group(i) {
			items = append(items, Item{Ref: ref})
		}
	}
	s := sorter{t.Keys()}
	s.load(items[from:], 0)
	s.sort(items[from:], 0)
	return items
}

// A sorter is a caching multikey quicksort (Ng and Kakehi, "Cache Efficient Radix Sort for String Sorting", 2007): it
// compares eight bytes of keys, and reads the next eight only for keys that are equal so far.
type sorter struct{ Keys }

const small = 12

// sort sorts items whose first depth bytes are equal and whose next eight are cached.
func (s sorter) sort(items []Item, depth int) {
	for len(items) > small {
		lt, gt := partition(items, pivot(items))
		s.sort(items[:lt], depth)
		s.sortEqual(items[lt:gt], depth)
		items = items[gt:]
	}
	s.insertion(items, depth)
}

// sortEqual sorts items with equal caches: first those that end within the cache, by length, then the rest by the
// following bytes.
func (s sorter) sortEqual(items []Item, depth int) {
	ended := 0
	for i := range items {
		if len(s.Key(items[i].Ref)) <= depth+8 {
			items[i], items[ended] = items[ended], items[i]
			ended++
		}
	}
	slices.SortFunc(items[:ended], func(a, b Item) int { return len(s.Key(a.Ref)) - len(s.Key(b.Ref)) })
	s.load(items[ended:], depth+8)
	s.sort(items[ended:], depth+8)
}

func (s sorter) load(items []Item, depth int) {
	for i := range items {
		key := s.Key(items[i].Ref)
		if len(key) >= depth+8 {
			items[i].cache = binary.BigEndian.Uint64(key[depth:])
			continue
		}
		var pad [8]byte
		copy(pad[:], key[min(depth, len(key)):])
		items[i].cache = binary.BigEndian.Uint64(pad[:])
	}
}

func (s sorter) insertion(items []Item, depth int) {
	for i := 1; i < len(items); i++ {
		for j := i; j > 0 && s.less(items[j], items[j-1], depth); j-- {
			items[j], items[j-1] = items[j-1], items[j]
		}
	}
}

func (s sorter) less(a, b Item, depth int) bool {
	if a.cache != b.cache {
		return a.cache < b.cache
	}
	return string(s.Key(a.Ref)[depth:]) < string(s.Key(b.Ref)[depth:])
}

func pivot(items []Item) uint64 {
	a, b, c := items[len(items)/4].cache, items[len(items)/2].cache, items[len(items)*3/4].cache
	return max(min(a, b), min(max(a, b), c))
}

// partition moves items less than p before lt, and those greater to gt and after.
func partition(items []Item, p uint64) (lt, gt int) {
	gt = len(items)
	for i := 0; i < gt; {
		switch cmp.Compare(items[i].cache, p) {
		case -1:
			items[i], items[lt] = items[lt], items[i]
			lt++
			i++
		case 1:
			gt--
			items[i], items[gt] = items[gt], items[i]
		default:
			i++
		}
	}
	return lt, gt
}
