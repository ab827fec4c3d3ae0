package seen

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"kumo/internal/base/vfs"
)

// A scan of several pages returns all URLs, in order, once.
func TestScanGoesOnWhereAPageEnds(t *testing.T) {
	db, err := Open(vfs.OS, t.TempDir(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	const n = scanPage*2 + 1000
	var urls []URL
	for i := range 2 * n {
		urls = append(urls, URL{URL: fmt.Sprintf("https://h.example/%07d", i), State: Known})
	}
	rand.Shuffle(len(urls), func(i, j int) { urls[i], urls[j] = urls[j], urls[i] })
	db.Offer(urls[:n/2], nil)
	db.Freeze(0)
	if err := db.Merge(t.Context(), func([]Decided) error { return nil }); err != nil { // on disk
		t.Fatal(err)
	}
	db.Offer(urls[n/2:n], nil)
	db.Freeze(0) // frozen
	db.Offer(urls[n:], nil)
	var got []string
	for e, err := range db.Scan("https://h.example/0") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e.URL)
	}
	if len(got) != 2*n || !slices.IsSorted(got) || len(slices.Compact(got)) != 2*n {
		t.Errorf("%d URLs, want %d", len(got), 2*n)
	}
}

// A scan returns all URLs that were there at its start, although undecided ones on disk are decided during it.
func TestScanHasWhatIsSettledMeanwhile(t *testing.T) {
	db, late := lateDB(t, vfs.OS, 1000)
	db.Offer(late, nil)
	db.Freeze(2)
	told := 0
	check(t, db.write(t.Context()))
	if n := db.Waiting(); n != int64(len(late)) {
		t.Fatalf("%d wait", n)
	}
	const n = 2 * firstPage // of other URLs, before those, in memory
	for i := range n {
		db.Offer([]URL{{URL: fmt.Sprintf("https://a.example/%05d", i), State: Known}}, nil)
	}
	var got []string
	for e, err := range db.Scan("https://") {
		check(t, err)
		if e.State == Known {
			got = append(got, e.URL)
		}
		if len(got) == 1 {
			check(t, db.DecideAll(t.Context(), func(all []Decided) error { told += len(all); return nil }))
		}
	}
	if told != len(late) || len(got) != n+len(late) || !slices.IsSorted(got) || len(slices.Compact(got)) != n+len(late) {
		t.Errorf("%d known URLs, want %d; %d were told", len(got), n+len(late), told)
	}
}

func TestPendingIsWhatAMergeDecides(t *testing.T) {
	db, err := Open(vfs.OS, t.TempDir(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	const url = "https://h.example/"
	db.UpdateMeta(url, Meta{Status: 200}) // so that the filter of the disk part contains it
	db.Freeze(0)
	if err := db.Merge(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if _, waits, err := db.Pending(url); waits || err != nil {
		t.Error("it waits before it was offered")
	}
	if news := db.Offer([]URL{{URL: url, State: Known, Payload: []byte("from here")}}, nil); news[0] != Undecided {
		t.Fatalf("news %v", news[0])
	}
	for range 2 {
		if payload, waits, err := db.Pending(url); err != nil || !waits || string(payload) != "from here" {
			t.Errorf("waits %v, %q", waits, payload)
		}
		db.Freeze(1)
	}
	if err := db.Merge(t.Context(), func([]Decided) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if _, waits, err := db.Pending(url); waits || err != nil {
		t.Error("it waits after the merge")
	}
}
