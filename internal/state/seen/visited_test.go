package seen

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"kumo/internal/base/vfs"
)

// Wherever a URL's metadata is, on disk or in memory, Visited returns every visited URL with all of it, and no others.
func TestVisited(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 1))
	db, err := Open(vfs.OS, t.TempDir(), Config{Memory: 1 << 20})
	check(t, err)
	defer db.Close()
	now := time.Unix(1_800_000_000, 0).UTC()
	want := map[string]Meta{}
	for round := range 6 {
		for range 500 {
			url := fmt.Sprintf("https://h%d.example/%d", dice.IntN(20), dice.IntN(300))
			db.Offer([]URL{{URL: url, State: Known}}, nil)
			m := want[url]
			switch dice.IntN(4) {
			case 0:
				m.Fetched = now.Add(time.Duration(round) * time.Hour)
				m.Due, m.Every, m.Missing = m.Fetched.Add(time.Minute), time.Minute, dice.IntN(3)
				m.Kind = uint8(dice.IntN(3) + 1)
				db.UpdateMeta(url, Meta{Fetched: m.Fetched, Due: m.Due, Every: m.Every, Missing: m.Missing, Kind: m.Kind})
			case 1:
				m.Queued = now.Add(time.Duration(round) * time.Hour)
				db.UpdateMeta(url, Meta{Queued: m.Queued})
			case 2:
				m.Status, m.ETag, m.Digest = 200, fmt.Sprint(round), [20]byte{byte(round + 1)}
				db.UpdateMeta(url, Meta{Status: m.Status, ETag: m.ETag, Digest: m.Digest})
			case 3:
				continue
			}
			want[url] = m
		}
		if dice.IntN(3) > 0 {
			db.Freeze(uint64(round))
			check(t, db.Merge(context.Background(), func([]Decided) error { return nil }))
		}
		wantVisited(t, db, want)
	}
}

func wantVisited(t *testing.T, db *DB, want map[string]Meta) {
	t.Helper()
	got := map[string]Meta{}
	for e, err := range db.Visited(func(m *Meta) bool { return true }) {
		check(t, err)
		got[e.URL] = e.Meta
	}
	for url, m := range want {
		if g, ok := got[url]; m.Fetched.IsZero() && ok || !m.Fetched.IsZero() && g != m {
			t.Fatalf("%s is %+v, want %+v", url, g, m)
		}
		delete(got, url)
	}
	if len(got) > 0 {
		t.Errorf("%d URLs were given that nobody has visited", len(got))
	}
	for e, err := range db.Visited(func(m *Meta) bool { return m.Missing > 1 }) {
		if check(t, err); want[e.URL].Fetched.IsZero() {
			t.Errorf("%s was not visited", e.URL)
		}
	}
}

// A merge that ends while Visited reads the disk hides nothing: neither URLs that were only in memory at its start, nor
// those found during it.
func TestVisitedWhileMerged(t *testing.T) {
	const urls = 9
	url := func(i int) string { return fmt.Sprintf("https://h.example/%d", i) }
	visited := time.Unix(1_800_000_000, 0).UTC()
	queued := visited.Add(time.Hour)
	for mergedAt := range urls {
		for queuedAt := -1; queuedAt <= mergedAt; queuedAt++ {
			db, err := Open(vfs.OS, t.TempDir(), Config{Memory: 1 << 20})
			check(t, err)
			for i := range urls {
				db.UpdateMeta(url(i), Meta{Fetched: visited, Due: visited.Add(time.Minute)})
			}
			merge(t, db)
			queue := func() {
				for i := range urls {
					db.UpdateMeta(url(i), Meta{Queued: queued})
				}
			}
			if queuedAt < 0 {
				queue()
			}
			at := 0
			for e, err := range db.Visited(func(*Meta) bool { return true }) {
				check(t, err)
				if at >= urls {
					t.Fatalf("a URL is given that is on the disk and was: %+v", e)
				}
				if e.URL != url(at) || e.Waits() != (at > queuedAt) {
					t.Errorf("queued at %d, merged at %d: the entry at %d is %+v", queuedAt, mergedAt, at, e)
				}
				if at == queuedAt {
					queue()
				}
				if at == mergedAt {
					merge(t, db)
				}
				at++
			}
			if at != urls {
				t.Errorf("merged at %d: %d URLs are given", mergedAt, at)
			}
			check(t, db.Close())
		}
	}
}
