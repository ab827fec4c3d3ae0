package file

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"kumo/internal/archive/place"
	"kumo/internal/archive/place/placetest"
	"kumo/internal/base/vfs"
	"kumo/internal/base/vfs/vfstest"
)

func TestPlace(t *testing.T) {
	placetest.Run(t, func(t *testing.T) place.Place { return open(t, t.TempDir(), vfs.OS) })
}

func TestUploads(t *testing.T) {
	placetest.RunUploads(t, func(t *testing.T) place.Place { return open(t, t.TempDir(), vfs.OS) }, 100_000)
}

func open(t *testing.T, dir string, disk vfs.FS) *Place {
	t.Helper()
	p, err := Open(dir, disk)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestAFullDiskLeavesTheOldFileAndNothingElse(t *testing.T) {
	dir, disk := t.TempDir(), vfstest.NewFaulty(vfs.OS)
	p := open(t, dir, disk)
	if err := place.WriteFile(t.Context(), p, "d/f", []byte("old")); err != nil {
		t.Fatal(err)
	}
	disk.SetRoom(2)
	if err := place.WriteFile(t.Context(), p, "d/f", []byte("new one")); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("the error is %v", err)
	}
	w, err := p.Create(t.Context(), "d/g")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("xyz")); err == nil {
		t.Error("a full disk takes more")
	}
	if err := w.Close(); err == nil {
		t.Error("a file of which a part is missing appears")
	}
	if got, err := place.ReadFile(t.Context(), p, "d/f"); err != nil || string(got) != "old" {
		t.Errorf("the old file is %q: %v", got, err)
	}
	entries, err := os.ReadDir(filepath.Join(dir, "d"))
	if err != nil || len(entries) != 1 {
		t.Errorf("there is %v: %v", entries, err)
	}
}
