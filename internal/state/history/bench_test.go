package history

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"kumo/internal/base/vfs"
	"kumo/internal/base/xor"
	"kumo/internal/state/journal/file"
)

// A load is a history on disk, into which 20 links of one host are inserted at a time, as from a page.
type load struct {
	*DB
	log     *file.Journal
	dir     string
	perHost int
	dice    *rand.Rand
	entered int
	before  []State
	urls    [20]URL
}

func newLoad(b testing.TB, memory int64, perHost int) *load {
	dir := b.TempDir()
	j, err := file.Open(vfs.OS, filepath.Join(dir, "journal"), file.Config{})
	check(b, err)
	d, err := Open(vfs.OS, filepath.Join(dir, "history"), j, Config{Memory: memory,
		Key: func(host string) xor.ID { return xor.Of("h2", host) }})
	check(b, err)
	return &load{DB: d, log: j, dir: dir, perHost: perHost, dice: rand.New(rand.NewPCG(1, 2))}
}

func (l *load) close(b testing.TB) {
	check(b, l.Close())
	check(b, l.log.Close())
}

// url returns URL n of a host.
func (l *load) url(host string, n int) URL {
	url := fmt.Sprintf("https://%s/articles/2024/some-title-of-%d.html", host, n)
	return URL{Hash: HashOf(url), Data: []byte(url)}
}

// next sets the next 20 URLs and returns their host. The links of a host come from several pages.
func (l *load) next(i int) string {
	pages := max(l.perHost/len(l.urls), 1)
	window := i / (1000 * pages) * 1000 // a thousand hosts at once
	host := fmt.Sprintf("www.site-%d.example", window+i%1000)
	for k := range l.urls {
		l.urls[k] = l.url(host, i/1000%pages*len(l.urls)+k)
	}
	return host
}

func (l *load) enter(b testing.TB, host string) {
	var err error
	if l.before, err = l.Insert(host, l.urls[:], l.before[:0]); err != nil {
		check(b, l.Maintain(b.Context()))
		l.before, err = l.Insert(host, l.urls[:], l.before[:0])
		check(b, err)
	}
	if l.entered++; l.entered%500 == 0 {
		check(b, l.Sync())
	}
}

// done marks the same URLs as done.
func (l *load) done(b testing.TB, host string) {
	for i := range l.urls {
		l.urls[i] = URL{Hash: l.urls[i].Hash, Done: true}
	}
	l.enter(b, host)
}

// timed measures calls of f with 20 URLs each, without their preparation.
func timed(b *testing.B, prepare func(i int) string, f func(host string)) {
	var spent time.Duration
	n := 0
	for ; b.Loop(); n++ {
		host := prepare(n)
		begin := time.Now()
		f(host)
		spent += time.Since(begin)
	}
	b.ReportMetric(float64(20*n)/spent.Seconds(), "URLs/s")
	b.ReportMetric(0, "ns/op")
}

func BenchmarkEnterNew(b *testing.B) {
	l := newLoad(b, 64<<20, 100)
	timed(b, l.next, func(host string) { l.enter(b, host) })
	l.close(b)
}

func BenchmarkEnterKnownInMemory(b *testing.B) {
	l := newLoad(b, 64<<20, 100)
	for i := range 1000 {
		l.enter(b, l.next(i))
	}
	timed(b, func(int) string { return l.next(l.dice.IntN(1000)) }, func(host string) { l.enter(b, host) })
	l.close(b)
}

const million = 1_000_000 / 20

func BenchmarkEnterKnownOnDisk(b *testing.B) {
	l := newLoad(b, 16<<20, 100)
	for i := range million {
		host := l.next(i)
		l.enter(b, host)
		l.done(b, host)
	}
	check(b, l.Checkpoint(b.Context()))
	check(b, l.Maintain(b.Context()))
	timed(b, func(int) string { return l.next(l.dice.IntN(million)) }, func(host string) { l.enter(b, host) })
	l.close(b)
}

func BenchmarkRecords(b *testing.B) {
	l := newLoad(b, 16<<20, 100)
	for i := range million {
		l.done(b, l.next(i))
	}
	check(b, l.Checkpoint(b.Context()))
	check(b, l.Maintain(b.Context()))
	for b.Loop() {
		n := 0
		for next, begun := Cursor(""), false; next != "" || !begun; begun = true {
			records, c, err := l.Records("", next, 1<<14)
			check(b, err)
			for _, r := range records {
				n += len(r.URLs)
			}
			next = c
		}
		b.ReportMetric(float64(n), "URLs")
	}
	l.close(b)
}

// BenchmarkSize inserts four million URLs, each done at once, and reports the size per URL.
func BenchmarkSize(b *testing.B) {
	for _, perHost := range []int{20, 100, 1000} {
		b.Run(fmt.Sprint(perHost, " a host"), func(b *testing.B) {
			for b.Loop() {
				before := heapBytes()
				l := newLoad(b, 16<<20, perHost)
				for i := range 4 * million {
					host := l.next(i)
					l.enter(b, host)
					l.done(b, host)
				}
				check(b, l.Checkpoint(b.Context()))
				check(b, l.Maintain(b.Context()))
				st := l.Stats()
				b.ReportMetric(float64(size(b, filepath.Join(l.dir, "history")))/float64(st.URLs), "disk-B/URL")
				b.ReportMetric(float64(st.Memory)/float64(st.URLs), "filters-B/URL")
				b.ReportMetric(float64(st.Runs), "runs")
				b.ReportMetric(float64(heapBytes()-before)/float64(st.URLs), "heap-B/URL")
				l.close(b)
			}
		})
	}
}

func heapBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func size(b testing.TB, dir string) (n int64) {
	check(b, filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			var info os.FileInfo
			if info, err = d.Info(); err == nil {
				n += info.Size()
			}
		}
		return err
	}))
	return n
}
