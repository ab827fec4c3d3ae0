package vfstest

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"kumo/internal/base/vfs"
)

func TestOpenAt(t *testing.T) {
	for _, disk := range []vfs.FS{vfs.OS, NewFaulty(vfs.OS)} {
		name := filepath.Join(t.TempDir(), "f")
		if _, err := disk.OpenAt(name); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("OpenAt of nothing: %v", err)
		}
		put(t, disk, name, "abcdef", false)
		f, err := disk.OpenAt(name)
		check(t, err)
		b := make([]byte, 4)
		if _, err := f.ReadAt(b, 1); err != nil || string(b) != "bcde" {
			t.Errorf("ReadAt gives %q, %v", b, err)
		}
		if n, err := f.ReadAt(b, 4); n != 2 || !errors.Is(err, io.EOF) {
			t.Errorf("ReadAt beyond the end: %d, %v", n, err)
		}
		check(t, f.Close())
	}
}

func TestTheDeadDoNothing(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	disk := NewFaulty(vfs.OS)
	disk.DieAfter(5)
	f, err := disk.Append(name)
	check(t, err)
	_, err = f.Write([]byte("abc"))
	check(t, err)
	if n, err := f.Write([]byte("def")); n != 2 || !errors.Is(err, ErrDead) || !disk.Dead() {
		t.Errorf("wrote %d, %v", n, err)
	}
	_, openErr := disk.Append(name)
	for _, err := range []error{f.Sync(), disk.Rename(name, name+"2"), disk.Truncate(name, 0), disk.Remove(name),
		openErr} {
		if !errors.Is(err, ErrDead) {
			t.Errorf("after death: %v", err)
		}
	}
	check(t, f.Close())
	if got, _ := os.ReadFile(name); string(got) != "abcde" {
		t.Errorf("the file holds %q", got)
	}
}

// Before the folder is synced, a removed file may come back after a power failure, and an interrupted rename may be
// done.
func TestPowerLossOfNames(t *testing.T) {
	back, renamed := 0, 0
	for seed := range uint64(100) {
		dir := t.TempDir()
		name := func(s string) string { return filepath.Join(dir, s) }
		for _, file := range []string{"first", "second", "old"} {
			put(t, vfs.OS, name(file), file, true)
		}
		disk := NewFaulty(vfs.OS)
		disk.DieAfter(4 * callCost)
		check(t, disk.Remove(name("first")))
		check(t, disk.SyncDir(dir))
		check(t, disk.Remove(name("second")))
		if err := disk.Rename(name("old"), name("new")); !errors.Is(err, ErrDead) {
			t.Fatalf("the last step: %v", err)
		}
		check(t, disk.PowerLoss(rand.New(rand.NewPCG(seed, 0))))
		names, err := vfs.OS.List(dir)
		check(t, err)
		if slices.Contains(names, "first") || slices.Contains(names, "old") == slices.Contains(names, "new") {
			t.Fatalf("seed %d: there is %v", seed, names)
		}
		if slices.Contains(names, "second") {
			back++
		}
		if slices.Contains(names, "new") {
			renamed++
		}
	}
	if back == 0 || back == 100 || renamed == 0 || renamed == 100 {
		t.Errorf("of a hundred times the file was back %d times, and renamed %d times", back, renamed)
	}
}

// TestPowerLoss tests that synced data survives, whatever happens to the rest.
func TestPowerLoss(t *testing.T) {
	lost, torn, gone := false, false, false
	for seed := range uint64(100) {
		dir := t.TempDir()
		name := func(s string) string { return filepath.Join(dir, s) }
		disk := NewFaulty(vfs.OS)
		put(t, disk, name("whole"), "whole", true)
		f := put(t, disk, name("more"), "synced", true)
		_, err := f.Write([]byte("unsynced"))
		check(t, err)
		put(t, disk, name("never"), "never synced", false)
		put(t, disk, name("old"), "renamed", true)
		check(t, disk.Rename(name("old"), name("new")))
		check(t, f.Close())
		check(t, disk.PowerLoss(rand.New(rand.NewPCG(seed, 0))))
		for file, want := range map[string]string{"whole": "whole", "more": "synced", "new": "renamed"} {
			got, err := os.ReadFile(name(file))
			if err != nil || !bytes.HasPrefix(got, []byte(want)) {
				t.Fatalf("seed %d: %s holds %q, %v", seed, file, got, err)
			}
			lost = lost || file == "more" && string(got) == want
			torn = torn || bytes.Contains(got, []byte{0})
		}
		_, err = os.Stat(name("never"))
		gone = gone || errors.Is(err, os.ErrNotExist)
	}
	if !lost || !torn || !gone {
		t.Errorf("a hundred times nothing happened of: lost %v, torn %v, gone %v", lost, torn, gone)
	}
}

func put(t *testing.T, disk vfs.FS, name, text string, synced bool) vfs.File {
	t.Helper()
	f, err := disk.Append(name)
	check(t, err)
	_, err = f.Write([]byte(text))
	check(t, err)
	if synced {
		check(t, f.Sync())
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func TestFaultyTearsTheWriteThatDoesNotFit(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	disk := NewFaulty(vfs.OS)
	f, err := disk.Append(name)
	check(t, err)
	disk.SetRoom(5)
	_, err = f.Write([]byte("abc"))
	check(t, err)
	n, err := f.Write([]byte("defg"))
	if n != 2 || !vfs.IsFull(err) {
		t.Errorf("wrote %d, %v", n, err)
	}
	disk.SetRoom(-1)
	_, err = f.Write([]byte("!"))
	check(t, err)
	check(t, f.Close())
	if got, _ := os.ReadFile(name); string(got) != "abcde!" {
		t.Errorf("the file holds %q", got)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
