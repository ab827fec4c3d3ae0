package seen

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/base/vfs"
	"kumo/internal/base/vfs/vfstest"
	"kumo/internal/state/seen/urlgen"
)

// lateDB returns a database with metadata of n URLs that were never offered: its filters contain them, although they
// are new.
func lateDB(t *testing.T, disk vfs.FS, n int) (*DB, []URL) {
	t.Helper()
	db, err := Open(disk, t.TempDir(), Config{Depths: true})
	check(t, err)
	t.Cleanup(func() { check(t, db.Close()) })
	urls := make([]URL, n)
	for i := range urls {
		urls[i] = URL{URL: fmt.Sprintf("https://h.example/%05d", i), Depth: 3, State: Known, Payload: fmt.Append(nil, i)}
		db.UpdateMeta(urls[i].URL, Meta{Status: 200})
	}
	db.Freeze(1)
	check(t, db.Merge(t.Context(), func([]Decided) error { return nil }))
	return db, urls
}

// Payloads are created only for undecided URLs.
func TestOfferWithMakesThePayloadsThatAreNeeded(t *testing.T) {
	db, urls := lateDB(t, vfs.OS, 2)
	fresh := URL{URL: "https://h.example/fresh", State: Known}
	urls[0].Payload, urls[1].Payload = nil, nil
	offer := []URL{fresh, urls[0], fresh, urls[1], urls[0]}
	var made []int
	news := db.OfferWith(offer, nil, func(i int) []byte {
		made = append(made, i)
		return fmt.Append(nil, "payload ", i)
	})
	if want := []News{Fresh, Undecided, Nothing, Undecided, Nothing}; !slices.Equal(news, want) {
		t.Errorf("news %v, want %v", news, want)
	}
	if !slices.Equal(made, []int{1, 3}) || string(offer[3].Payload) != "payload 3" {
		t.Errorf("payloads of %v, the last is %q", made, offer[3].Payload)
	}
	if payload, waits, err := db.Pending(urls[0].URL); err != nil || !waits || string(payload) != "payload 1" {
		t.Errorf("waits %v with %q, %v", waits, payload, err)
	}
}

// TestMergeAfterAFullDisk: each URL is delivered once, although the merge has to be retried several times.
func TestMergeAfterAFullDisk(t *testing.T) {
	disk := vfstest.NewFaulty(vfs.OS)
	db, urls := lateDB(t, disk, 5*chunk/2)
	for i, news := range db.Offer(urls, nil) {
		if news != Undecided {
			t.Fatalf("%s is %v, want Later", urls[i].URL, news)
		}
	}
	if !db.Freeze(2) || db.Freeze(3) {
		t.Error("what is frozen cannot be frozen again")
	}
	var told []string
	hear := func(all []Decided) error {
		for _, d := range all {
			if d.News != Fresh || string(d.Payload) != fmt.Sprint(len(told)) {
				t.Fatalf("%v with %q", d, d.Payload)
			}
			told = append(told, d.URL.URL)
		}
		return nil
	}
	refusal := errors.New("no")
	refuse := func([]Decided) error { return refusal }
	if err := db.Merge(t.Context(), refuse); !errors.Is(err, refusal) || db.Waiting() != int64(len(urls)) {
		t.Errorf("the refusal came back as %v, %d wait", err, db.Waiting())
	}
	for room := int64(0); ; room += 100 {
		disk.SetRoom(room)
		err := db.Merge(t.Context(), hear)
		if err == nil {
			break
		}
		if !vfs.IsFull(err) {
			t.Fatalf("Position = %d, %v", db.Position(), err)
		}
	}
	disk.SetRoom(-1)
	if len(told) != len(urls) || db.Len() != int64(len(urls)) || db.Position() != 2 {
		t.Errorf("%d of %d told, Len = %d, Position = %d", len(told), len(urls), db.Len(), db.Position())
	}
}

