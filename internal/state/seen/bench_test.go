package seen

import (
	"context"
	"slices"
	"testing"
	"time"

	"kumo/internal/base/vfs"
	"kumo/internal/state/seen/urlgen"
)

const links = 40 // links of an average page

// pages returns n batches of URLs.
func pages(stream *urlgen.Stream, n int) [][]URL {
	all := make([][]URL, n)
	for i := range all {
		for range links {
			all[i] = append(all[i], URL{URL: string(stream.Append(nil)), State: Known})
		}
	}
	return all
}

func benchDB(b *testing.B) *DB {
	db, err := Open(vfs.OS, b.TempDir(), Config{})
	check(b, err)
	b.Cleanup(func() { db.Close() })
	return db
}

// benchMerged returns a database with known URLs in several files, and some of these URLs.
func benchMerged(b *testing.B) (*DB, [][]URL) {
	db, all := benchDB(b), pages(urlgen.New(1), 10_000)
	for i, page := range all {
		db.Offer(page, nil)
		if i%2500 == 2499 {
			merge(b, db)
		}
	}
	return db, all
}

func merge(b testing.TB, db *DB) {
	db.Freeze(0)
	check(b, db.Merge(context.Background(), func([]Decided) error { return nil }))
}

func perURL(b *testing.B) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*links), "ns/URL")
}

// BenchmarkOfferMixed offers the mixture of a crawl: four of ten URLs are new.
func BenchmarkOfferMixed(b *testing.B) {
	db, _ := benchMerged(b)
	all, news := pages(urlgen.New(2), min(b.N, 20_000)), make([]News, 0, links)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if i > 0 && i%len(all) == 0 {
			b.StopTimer()
			merge(b, db)
			b.StartTimer()
		}
		news = db.Offer(all[i%len(all)], news[:0])
	}
	perURL(b)
}

// BenchmarkOfferRepeats offers URLs that are in memory.
func BenchmarkOfferRepeats(b *testing.B) {
	db, all, news := benchDB(b), pages(urlgen.New(1), 5000), make([]News, 0, links)
	for _, page := range all {
		db.Offer(page, nil)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		news = db.Offer(all[i*7%len(all)], news[:0])
	}
	perURL(b)
}

// BenchmarkOfferDuringMerge measures the 99th percentile of the duration of a call while merges run.
func BenchmarkOfferDuringMerge(b *testing.B) {
	db, _ := benchMerged(b)
	all, news := pages(urlgen.New(3), 20_000), make([]News, 0, links)
	var times []time.Duration
	for b.Loop() {
		for _, page := range all[:10_000] {
			db.Offer(page, news[:0])
		}
		db.Freeze(0)
		done := make(chan error)
		go func() { done <- db.Merge(context.Background(), func([]Decided) error { return nil }) }()
		for i, merging := 0, true; merging; i++ {
			begin := time.Now()
			news = db.Offer(all[10_000+i%10_000], news[:0])
			times = append(times, time.Since(begin))
			select {
			case err := <-done:
				check(b, err)
				merging = false
			default:
			}
		}
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)*99/100].Microseconds()), "p99-µs")
	b.ReportMetric(0, "ns/op")
}

func BenchmarkGetFromDisk(b *testing.B) {
	db, all := benchMerged(b)
	b.ResetTimer()
	for i := range b.N {
		if _, ok, err := db.Get(all[i*31%len(all)][i%links].URL); !ok || err != nil {
			b.Fatal(ok, err)
		}
	}
}

// BenchmarkMerge merges 40,000 new URLs, decides undecided ones, and compacts.
func BenchmarkMerge(b *testing.B) {
	db, _ := benchMerged(b)
	stream := urlgen.New(4)
	before := db.Len()
	for b.Loop() {
		b.StopTimer()
		for _, page := range pages(stream, 2500) {
			db.Offer(page, nil)
		}
		b.StartTimer()
		merge(b, db)
		for more, err := true, error(nil); more; {
			more, err = db.Compact(context.Background())
			check(b, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(db.Len()-before), "ns/new-URL")
}
