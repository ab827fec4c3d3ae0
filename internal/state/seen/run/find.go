package run

import "bytes"

// A Finder looks up keys. It is optimized for ascending keys, which it finds in one pass over the blocks that can hold
// them, and each block in one pass over its entries.
type Finder struct {
	win  window
	in   int    // the current block, plus 1
	rest cursor // at an entry not less than the last key searched, or at the end
	key  []byte // of that entry
	end  bool
}

// Finder returns a finder. It is not safe for concurrent use.
func (r *Reader) Finder() *Finder { return &Finder{win: window{r: r}} }

// Find returns the value of key, valid until the next call.
func (f *Finder) Find(key []byte) (value []byte, ok bool, err error) {
	i := f.win.r.index.next(f.in-1, key)
	if i < 0 {
		return nil, false, nil
	}
	same := 0
	if i+1 == f.in && bytes.Compare(f.key, key) <= 0 {
		same = common(f.key, key)
		if f.end || same == len(key) && same == len(f.key) {
			return f.rest.value, !f.end, nil
		}
	} else if err := f.enter(i); err != nil {
		return nil, false, err
	}
	if ok, err = f.search(key, same); err != nil {
		f.in = 0
		err = f.win.r.damaged(err)
	}
	return f.rest.value, ok, err
}

func (f *Finder) enter(i int) (err error) {
	f.in, f.end = 0, false
	if f.rest.block, err = f.win.entries(i); err == nil {
		f.in = i + 1
	}
	return err
}

// search advances to the first entry that is not less than target, and reports whether it is target's. same is the
// length of the prefix that target shares with the last key, which is less. An entry that shares more with that key is
// less, too; an entry that shares less is greater.
func (f *Finder) search(target []byte, same int) (bool, error) {
	c := &f.rest
	for len(c.keys) > 0 {
		if err := c.next(); err != nil {
			return false, err
		}
		if c.shared > same {
			continue
		}
		more := 0
		if c.shared == same {
			more = common(c.suffix, target[same:])
		}
		found := c.shared == same && more == len(c.suffix) && same+more == len(target)
		if found || c.shared < same || same+more == len(target) || more < len(c.suffix) &&
			c.suffix[more] > target[same+more] {
			f.key = append(append(f.key[:0], target[:c.shared]...), c.suffix...)
			return found, nil
		}
		same += more
	}
	f.key, f.end = append(f.key[:0], target...), true
	return false, nil
}