func TestMergeIsCancelled(t *testing.T) {
	db, urls := lateDB(t, vfs.OS, 2*chunk)
	db.Offer(urls, nil)
	db.Freeze(2)
	ctx, cancel := context.WithCancel(t.Context())
	err := db.Merge(ctx, func([]Decided) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) || db.Waiting() != int64(len(urls)) {
		t.Errorf("Position = %d, %v", db.Position(), err)
	}
	told := 0
	check(t, db.Merge(t.Context(), func(all []Decided) error { told += len(all); return nil }))
	if told != chunk {
		t.Errorf("%d told by the second attempt, want %d", told, chunk)
	}
}

func TestWhatIsKnownFromTheJournalIsNotTold(t *testing.T) {
	db, urls := lateDB(t, vfs.OS, 11)
	late := urls[10]
	urls = urls[:10]
	db.Offer(urls[:5], nil) // they were undecided, and delivered before the process died
	db.InsertKnown(urls)
	db.Offer([]URL{late}, nil)
	db.InsertKnown([]URL{{URL: late.URL, Depth: 1, State: Deferred}}) // the better offer was not delivered yet
	db.InsertKnown([]URL{{URL: "https://h.example/new", Depth: 3, State: Known}})
	better := []URL{{URL: urls[7].URL, Depth: 2, State: Known}, {URL: urls[8].URL, Depth: 4, State: Known}}
	if news := db.Offer(better, nil); !slices.Equal(news, []News{Nearer, Nothing}) {
		t.Errorf("offers of what is known are %v", news)
	}
	db.Freeze(2)
	check(t, db.Merge(t.Context(), func(all []Decided) error {
		if len(all) != 1 || all[0].URL.URL != late.URL || all[0].News != Fresh || all[0].State != Known {
			t.Errorf("told: %v", all)
		}
		return nil
	}))
	if db.Len() != 12 {
		t.Errorf("Len = %d, want 12", db.Len())
	}
	if e, _, err := db.Get(urls[7].URL); err != nil || e.Depth != 2 || e.Status != 200 {
		t.Errorf("Get = %v, %v", e, err)
	}
}

func TestFull(t *testing.T) {
	db, err := Open(vfs.OS, t.TempDir(), Config{Memory: 1 << 20})
	check(t, err)
	defer db.Close()
	for n, stream := 0, urlgen.New(1); !db.Full(); n++ {
		if db.Offer([]URL{{URL: string(stream.Append(nil)), State: Known}}, nil); db.Stats().Parts > 1<<20 {
			t.Fatalf("%d bytes are in memory after %d URLs", db.Stats().Parts, n)
		}
	}
}

func TestRoom(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		db, err := Open(vfs.OS, dir, Config{Memory: 1 << 16})
		check(t, err)
		defer db.Close()
		check(t, db.Room(t.Context()))
		for n := 0; !db.Full(); n++ {
			db.Offer([]URL{{URL: fmt.Sprint("https://h.example/", n), State: Known}}, nil)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		given, got := make(chan error), make(chan error, 1)
		go func() { given <- db.Room(ctx) }()
		go func() { got <- db.Room(t.Context()) }()
		synctest.Wait()
		cancel()
		if err := <-given; !errors.Is(err, context.Canceled) {
			t.Errorf("Room = %v", err)
		}
		if len(got) > 0 {
			t.Error("Room does not wait")
		}
		db.Freeze(1)
		check(t, <-got)
	})
}

