// Package placetest checks that storage locations fulfill the contract of package place, and provides a faulty
// location.
package placetest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"

	"kumo/internal/archive/place"
)

// Run tests a location. open is called once for each test and returns an empty location.
func Run(t *testing.T, open func(t *testing.T) place.Place) {
	for name, test := range map[string]func(*testing.T, place.Place){
		"a file appears when it is closed": appears,
		"an aborted file does not appear":  aborts,
		"ranges":                           ranges,
		"a file replaces another":          replaces,
		"folders are listed in order":      lists,
		"a missing file":                   missing,
		"rename":                           renames,
		"remove":                           removes,
		"names":                            names,
		"walk":                             walks,
		"many at once":                     manyAtOnce,
		"locks":                            locks,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

func put(t *testing.T, p place.Place, name, text string) {
	t.Helper()
	if err := place.WriteFile(t.Context(), p, name, []byte(text)); err != nil {
		t.Fatalf("write %s: %v", name, err)
	}
}

func get(t *testing.T, p place.Place, name string) string {
	t.Helper()
	data, err := place.ReadFile(t.Context(), p, name)
	if err != nil {
		t.Fatalf("read %s: %v", name, err)
	}
	return string(data)
}

func listed(t *testing.T, p place.Place, dir string) (all []string) {
	t.Helper()
	infos, err := p.List(t.Context(), dir)
	if err != nil {
		t.Fatalf("list %s: %v", dir, err)
	}
	for _, i := range infos {
		name := i.Name
		if i.IsDir {
			name += "/"
		}
		all = append(all, name)
	}
	return all
}

func appears(t *testing.T, p place.Place) {
	const name = "a/b/part-00000"
	w, err := p.Create(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	want := bytes.Repeat(every, 5000)
	for rest := want; len(rest) > 0; {
		n := min(70_001, len(rest))
		if _, err := w.Write(rest[:n]); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
	}
	if all := listed(t, p, "a/b"); len(all) != 0 {
		t.Errorf("listed before it was closed: %v", all)
	}
	if _, err := p.Stat(t.Context(), name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("stat before it was closed: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	w.Abort() // does nothing
	if got := get(t, p, name); got != string(want) {
		t.Errorf("read %d bytes of %d, or different ones", len(got), len(want))
	}
	info, err := p.Stat(t.Context(), name)
	if err != nil || info.Size != int64(len(want)) || info.Name != "part-00000" || info.IsDir {
		t.Errorf("stat: %+v %v", info, err)
	}
}

func aborts(t *testing.T, p place.Place) {
	put(t, p, "d/old", "old")
	for _, name := range []string{"d/new", "d/old"} {
		w, err := p.Create(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, "half"); err != nil {
			t.Fatal(err)
		}
		w.Abort()
		if err := w.Close(); err == nil {
			t.Errorf("%s was closed after it was aborted", name)
		}
	}
	if all := listed(t, p, "d"); !slices.Equal(all, []string{"old"}) || get(t, p, "d/old") != "old" {
		t.Errorf("there is %v", all)
	}
}

func ranges(t *testing.T, p place.Place) {
	put(t, p, "f", "0123456789")
	for _, c := range []struct {
		offset, length int64
		want           string
	}{{0, -1, "0123456789"}, {3, -1, "3456789"}, {3, 4, "3456"}, {0, 0, ""}, {8, 100, "89"}, {10, -1, ""}, {10, 5, ""}} {
		r, err := p.Open(t.Context(), "f", c.offset, c.length)
		if err != nil {
			t.Errorf("open from %d: %v", c.offset, err)
			continue
		}
		got, err := io.ReadAll(r)
		if err := errors.Join(err, r.Close()); err != nil || string(got) != c.want {
			t.Errorf("%d bytes from %d on are %q, not %q: %v", c.length, c.offset, got, c.want, err)
		}
	}
}

func replaces(t *testing.T, p place.Place) {
	put(t, p, "f", "the first, which is longer")
	r, err := p.Open(t.Context(), "f", 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	put(t, p, "f", "the second")
	if got := get(t, p, "f"); got != "the second" {
		t.Errorf("read %q", got)
	}
	put(t, p, "empty", "")
	if got := get(t, p, "empty"); got != "" {
		t.Errorf("read %q of an empty file", got)
	}
}

func lists(t *testing.T, p place.Place) {
	for _, name := range []string{"d/b", "d/a/x", "d/c", "d/a/y/z", "e"} {
		put(t, p, name, name)
	}
	for dir, want := range map[string][]string{"d": {"a/", "b", "c"}, "d/a": {"x", "y/"}, "": {"d/", "e"}, "none": nil,
		"d/b": nil} {
		if got := listed(t, p, dir); !slices.Equal(got, want) {
			t.Errorf("%q has %v, not %v", dir, got, want)
		}
	}
	infos, err := p.List(t.Context(), "d")
	if err != nil || len(infos) != 3 || infos[1].Size != 3 || infos[1].Modified.IsZero() {
		t.Errorf("list: %+v %v", infos, err)
	}
}

func missing(t *testing.T, p place.Place) {
	if _, err := p.Open(t.Context(), "x/y", 0, -1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("open: %v", err)
	}
	if _, err := p.Stat(t.Context(), "x/y"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("stat: %v", err)
	}
	if err := p.Rename(t.Context(), "x/y", "z"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("rename: %v", err)
	}
	if err := p.Remove(t.Context(), "x/y"); err != nil {
		t.Errorf("remove: %v", err)
	}
	put(t, p, "x/y", "now")
	if _, err := p.Open(t.Context(), "x", 0, -1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder is opened: %v", err)
	}
}

func renames(t *testing.T, p place.Place) {
	put(t, p, "a/from", "new")
	put(t, p, "b/c/to", "old")
	for _, to := range []string{"b/c/to", "d/e/f"} {
		if err := p.Rename(t.Context(), "a/from", to); err != nil {
			t.Fatal(err)
		}
		if got := get(t, p, to); got != "new" {
			t.Errorf("%s is %q", to, got)
		}
		put(t, p, "a/from", "new")
	}
	if got := listed(t, p, "b/c"); !slices.Equal(got, []string{"to"}) {
		t.Errorf("left: %v", got)
	}
}

func removes(t *testing.T, p place.Place) {
	for _, name := range []string{"d/a", "d/b/c", "d/b/d/e", "db"} {
		put(t, p, name, "")
	}
	w, err := p.Create(t.Context(), "d/b/open")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	for _, name := range []string{"d/a", "d/b", "d/b"} {
		if err := p.Remove(t.Context(), name); err != nil {
			t.Errorf("remove %s: %v", name, err)
		}
	}
	if got := listed(t, p, "d/b"); got != nil {
		t.Errorf("left: %v", got)
	}
	if got := get(t, p, "db"); got != "" {
		t.Errorf("db is %q", got)
	}
}

func names(t *testing.T, p place.Place) {
	for _, name := range []string{"/a", "a/", "a//b", "../a", "a/../b", "./a", ".a", "a/.b", "a\x00b"} {
		if w, err := p.Create(t.Context(), name); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%q is created: %v", name, err)
			if err == nil {
				w.Abort()
			}
		}
		if _, err := p.Open(t.Context(), name, 0, -1); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%q is opened: %v", name, err)
		}
		if err := p.Remove(t.Context(), name); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%q is removed: %v", name, err)
		}
	}
	if err := p.Remove(t.Context(), ""); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("the place itself is removed: %v", err)
	}
	for _, name := range []string{"with space", "ü/字", "a%20b", "a+b=c", "x:y"} {
		put(t, p, name, name)
		if got := get(t, p, name); got != name {
			t.Errorf("%q is %q", name, got)
		}
	}
}

func walks(t *testing.T, p place.Place) {
	for _, name := range []string{"w/b", "w/a/2", "w/a/1", "w/c/d/e"} {
		put(t, p, name, "")
	}
	var got []string
	err := place.Walk(t.Context(), p, "w", func(name string, _ place.Info) error {
		got = append(got, name)
		return nil
	})
	if err != nil || strings.Join(got, " ") != "w/a/1 w/a/2 w/b w/c/d/e" {
		t.Errorf("walked %v: %v", got, err)
	}
}

func manyAtOnce(t *testing.T, p place.Place) {
	var wg sync.WaitGroup
	const n = 8
	for i := range n {
		wg.Go(func() {
			for j := range 5 {
				text := strings.Repeat(fmt.Sprint(i), 1000)
				if err := place.WriteFile(t.Context(), p, fmt.Sprintf("many/%d-%d", i, j), []byte(text)); err != nil {
					t.Error(err)
				}
				if err := place.WriteFile(t.Context(), p, "many/same", []byte(text)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got := listed(t, p, "many"); len(got) != n*5+1 {
		t.Errorf("%d files: %v", len(got), got)
	}
	if got := get(t, p, "many/same"); len(got) != 1000 || strings.Trim(got, got[:1]) != "" {
		t.Errorf("a mixture of several: %d bytes", len(got))
	}
}

func locks(t *testing.T, p place.Place) {
	l, ok := p.(place.Locker)
	if !ok {
		t.Skip("this place has no locks")
	}
	unlock, err := l.Lock(t.Context(), "x/lock")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Lock(t.Context(), "x/lock"); !errors.Is(err, place.ErrLocked) {
		t.Errorf("locked twice: %v", err)
	}
	other, err := l.Lock(t.Context(), "x/other")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(unlock(), other()); err != nil {
		t.Fatal(err)
	}
	again, err := l.Lock(t.Context(), "x/lock")
	if err != nil {
		t.Fatal(err)
	}
	if err := again(); err != nil {
		t.Fatal(err)
	}
}
