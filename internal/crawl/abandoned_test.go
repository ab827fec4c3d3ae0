package crawl

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kumo/internal/entry"

	"kumo/internal/frontier"
	"kumo/internal/item"
	"kumo/internal/journal/memory"
	"kumo/internal/page"
	"kumo/internal/seen"
	"kumo/internal/stats"
	"kumo/internal/vfs"
)

func shelfItem(i int) item.Item {
	return item.Item{URL: fmt.Sprint("https://h.example/", i), From: "https://f.example/", Seed: "https://s.example/",
		Path:  "LL",
		Depth: int32(i), Kind: page.Anchor, Redirects: 1, Tries: 3, Root: i%2 == 0, Told: true, Recrawl: i%3 == 0}
}

// TestShelf: what a mark names is there in the next run, with all that was known of it, and goes when that run has a
// mark of its own.
func TestShelf(t *testing.T) {
	dir := t.TempDir()
	s := OpenAbandoned(vfs.OS, dir)
	var want []item.Item
	for i := range 10 {
		it := shelfItem(i)
		if want = append(want, it); s.put(&it) != nil {
			t.Fatal("put")
		}
	}
	to, err := s.mark()
	if err != nil {
		t.Fatal(err)
	}
	late := shelfItem(10)
	if err := errors.Join(s.put(&late), s.Close()); err != nil {
		t.Fatal(err)
	}

	s = OpenAbandoned(vfs.OS, dir)
	defer s.Close()
	s.begin(to)
	var got []item.Item
	keep := func(it item.Item) error {
		got = append(got, it)
		return nil
	}
	if err := s.each(keep); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if err := s.put(&late); err != nil {
		t.Fatal(err)
	}
	if it, err := s.find(late.URL); err != nil || it == nil || *it != late {
		t.Errorf("found %v, %v", it, err)
	}
	if err := s.each(keep); err != nil {
		t.Errorf("before the mark: %v", err)
	}
	if _, err := s.mark(); err != nil || s.settle() != nil {
		t.Fatal(err)
	}
	if names, err := vfs.OS.List(filepath.Join(dir, "state", "abandoned")); err != nil ||
		!slices.Equal(names, []string{"1"}) {
		t.Errorf("files %v, %v", names, err)
	}
}

func TestADamagedShelfIsRefused(t *testing.T) {
	dir := t.TempDir()
	s := OpenAbandoned(vfs.OS, dir)
	it := shelfItem(1)
	if err := s.put(&it); err != nil {
		t.Fatal(err)
	}
	to, err := s.mark()
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

// TestAFullDiskLosesNothingOnTheShelf: after a put that failed there is no mark.
func TestAFullDiskLosesNothingOnTheShelf(t *testing.T) {
	disk := vfs.NewFaulty(vfs.OS)
	s := OpenAbandoned(disk, t.TempDir())
	defer s.Close()
	it := shelfItem(1)
	if err := s.put(&it); err != nil {
		t.Fatal(err)
	}
	disk.SetRoom(0)
	for range 2 {
		if _, err := s.mark(); !vfs.IsFull(err) {
			t.Errorf("got %v", err)
		}
		disk.SetRoom(-1) // somebody has made room
	}
}

// TestRecoverSortsTheShelf: of two URLs on the abandoned queue and one in the frontier, one of each was visited since
// the checkpoint.
func TestRecoverSortsTheShelf(t *testing.T) {
	dir := t.TempDir()
	e := onDisk(t, dir)
	a, b, c := shelfItem(1), shelfItem(2), shelfItem(3)
	c.Recrawl = false
	if err := errors.Join(e.files.abandoned.put(&a), e.files.abandoned.put(&b)); err != nil {
		t.Fatal(err)
	}
	e.frontier.Push("h.example", c)
	if err := e.checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	var rest entry.Encoder
	for _, url := range []string{a.URL, c.URL} {
		rest.Done(&entry.Done{URL: url, Visit: stats.Visit{Host: "h.example", Status: 200}})
	}
	log := memory.New()
	if err := errors.Join(log.Append(rest.Writer), e.files.abandoned.Close()); err != nil {
		t.Fatal(err)
	}
	front, note, err := frontier.Open(frontier.Config{Disk: vfs.OS, Dir: filepath.Join(dir, "frontier")})
	if err != nil {
		t.Fatal(err)
	}
	defer front.Close()
	s, err := Recover(log, Views{Seen: seen.New(), Digests: seen.NewRecent(), Frontier: front,
		Abandoned: OpenAbandoned(vfs.OS, dir), Note: note})
	if err != nil {
		t.Fatal(err)
	}
	var waits []string
	err = s.Each(func(url string, _ bool) error {
		waits = append(waits, url)
		return nil
	}, func(err error) { t.Error(err) })
	if err != nil || !slices.Equal(waits, []string{b.URL}) {
		t.Errorf("%v wait, %v", waits, err)
	}
}
