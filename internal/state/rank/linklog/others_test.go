package linklog

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"kumo/internal/state/rank"
	"kumo/internal/state/rank/ids"
)

// TestOthers: URLs of other nodes are read as they were added, once they are on disk, up to the mark at which the log
// is opened.
func TestOthers(t *testing.T) {
	const seed = 4
	t.Log("seed", seed)
	dice := rand.New(rand.NewPCG(seed, 1))
	cfg := Config{Dir: t.TempDir()}
	l, err := Open(cfg, Mark{})
	if err != nil {
		t.Fatal(err)
	}
	const urls = 1000
	l.AddKnown(make([]ids.Key, urls))
	read := func() (got []string) {
		t.Helper()
		err := l.Others(t.Context(), func(u rank.ID, url []byte, depth int32) error {
			got = append(got, fmt.Sprint(u, string(url), depth))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	var want []string
	add := func(n int) {
		for range n {
			u, depth := rank.ID(dice.IntN(urls)), int32(dice.IntN(300))
			url := "https://example.com/" + strings.Repeat("ab", dice.IntN(200)) + fmt.Sprint(dice.IntN(50))
			l.AddOther(u, url, depth)
			want = append(want, fmt.Sprint(u, url, depth))
		}
	}
	add(5000)
	mark, err := l.Sync()
	if err != nil {
		t.Fatal(err)
	}
	synced := slices.Clone(want)
	if got := read(); !slices.Equal(got, want) {
		t.Fatalf("%d of %d URLs are read", len(got), len(want))
	}
	add(10)
	if got := read(); !slices.Equal(got, synced) {
		t.Errorf("%d URLs are read before the last are written", len(got))
	}
	if err := l.Flush(); err != nil {
		t.Fatal(err)
	}
	if got := read(); !slices.Equal(got, want) {
		t.Errorf("%d of %d URLs are read", len(got), len(want))
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if l, err = Open(cfg, mark); err != nil {
		t.Fatal(err)
	}
	want = synced
	add(20)
	if err := l.Flush(); err != nil {
		t.Fatal(err)
	}
	if got := read(); !slices.Equal(got, want) {
		t.Errorf("opened at a mark: %d of %d URLs", len(got), len(want))
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}
