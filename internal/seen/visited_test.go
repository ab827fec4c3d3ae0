package seen

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"kumo/internal/vfs"
)

// Whatever of a URL's meta is on the disk and what in memory, Visited gives every visited URL with all of it, and the
// others not.
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