// TestLateWaits: few undecided URLs stay on disk until they are requested, or there are more.
func TestLateWaits(t *testing.T) {
	db, urls := lateDB(t, vfs.OS, 1000)
	db.Offer(urls[:20], nil)
	db.Freeze(2)
	told := 0
	hear := func(all []Decided) error { told += len(all); return nil }
	check(t, db.Merge(t.Context(), hear))
	if told != 0 || db.Waiting() != 20 || db.Len() != 0 {
		t.Errorf("%d told, %d wait, Len = %d", told, db.Waiting(), db.Len())
	}
	if e, _, err := db.Get(urls[7].URL); err != nil || e.State != Known || e.Depth != 3 || e.Status != 200 {
		t.Errorf("Get = %v, %v", e, err)
	}
	var late []string
	for url, err := range db.Late() {
		check(t, err)
		late = append(late, url)
	}
	if len(late) != 20 || late[7] != urls[7].URL {
		t.Errorf("late: %v", late)
	}
	check(t, db.DecideAll(t.Context(), hear))
	if told != 20 || db.Waiting() != 0 || db.Len() != 20 {
		t.Errorf("%d told, %d wait, Len = %d", told, db.Waiting(), db.Len())
	}
	if news := db.Offer(urls[:20], nil); slices.ContainsFunc(news, func(n News) bool { return n != Nothing }) {
		t.Errorf("what was told is %v", news)
	}
	db.Offer(urls[:40], nil)
	db.Freeze(3)
	check(t, db.Merge(t.Context(), hear))
	db.Offer(urls[40:60], nil)
	db.Freeze(4)
	if check(t, db.Merge(t.Context(), hear)); told != 60 { // one for 32 known URLs
		t.Errorf("%d told, %d wait", told, db.Waiting())
	}
}

// TestManyAtOnce offers, updates, gets and scans concurrently with merges. Each URL is Fresh once in total.
func TestManyAtOnce(t *testing.T) {
	db, err := Open(vfs.OS, t.TempDir(), Config{Ratio: 2})
	check(t, err)
	var wg sync.WaitGroup
	done := make(chan bool)
	fresh := make([]int, 4)
	for g := range fresh {
		wg.Go(func() {
			for i := range 2000 {
				u := []URL{{URL: fmt.Sprintf("https://h.example/%d", i), State: Known}}
				if db.Offer(u, nil)[0] == Fresh {
					fresh[g]++
				}
				if i%100 == 0 {
					db.UpdateMeta(u[0].URL, Meta{Fetched: time.Unix(1, 0)})
					_, ok, err := db.Get(u[0].URL)
					n := 0
					for range db.Scan("https://h.example/1") {
						n++
					}
					if !ok || err != nil || i > 1 && n == 0 {
						t.Errorf("Get = %v, %v; Scan gives %d", ok, err, n)
					}
				}
			}
		})
	}
	told := 0
	go func() {
		defer close(done)
		for pos := range uint64(20) {
			db.Freeze(pos)
			err := db.Merge(context.Background(), func(all []Decided) error { told += len(all); return nil })
			if _, err2 := db.Compact(context.Background()); err != nil || err2 != nil {
				t.Error(err, err2)
			}
		}
	}()
	wg.Wait()
	<-done
	db.Freeze(99)
	check(t, db.DecideAll(t.Context(), func(all []Decided) error { told += len(all); return nil }))
	if n := total(fresh) + told; n != 2000 || db.Len() != 2000 {
		t.Errorf("%d were Fresh, Len = %d", n, db.Len())
	}
	check(t, db.Close())
}

