package vfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestLogKeepsMarks(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log")
	l, err := OpenLog(OS, name, 0)
	check(t, err)
	append2 := func(l *Log, a, b string, want int64) {
		t.Helper()
		offset, err := l.Append([]byte(a), []byte(b))
		check(t, err)
		if offset != want {
			t.Errorf("%s%s lies at %d, want %d", a, b, offset, want)
		}
	}
	append2(l, "on", "e\n", 0)
	mark, err := l.Mark()
	check(t, err)
	check(t, l.Sync())
	append2(l, "tw", "o\n", 4)
	check(t, l.Close())

	l, err = OpenLog(OS, name, mark)
	check(t, err)
	append2(l, "thr", "ee\n", 4)
	_, err = l.Mark()
	check(t, err)
	check(t, l.Close())
	if got, _ := os.ReadFile(name); string(got) != "one\nthree\n" {
		t.Errorf("the log holds %q", got)
	}
	if _, err := OpenLog(OS, name, 1000); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("a log that has lost entries: %v", err)
	}
}

func TestOS(t *testing.T) {
	dir := t.TempDir()
	if _, err := OS.Size(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Size of nothing: %v", err)
	}
	if names, err := OS.List(filepath.Join(dir, "none")); names != nil || err != nil {
		t.Errorf("List of nothing: %v, %v", names, err)
	}
	if free, err := OS.Free(dir); err != nil || free == 0 {
		t.Errorf("Free: %d, %v", free, err)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
