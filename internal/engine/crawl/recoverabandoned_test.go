package crawl

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/stats"
	"kumo/internal/base/vfs"
	"kumo/internal/state/entry"
	"kumo/internal/state/frontier"
	"kumo/internal/state/journal/memory"
	"kumo/internal/state/recovery"
	"kumo/internal/state/seen"
	"kumo/internal/state/statefile"
)

func abandonedItem(i int) item.Item {
	return item.Item{URL: fmt.Sprint("https://h.example/", i), From: "https://f.example/", Seed: "https://s.example/",
		Path:  "LL",
		Depth: int32(i), Kind: page.Anchor, Redirects: 1, Tries: 3, ScopeSeed: i%2 == 0, Reported: true, Recrawl: i%3 == 0}
}

// TestRecoverSortsTheAbandonedQueue: of two URLs on the abandoned queue and one in the frontier, one of each was
// visited since the checkpoint.
func TestRecoverSortsTheAbandonedQueue(t *testing.T) {
	dir := t.TempDir()
	e := onDisk(t, dir)
	a, b, c := abandonedItem(1), abandonedItem(2), abandonedItem(3)
	c.Recrawl = false
	if err := errors.Join(e.abandons.abandoned.Put(&a), e.abandons.abandoned.Put(&b)); err != nil {
		t.Fatal(err)
	}
	e.frontier.Push("h.example", c)
	if err := e.Checkpoints.checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	var rest entry.Encoder
	for _, url := range []string{a.URL, c.URL} {
		rest.Done(&entry.Done{URL: url, Visit: stats.Visit{Host: "h.example", Status: 200}})
	}
	log := memory.New()
	if err := errors.Join(log.Append(rest.Writer), e.abandons.abandoned.Close()); err != nil {
		t.Fatal(err)
	}
	front, note, err := frontier.Open(frontier.Config{Disk: vfs.OS, Dir: filepath.Join(dir, "frontier")})
	if err != nil {
		t.Fatal(err)
	}
	defer front.Close()
	s, err := recovery.Recover(log, recovery.Views{Seen: seen.New(), Digests: seen.NewRecent(), Frontier: front,
		Abandoned: statefile.OpenAbandoned(vfs.OS, dir), Note: note})
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
