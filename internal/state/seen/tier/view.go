package tier

import (
	"bytes"
	"errors"
	"iter"
	"slices"

	"kumo/internal/state/seen/run"
)

// A handle is an open run with its reference count: the set holds it while the manifest names it, and views hold it.
type handle struct {
	*run.Reader
	run     Run
	refs    int
	unnamed bool // no manifest names it any more
}

// A View is the runs at one moment. A view that is not pinned only answers May and Probe.
type View struct {
	set           *Set
	runs, waiting []*handle
	cuts          []Cut
}

// isCut reports whether a key is deleted from a run.
func (v *View) isCut(h *handle, key []byte) bool {
	for i := range v.cuts {
		if v.cuts[i].has(h.run.ID, key) {
			return true
		}
	}
	return false
}

func (v *View) all() []*handle { return append(slices.Clip(v.runs), v.waiting...) }

// Waiting returns a view of the pending runs only. It is valid as long as v.
func (v *View) Waiting() *View { return &View{runs: v.waiting} }

// cutSince reports whether keys were deleted since old.
func (v *View) cutSince(old *View) bool {
	return slices.ContainsFunc(v.cuts, func(c Cut) bool {
		return !slices.ContainsFunc(old.cuts, func(o Cut) bool {
			return o.Upto == c.Upto && bytes.Equal(o.Value, c.Value) && bytes.Equal(o.Mask, c.Mask)
		})
	})
}

// View returns the current runs, not pinned.
func (s *Set) View() *View {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.view
}

// Pin returns the current runs; they stay open until the view is released.
func (s *Set) Pin() *View {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.view.all() {
		h.refs++
	}
	v := *s.view
	return &v
}

// Release ends the use of a pinned view.
func (v *View) Release() error {
	var err error
	for _, h := range v.all() {
		err = errors.Join(err, v.set.release(h, false))
	}
	return err
}

// release drops a reference to a run. The last one closes it, and removes it if no manifest names it.
func (s *Set) release(h *handle, gone bool) error {
	s.mu.Lock()
	h.refs--
	h.unnamed = h.unnamed || gone
	last := h.refs == 0
	s.mu.Unlock()
	if !last {
		return nil
	}
	err := h.Close()
	if h.unnamed {
		err = errors.Join(err, s.disk.Remove(s.path(h.run.file())))
	}
	return err
}

// May reports whether a run may hold key; hash is run.HashString of it. There are no false negatives.
func (v *View) May(key string, hash uint64) bool {
	for _, h := range v.runs {
		if h.May(key, hash) {
			return true
		}
	}
	return false
}

// Probe sets May of the keys that a run may hold.
func (v *View) Probe(all []run.Probe) {
	for _, h := range v.runs {
		h.Probe(all)
	}
}

// Get iterates over the values of key, from the newest to the oldest.
func (v *View) Get(key string) iter.Seq2[[]byte, error] { return v.Finder().Find([]byte(key)) }

// A Finder looks up ascending keys, in one pass over the blocks that can hold them.
type Finder struct {
	view    *View
	finders []*run.Finder
}

// Finder returns a finder, valid while the view is pinned. It is not safe for concurrent use.
func (v *View) Finder() *Finder {
	f := &Finder{view: v}
	for _, h := range v.runs {
		f.finders = append(f.finders, h.Finder())
	}
	return f
}

// Find iterates over the values of key, from the newest to the oldest, each valid until the next.
func (f *Finder) Find(key []byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		hash, name := run.Hash(key), string(key)
		for i, h := range f.view.runs {
			if !h.May(name, hash) || f.view.isCut(h, key) {
				continue
			}
			value, ok, err := f.finders[i].Find(key)
			if (ok || err != nil) && !yield(value, err) {
				return
			}
		}
	}
}

// Scan returns one source per run, from the newest to the oldest, each starting at the first key that is not less than
// from.
func (v *View) Scan(from []byte) []run.Source {
	var all []run.Source
	for _, h := range v.runs {
		all = append(all, v.rest(h, &seeker{Iter: h.Iter(), from: from}))
	}
	return all
}

// rest returns src without the keys that are deleted from its run.
func (v *View) rest(h *handle, src run.Source) run.Source {
	if len(v.cuts) == 0 {
		return src
	}
	return &cutFilter{src, v, h}
}

type cutFilter struct {
	run.Source
	view *View
	h    *handle
}

func (u *cutFilter) Next() bool {
	for u.Source.Next() {
		if !u.view.isCut(u.h, u.Key()) {
			return true
		}
	}
	return false
}

// A seeker seeks on the first call of Next.
type seeker struct {
	*run.Iter
	from []byte
	used bool
}

func (s *seeker) Next() bool {
	if s.used {
		return s.Iter.Next()
	}
	s.used = true
	return s.Seek(s.from)
}

// Stats are totals of the runs.
type Stats struct {
	Runs    int
	Entries int64 // a key counts in each run that has it
	Waiting int64 // entries of pending runs, not included in Entries
	Disk    int64 // bytes
	Memory  int64 // bytes of filters and indexes
	Cuts    int   // ranges of deleted keys that may still take space
}

// Stats returns the totals of the runs.
func (v *View) Stats() (st Stats) {
	st.Runs, st.Cuts = len(v.runs), len(v.cuts)
	for _, h := range v.waiting {
		st.Waiting += h.Len()
	}
	for _, h := range v.runs {
		st.Entries += h.Len()
	}
	for _, h := range v.all() {
		st.Disk += h.Size()
		st.Memory += h.Memory()
	}
	return st
}
