package warc

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kumo/internal/base/vfs"
	"kumo/internal/state/store"
	"kumo/internal/state/store/storetest"
)

// TestHalfSettled crashes after each step of finalizing a file.
func TestHalfSettled(t *testing.T) {
	for name, crash := range map[string]func(f *file) error{
		"nothing done": func(*file) error { return nil },
		"half an index": func(f *file) error {
			return writeSorted(vfs.OS, f.path(f.index+".run0"+temporary), [][]byte{[]byte("b\n"), []byte("a")})
		},
		"index sorted": func(f *file) error {
			return sortLines(vfs.OS, f.path(f.index+open), f.path(f.index), sortBuffer)
		},
		"file renamed": func(f *file) error {
			return errors.Join(sortLines(vfs.OS, f.path(f.index+open), f.path(f.index), sortBuffer),
				vfs.OS.Rename(f.path(f.name+open), f.path(f.name)))
		},
		"all done": (*file).finalize,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := openTest(t, dir, nil)
			for _, n := range []int{3, 1, 2} {
				put(t, s, storetest.Record(n))
			}
			f := s.cur
			marks, err := s.Mark()
			if err := errors.Join(err, f.close(), crash(f)); err != nil {
				t.Fatal(err)
			}
			checkRecovered(t, dir, marks)
		})
	}
}

func checkRecovered(t *testing.T, dir string, marks []store.Mark) {
	t.Helper()
	s, err := Open(vfs.OS, Config{Dir: dir}, marks)
	if err != nil {
		t.Fatal(err)
	}
	closeTest(t, s)
	entries := readIndex(t, filepath.Join(dir, "index.cdxj"))
	if len(entries) != 3 {
		t.Errorf("%d index lines, want 3", len(entries))
	}
	for _, e := range entries {
		if r := e.record(t, dir); r.head.Get("WARC-Target-URI") != e.URL {
			t.Errorf("%+v leads to %v", e, r.head)
		}
	}
	names, _ := vfs.OS.List(filepath.Join(dir, "warc"))
	if len(names) != 2 {
		t.Errorf("left in the folder: %v", names)
	}
}

// TestAFinishedFileMayBeMovedButNotShortened tests finished files that were moved to an archive.
func TestAFinishedFileMayBeMovedButNotShortened(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, nil)
	put(t, s, storetest.Record(1))
	marks := closeTest(t, s)
	i := slices.IndexFunc(marks, func(m store.Mark) bool { return strings.Contains(m.Name, ".warc") })
	name := filepath.Join(dir, strings.TrimSuffix(marks[i].Name, open))
	if err := vfs.OS.Truncate(name, marks[i].Length-1); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(vfs.OS, Config{Dir: dir}, marks); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("a shortened file gave %v", err)
	}
	if err := vfs.OS.Remove(name); err != nil {
		t.Fatal(err)
	}
	s, err := Open(vfs.OS, Config{Dir: dir}, marks)
	if err != nil {
		t.Fatalf("a file that was moved away: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
