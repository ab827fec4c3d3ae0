package run

import (
	"context"
	"fmt"
)

// Verify reads the whole run. It checks that the blocks are undamaged, that the keys ascend and are as many as the
// footer says, and that the index and the filters find them. Open has checked index, filters and footer.
func (r *Reader) Verify(ctx context.Context) error {
	var last []byte
	var n uint64
	it := r.Iter()
	for it.Next() {
		key := it.Key()
		switch {
		case n > 0 && string(key) <= string(last):
			return r.damaged(fmt.Errorf("%w: %q comes after %q", ErrDamaged, key, last))
		case !r.May(string(key), Hash(key)):
			return r.damaged(fmt.Errorf("%w: its filter lacks %q", ErrDamaged, key))
		case r.index.find(key) != it.next-1:
			return r.damaged(fmt.Errorf("%w: its index leads to another block for %q", ErrDamaged, key))
		}
		if n++; n%keysAStep == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		last = append(last[:0], key...)
	}
	if it.Err() == nil && n != r.count {
		return r.damaged(fmt.Errorf("%w: it has %d keys, its footer says %d", ErrDamaged, n, r.count))
	}
	return it.Err()
}

const keysAStep = 4096 // keys between checks of the context
