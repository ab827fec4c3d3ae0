package seen

import (
	"crypto/sha1"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"kumo/internal/base/vfs"
	"kumo/internal/state/seen/urlgen"
)

// TestSize checks the documented size on disk, for few URLs, which share shorter prefixes than many do.
func TestSize(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	db, err := Open(vfs.OS, t.TempDir(), Config{Ratio: 2,
		Now: func() time.Time { now = now.Add(time.Millisecond); return now }})
	check(t, err)
	defer db.Close()
	stream := urlgen.New(1)
	inParts(t, db, func(int) {
		for range 60_000 {
			db.Offer([]URL{{URL: string(stream.Append(nil)), State: Known, Depth: 3}}, nil)
		}
	})
	perURL := func(n int64) float64 { return float64(n) / float64(db.Len()) }
	st := db.Stats()
	t.Logf("%d URLs, %d file: %.1f bytes on the disk, %.2f in memory", db.Len(), st.Runs, perURL(st.Disk),
		perURL(st.Memory))
	if st.Runs != 1 || perURL(st.Disk) > 22 || perURL(st.Memory) > 1.4 {
		t.Error("that is too much")
	}
	dice := rand.New(rand.NewPCG(1, 1))
	inParts(t, db, func(part int) {
		i := 0
		for e, err := range db.Scan("") {
			check(t, err)
			if i++; i%4 == part {
				db.UpdateMeta(e.URL, visit(dice, e.URL, now))
			}
		}
	})
	st = db.Stats()
	t.Logf("fetched, %d file: %.1f bytes on the disk", st.Runs, perURL(st.Disk))
	if st.Runs != 1 || perURL(st.Disk) > 66 {
		t.Error("that is too much")
	}
}

// inParts calls f four times, with a merge each, and compacts to one file.
func inParts(t *testing.T, db *DB, f func(part int)) {
	for part := range 4 {
		f(part)
		db.Freeze(uint64(part))
		check(t, db.Merge(t.Context(), func([]Decided) error { return nil }))
		_, err := db.Compact(t.Context())
		check(t, err)
	}
}

// visit returns random results of a visit: half of the pages have an ETag, half a date.
func visit(dice *rand.Rand, url string, now time.Time) Meta {
	due := now.Add(time.Duration(dice.IntN(1e6)) * time.Second)
	m := Meta{Fetched: now, Due: due, Status: 200, Changes: 1, Digest: sha1.Sum([]byte(url))}
	if dice.IntN(2) == 0 {
		m.ETag = fmt.Sprintf(`"%x-%x"`, dice.Uint32N(1<<18), dice.Uint64N(1<<52))
	}
	if dice.IntN(2) == 0 {
		m.Modified = now.Add(-time.Duration(dice.IntN(1e8)) * time.Second)
	}
	return m
}
