package seen

import "kumo/internal/seen/mem"

// orderStep is how many groups of records are looked at in one hold of the lock: those of a large table have some ten
// thousand slots together.
const orderStep = 4

// orderLists is how many lists, of 65,536 records, are sorted in one go: a look at hosts has a few.
const orderLists = 1

// order has what a table has in order. That is kept as long as the table is filled, and brought up to date by who looks
// next: so who crawls pays nothing for it as long as nobody does. The table is pinned.
func (d *DB) order(t *mem.Table) *mem.Order {
	d.ordering.Lock()
	defer d.ordering.Unlock()
	d.mu.Lock()
	o, end, keys := t.Order(), t.Next(), t.Keys()
	d.mu.Unlock()
	if o.End() == end && o.Sorted() {
		return o
	}
	var refs []mem.Ref
	for i := 0; i < mem.Groups && o.End() < end; i += orderStep {
		d.mu.Lock()
		for j := range orderStep {
			refs = t.Between(i+j, o.End(), end, refs)
		}
		d.mu.Unlock()
	}
	o = o.With(keys, refs, end, orderLists)
	d.mu.Lock()
	defer d.mu.Unlock()
	t.KeepOrder(o)
	return o
}
