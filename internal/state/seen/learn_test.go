package seen

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"kumo/internal/base/vfs"
)

// randomEntry returns an entry of one of a few URLs.
func randomEntry(dice *rand.Rand, at time.Time) Entry {
	e := Entry{URL: fmt.Sprintf("https://h%d.example/%d", dice.IntN(20), dice.IntN(200)), State: State(dice.IntN(3)),
		Depth: dice.Int32N(5)}
	if e.State == Unknown || dice.IntN(2) == 0 {
		e.Meta = Meta{Fetched: at, Status: 200, ETag: "x", Digest: [20]byte{byte(dice.Uint32())}, Due: at.Add(time.Hour),
			Every: time.Hour}
	}
	if e.State == Unknown {
		e.Depth = 0
	}
	return e
}

// A database imports another's selection, with its parts in memory, frozen and on disk. It then equals a database that
// received everything by InsertKnown and UpdateMeta.
func TestLearnIsKnowAndNote(t *testing.T) {
	for range 20 {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		dice := rand.New(rand.NewPCG(seed, 0))
		at := time.Now().UTC().Truncate(time.Second).Add(-time.Hour)
		var dbs [3]*DB // the source, the importing database, and the database that receives single updates
		for i := range dbs {
			db, err := Open(vfs.OS, t.TempDir(), Config{Depths: true, Now: func() time.Time { return at }})
			check(t, err)
			defer db.Close()
			dbs[i] = db
		}
		settle := func(db *DB) {
			if dice.IntN(3) > 0 {
				db.Freeze(0)
			}
			if dice.IntN(2) == 0 {
				check(t, db.Merge(t.Context(), nil))
			}
		}
		for range 3 {
			at = at.Add(10 * time.Minute)
			for range 200 {
				e := randomEntry(dice, at)
				all := dbs[:]
				if dice.IntN(2) == 0 {
					all = dbs[:1] // the others import it
				}
				for _, db := range all {
					tell(db, &e)
				}
			}
			for _, db := range dbs {
				settle(db)
			}
		}
		want := func(url []byte) bool { return url[len("https://h")]%2 == 1 }
		var known []Entry
		for e, err := range dbs[0].Select(want) {
			check(t, err)
			known = append(known, e)
		}
		if !slices.IsSortedFunc(known, func(a, b Entry) int { return strings.Compare(a.URL, b.URL) }) {
			t.Fatal("not in order")
		}
		for part := range slices.Chunk(slices.Clone(known), 1+dice.IntN(300)) {
			dbs[1].Import(part)
			settle(dbs[1])
		}
		for i := range known {
			dbs[2].Replay(known[i].First)
			tell(dbs[2], &known[i])
		}
		dbs[2].Replay(time.Time{})
		same(t, dbs[1], dbs[2])
		for _, e := range known { // and knows these URLs at least as well
			got, _, err := dbs[1].Get(e.URL)
			if err != nil || got.State < e.State || got.State == e.State && got.Depth > e.Depth || got.First.After(e.First) ||
				got.Fetched != e.Fetched && !e.Fetched.IsZero() {
				t.Fatalf("%+v was learnt, %+v is known, %v", e, got, err)
			}
		}
	}
}

func tell(db *DB, e *Entry) {
	if e.State != Unknown {
		db.InsertKnown([]URL{{URL: e.URL, State: e.State, Depth: e.Depth}})
	}
	db.UpdateMeta(e.URL, e.Meta)
}

// same compares the content of two databases, and, once all is on disk, their counts.
func same(t *testing.T, a, b *DB) {
	t.Helper()
	var all [2][]Entry
	for i, db := range []*DB{a, b} {
		for range 2 {
			db.Freeze(1)
			check(t, db.Merge(t.Context(), nil))
		}
		for e, err := range db.Scan("") {
			check(t, err)
			all[i] = append(all[i], e)
		}
	}
	if len(all[0]) != len(all[1]) {
		t.Fatalf("%d and %d entries", len(all[0]), len(all[1]))
	}
	for i, e := range all[0] {
		if e != all[1][i] {
			t.Fatalf("%+v\n%+v", e, all[1][i])
		}
	}
	if a.Len() != b.Len() {
		t.Errorf("%d and %d are known", a.Len(), b.Len())
	}
}

func TestMetaIsReadAsWritten(t *testing.T) {
	at := time.Unix(1_900_000_000, 0).UTC()
	var b []byte
	all := []Meta{{}, {Fetched: at, Status: 200, ETag: `"x"`, Digest: [20]byte{1}},
		{Due: at, Every: time.Hour, Missing: 3, Queued: at, Kind: 5, Modified: at, Changes: 7},
		{From: "http://example.org/from", ETag: "x"}, {From: "http://example.org/", Kind: 3, Tenure: 2},
		{Ended: true}, {Tenure: 300, ETag: "x"}, {Fetched: at, Ended: true, Tenure: 1, Kind: 2, Status: 200}}
	for i := range all {
		b = AppendMeta(b, &all[i], at.Unix()-5)
	}
	for i := range all {
		m, rest, ok := ReadMeta(b, at.Unix()-5)
		if b = rest; !ok || m != all[i] {
			t.Errorf("%+v became %+v, %v", all[i], m, ok)
		}
	}
	if _, _, ok := ReadMeta(b, 0); ok || len(b) > 0 {
		t.Error("nothing was read")
	}
}

// BenchmarkLearn imports URLs of another database, in order.
func BenchmarkLearn(b *testing.B) {
	db := benchDB(b)
	entries := make([]Entry, 1024)
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		for i := range entries {
			n++
			entries[i] = Entry{URL: fmt.Sprintf("https://www.host-%06d.example.com/articles/%09d.html", n/100, n), State: Known,
				Meta: Meta{Fetched: time.Unix(int64(n), 0), Status: 200, Digest: [20]byte{byte(n), byte(n >> 8), 3}}}
		}
		db.Import(entries)
		if db.Full() {
			b.StopTimer()
			merge(b, db)
			b.StartTimer()
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/URL")
}
