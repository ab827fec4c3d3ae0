package run

var _ Source = (*Iter)(nil)

// An Iter iterates over a run's entries in order.
type Iter struct {
	win  window
	next int    // the block after the current one
	rest cursor // the rest of the current block
	key  []byte
	err  error
}

// Iter returns an iterator over all entries. It is not safe for concurrent use.
func (r *Reader) Iter() *Iter { return &Iter{win: window{r: r}} }

// Seek advances to the first key that is not less than key, and reports whether there is one.
func (it *Iter) Seek(key []byte) bool {
	it.next = max(it.win.r.index.find(key), 0)
	it.rest = cursor{}
	for it.Next() {
		if string(it.key) >= string(key) {
			return true
		}
	}
	return false
}

// Next advances to the next entry.
func (it *Iter) Next() bool {
	for len(it.rest.keys) == 0 {
		if it.err != nil || it.next >= it.win.r.index.len() {
			return false
		}
		it.rest.block, it.err = it.win.entries(it.next)
		it.next++
		it.key = it.key[:0]
	}
	if err := it.rest.next(); err != nil || it.rest.shared > len(it.key) {
		it.rest, it.err = cursor{}, it.win.r.damaged(ErrDamaged)
		return false
	}
	it.key = append(it.key[:it.rest.shared], it.rest.suffix...)
	return true
}

// Key returns the entry's key, valid until the next call of Next or Seek.
func (it *Iter) Key() []byte { return it.key }

// Value returns the entry's value, valid until the next call of Next or Seek.
func (it *Iter) Value() []byte { return it.rest.value }

// Err returns the error that ended the iteration, nil at the end.
func (it *Iter) Err() error { return it.err }
