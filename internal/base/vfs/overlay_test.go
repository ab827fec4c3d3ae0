package vfs_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"kumo/internal/base/vfs"
)

func TestAnOverlayShowsChangesAndMakesNone(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"cut", "gone", "left"} {
		if err := os.WriteFile(path(name), []byte("0123456789"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	disk := vfs.NewOverlay(vfs.OS)
	if err := errors.Join(vfs.TruncateTo(disk, path("cut"), 4), disk.Remove(path("gone")),
		disk.MkdirAll(path("folder"))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"cut", "new", "new"} {
		f, err := disk.Append(path(name))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(f, "ab"); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"cut": "0123ab", "new": "abab", "left": "0123456789"} {
		if got := contents(t, disk, path(name)); got != want {
			t.Errorf("%s reads %q, want %q", name, got, want)
		}
	}
	if _, err := disk.Open(path("gone")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("opened what is gone: %v", err)
	}
	if names, err := disk.List(dir); err != nil || !slices.Equal(names, []string{"cut", "left", "new"}) {
		t.Errorf("%v %v", names, err)
	}
	if cuts := disk.Truncations(); len(cuts) != 1 || cuts[0] != (vfs.Truncation{Name: path("cut"), Length: 4, Lost: 6}) {
		t.Errorf("%+v", cuts)
	}
	if names, err := vfs.OS.List(dir); err != nil || !slices.Equal(names, []string{"cut", "gone", "left"}) {
		t.Errorf("the disk below has %v %v", names, err)
	}
	if got := contents(t, vfs.OS, path("cut")); got != "0123456789" {
		t.Errorf("the disk below has %q", got)
	}
}

// contents reads a file in both ways, and in small pieces.
func contents(t *testing.T, disk vfs.FS, name string) string {
	t.Helper()
	whole, err := disk.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	text, err := io.ReadAll(whole)
	if err != nil {
		t.Fatal(err)
	}
	at, err := disk.OpenAt(name)
	if err != nil {
		t.Fatal(err)
	}
	defer at.Close()
	for i := 0; i+3 <= len(text); i++ {
		var p [3]byte
		if _, err := at.ReadAt(p[:], int64(i)); err != nil || string(p[:]) != string(text[i:i+3]) {
			t.Fatalf("at %d of %s: %q %v, want %q", i, name, p, err, text[i:i+3])
		}
	}
	if _, err := at.ReadAt(make([]byte, 1), int64(len(text))); !errors.Is(err, io.EOF) {
		t.Fatalf("behind the end: %v", err)
	}
	return string(text)
}
