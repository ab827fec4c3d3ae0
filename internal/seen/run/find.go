package run

// A Finder looks keys up. It is made for keys that come in ascending order, which it finds in one pass over the blocks that can
// hold them.
type Finder struct{ win window }

// Finder returns a finder, for one goroutine.
func (r *Reader) Finder() *Finder { return &Finder{window{r: r}} }

// Find returns the value of key, valid until the next call.
func (f *Finder) Find(key []byte) (value []byte, ok bool, err error) {
	i := f.win.r.index.find(key)
	if i < 0 {
		return nil, false, nil
	}
	b, err := f.win.entries(i)
	if err != nil {
		return nil, false, err
	}
	if value, ok, err = search(b, key); err != nil {
		err = f.win.r.damaged(err)
	}
	return value, ok, err
}
