package statefile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/vfs"
	"kumo/internal/base/vfs/vfstest"
)

func someItem(i int) item.Item {
	return item.Item{URL: fmt.Sprint("https://h.example/", i), From: "https://f.example/", Seed: "https://s.example/",
		Path:  "LL",
		Depth: int32(i), Kind: page.Anchor, Redirects: 1, Tries: 3, ScopeSeed: i%2 == 0, Reported: true, Recrawl: i%3 == 0}
}

// TestAbandonedQueue: the next run has the items up to the mark, complete, until it has its own mark.
func TestAbandonedQueue(t *testing.T) {
	dir := t.TempDir()
	s := OpenAbandoned(vfs.OS, dir)
	var want []item.Item
	for i := range 10 {
		it := someItem(i)
		if want = append(want, it); s.Put(&it) != nil {
			t.Fatal("put")
		}
	}
	to, err := s.Mark()
	if err != nil {
		t.Fatal(err)
	}
	late := someItem(10)
	if err := errors.Join(s.Put(&late), s.Close()); err != nil {
		t.Fatal(err)
	}

	s = OpenAbandoned(vfs.OS, dir)
	defer s.Close()
	s.Begin(to)
	var got []item.Item
	keep := func(it item.Item) error {
		got = append(got, it)
		return nil
	}
	if err := s.EachEarlier(keep); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if err := s.Put(&late); err != nil {
		t.Fatal(err)
	}
	if it, err := s.Find(late.URL); err != nil || it == nil || *it != late {
		t.Errorf("found %v, %v", it, err)
	}
	if err := s.EachEarlier(keep); err != nil {
		t.Errorf("before the mark: %v", err)
	}
	if _, err := s.Mark(); err != nil || s.RemoveOld() != nil {
		t.Fatal(err)
	}
	if names, err := vfs.OS.List(filepath.Join(dir, "state", "abandoned")); err != nil ||
		!slices.Equal(names, []string{"1"}) {
		t.Errorf("files %v, %v", names, err)
	}
}

func TestADamagedAbandonedQueueIsRefused(t *testing.T) {
	dir := t.TempDir()
	s := OpenAbandoned(vfs.OS, dir)
	it := someItem(1)
	if err := s.Put(&it); err != nil {
		t.Fatal(err)
	}
	to, err := s.Mark()
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "state", "abandoned", "0")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for i := range text {
		text[i] ^= 1
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := s.read(to, func(item.Item) error { return nil }); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("byte %d is another: %v", i, err)
		}
		text[i] ^= 1
	}
}

// TestAFullDiskLosesNothingAbandoned: after a failed put there is no mark.
func TestAFullDiskLosesNothingAbandoned(t *testing.T) {
	disk := vfstest.NewFaulty(vfs.OS)
	s := OpenAbandoned(disk, t.TempDir())
	defer s.Close()
	it := someItem(1)
	if err := s.Put(&it); err != nil {
		t.Fatal(err)
	}
	disk.SetRoom(0)
	for range 2 {
		if _, err := s.Mark(); !vfs.IsFull(err) {
			t.Errorf("got %v", err)
		}
		disk.SetRoom(-1) // the disk has space again
	}
}