func TestDigests(t *testing.T) {
	dir, disk := t.TempDir(), vfstest.NewFaulty(vfs.OS)
	open := func() *Digests {
		d, err := OpenDigests(disk, dir, Config{Ratio: 2})
		check(t, err)
		return d
	}
	ref := func(i int) Ref {
		r := Ref{URL: fmt.Sprintf("https://h.example/%d", i), Time: time.Unix(int64(i), 7).UTC(),
			ID: fmt.Sprintf("<urn:uuid:%d>", i)}
		if i%3 == 0 {
			r.Chunked = [20]byte{1, 19: byte(i)}
		}
		return r
	}
	d := open()
	digest := func(i int) [20]byte { return [20]byte{byte(i), 19: byte(i >> 8)} }
	for i := range 1000 {
		d.Put(digest(i%700), ref(i))
		if i%100 == 99 && i < 900 {
			d.Freeze(uint64(i))
			check(t, d.Merge(t.Context()))
			_, err := d.Compact(t.Context())
			check(t, err)
		}
	}
	expect := func(i int, want Ref, known bool) {
		t.Helper()
		if got, ok, err := d.Get(digest(i)); got != want || ok != known || err != nil {
			t.Fatalf("Get(%d) = %v, %v, %v, want %v", i, got, ok, err, want)
		}
	}
	expect(800, Ref{}, false)
	expect(250, ref(950), true)
	disk.DieAfter(500)
	d.Freeze(1000)
	if err := d.Merge(t.Context()); !errors.Is(err, vfstest.ErrDead) {
		t.Errorf("the merge of a dead process: %v", err)
	}
	check(t, d.Close())
	disk = vfstest.NewFaulty(vfs.OS)
	if d = open(); d.Position() != 899 {
		t.Errorf("Position = %d", d.Position())
	}
	for i := range 700 {
		want := i
		if i < 200 {
			want += 700
		}
		expect(i, ref(want), true)
	}
	check(t, d.Close())
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestFirst: a URL keeps the time when it was first met, across merges.
func TestFirst(t *testing.T) {
	now := time.Unix(1_800_000_000, 0).UTC()
	db, err := Open(vfs.OS, t.TempDir(), Config{Now: func() time.Time { return now }})
	check(t, err)
	defer db.Close()
	want := now
	for i := range 3 {
		db.Offer([]URL{{URL: "https://h.example/", State: Deferred + State(i/2)}}, nil)
		db.UpdateMeta("https://h.example/", Meta{Fetched: now})
		if e, _, err := db.Get("https://h.example/"); !e.First.Equal(want) || !e.Fetched.Equal(now) || err != nil {
			t.Errorf("first met %v, fetched %v: %v", e.First, e.Fetched, err)
		}
		db.Freeze(0)
		check(t, db.Merge(t.Context(), func([]Decided) error { return nil }))
		now = now.Add(time.Hour)
	}
}

// TestRemembers: true only for URLs that memory has for certain, if an offer is no better; not for URLs only on disk.
func TestRemembers(t *testing.T) {
	db, urls := lateDB(t, vfs.OS, 2)
	fresh := URL{URL: "https://h.example/fresh", State: Known, Depth: 3}
	left := URL{URL: "https://h.example/left", State: Deferred}
	db.Offer([]URL{urls[0], fresh, left}, nil)
	nearer, brought := fresh, left
	nearer.Depth, brought.State = 2, Known
	offers := []URL{urls[0], urls[1], fresh, nearer, left, brought, {URL: "https://h.example/never", State: Known}}
	for i, want := range []bool{false, false, true, false, true, false, false} {
		if known := db.Remembers(offers, nil); known[i] != want {
			t.Errorf("%+v is remembered: %v", offers[i], known[i])
		}
	}
	db.Freeze(1)
	if known := db.Remembers([]URL{fresh}, nil); !known[0] {
		t.Error("what is frozen is forgotten")
	}
}

// TestWhatIsOver: the fact that a URL is over, and the tenure in which it was queued last, survive later visits.
func TestWhatIsOver(t *testing.T) {
	db, urls := lateDB(t, vfs.OS, 1)
	url, at := urls[0].URL, time.Unix(1_900_000_000, 0).UTC()
	for i, m := range []Meta{{Ended: true}, {Tenure: 2}, {Tenure: 1}, {Fetched: at, Status: 200}} {
		db.UpdateMeta(url, m)
		db.Freeze(uint64(i))
		if err := db.Merge(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if e, _, err := db.Get(url); err != nil || !e.Over() || e.Ended != true || e.Tenure != min(2*i, 2) {
			t.Errorf("%d: %+v, %v", i, e, err)
		}
	}
	if (&Meta{Tenure: 1, Due: at, Status: 200}).Over() || !(&Meta{Fetched: at}).Over() {
		t.Error("it is over when it was fetched")
	}
}
