package tier

import (
	"context"
	"testing"

	"kumo/internal/base/vfs"
	"kumo/internal/state/seen/run"
)

// keys returns all keys of a set, with their values.
func keys(t *testing.T, s *Set) (all string) {
	t.Helper()
	v := s.Pin()
	src := run.Merge(concat, v.Scan(nil)...)
	for src.Next() {
		all += string(src.Key()) + string(src.Value()) + " "
		var one string
		for value, err := range v.Get(string(src.Key())) {
			check(t, err)
			one += string(value)
		}
		if one != string(src.Value()) {
			t.Errorf("%s has the values %q, a look-up finds %q", src.Key(), src.Value(), one)
		}
	}
	check(t, src.Err())
	check(t, v.Release())
	return all
}

// cut adds a cut and nothing else.
func cut(s *Set, value, mask []byte) error {
	return s.Add(context.Background(), &one{}, nil, func(m *Manifest) { m.Cut(value, mask) })
}

func TestCut(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(vfs.OS, dir, Config{Merge: concat, Ratio: 3})
	check(t, err)
	add := func(key, value string) { check(t, s.Add(t.Context(), &one{key, value}, nil, func(*Manifest) {})) }
	add("a", "1")
	add("b", "2")
	check(t, cut(s, []byte("b"), []byte{0xfe})) // deletes b and c
	add("c", "3")                               // newer than the cut, so not deleted
	if got := keys(t, s); got != "a1 c3 " {
		t.Errorf("the set has %q", got)
	}
	check(t, s.Close())
	s, err = Open(vfs.OS, dir, Config{Merge: concat, Ratio: 3})
	check(t, err)
	if got := keys(t, s); got != "a1 c3 " {
		t.Errorf("opened again, the set has %q", got)
	}
	add("b", "4")
	done, err := s.Compact(t.Context())
	if !done || err != nil {
		t.Fatal(done, err)
	}
	if got, st := keys(t, s), s.View().Stats(); got != "a1 b4 c3 " || st.Cuts != 0 || st.Entries != 3 {
		t.Errorf("merged, the set has %q: %+v", got, st)
	}
	check(t, s.Close())
}

// TestCutWhileRunsAreMerged cuts keys that a merge has read already, or reads while the run is written that is added
// with the cut.
func TestCutWhileRunsAreMerged(t *testing.T) {
	for _, other := range []bool{false, true} {
		s, err := Open(vfs.OS, t.TempDir(), Config{Merge: concat, Ratio: 2})
		check(t, err)
		for _, key := range []string{"a", "b"} {
			check(t, s.Add(t.Context(), &one{key, key}, nil, func(*Manifest) {}))
		}
		merge := func(ctx context.Context) {
			for done := true; done; {
				done, err = s.Compact(ctx)
				check(t, err)
			}
		}
		add := func(ctx context.Context) {
			check(t, s.Add(ctx, &one{"c", "c"}, nil, func(m *Manifest) { m.Cut([]byte("b"), []byte{0xff}) }))
		}
		if other {
			merge, add = add, merge
		}
		merge(&during{Context: t.Context(), f: func() { add(t.Context()) }})
		if got := keys(t, s); got != "aa cc " {
			t.Errorf("the set has %q", got)
		}
		check(t, s.Close())
	}
}

// A during is a context that runs a function when its error is first read: in the middle of a merge.
type during struct {
	context.Context
	f func()
}

func (d *during) Err() error {
	if f := d.f; f != nil {
		d.f = nil
		f()
	}
	return d.Context.Err()
}

func TestCutsThatAreCovered(t *testing.T) {
	s, err := Open(vfs.OS, t.TempDir(), Config{Merge: concat})
	check(t, err)
	for _, key := range []string{"a1", "a2", "b1"} {
		check(t, s.Add(t.Context(), &one{key, key}, nil, func(*Manifest) {}))
	}
	check(t, cut(s, []byte("a1"), []byte{0xff, 0xff}))
	check(t, cut(s, []byte("b"), []byte{0xff}))
	check(t, cut(s, []byte("a2"), []byte{0xff, 0xff}))
	check(t, cut(s, []byte("a"), []byte{0xff}))
	if cuts := s.Manifest().Cuts; len(cuts) != 2 || string(cuts[0].Value) != "b" || string(cuts[1].Value) != "a" {
		t.Errorf("the cuts are %+v", cuts)
	}
	if got := keys(t, s); got != "" {
		t.Errorf("the set has %q", got)
	}
	check(t, s.Close())
}

func TestManyCuts(t *testing.T) {
	s, err := Open(vfs.OS, t.TempDir(), Config{Merge: concat})
	check(t, err)
	check(t, s.Add(t.Context(), &one{"a", "1"}, nil, func(*Manifest) {}))
	for i := range maxCuts + 1 {
		check(t, cut(s, []byte{'b', byte(i)}, []byte{0xff, 0xff}))
	}
	done, err := s.Compact(t.Context())
	if st := s.View().Stats(); !done || err != nil || st.Cuts != 0 || st.Entries != 1 {
		t.Errorf("Compact = %v, %v: %+v", done, err, st)
	}
	check(t, cut(s, []byte("a"), []byte{0xff}))
	if got := keys(t, s); got != "" {
		t.Errorf("the set has %q", got)
	}
	check(t, s.Close())
}

func TestReplace(t *testing.T) {
	s, err := Open(vfs.OS, t.TempDir(), Config{Merge: concat})
	check(t, err)
	for _, v := range []string{"a", "b"} {
		check(t, s.Replace(t.Context(), &one{"key", v}, &one{"late", v}, func(*Manifest) {}))
	}
	v := s.Pin()
	all := run.Merge(concat, v.Waiting().Scan(nil)...)
	if !all.Next() || string(all.Value()) != "b" || all.Next() || len(s.Manifest().Runs) != 2 {
		t.Errorf("%q waits: %+v", all.Value(), s.Manifest())
	}
	check(t, v.Release())
	check(t, s.Replace(t.Context(), &one{}, nil, func(*Manifest) {}))
	if m := s.Manifest(); len(m.Waiting) != 0 || len(m.Runs) != 2 {
		t.Errorf("with nothing that waits: %+v", m)
	}
	check(t, s.Close())
}
