package ranker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"kumo/internal/state/rank"
	"kumo/internal/state/rank/ids"
	"kumo/internal/state/rank/linklog"
	"kumo/internal/state/rank/pagerank"
)

// A webOf is a web of pages with a number of links each, most of them to nearby pages and some to popular ones. It is
// read page by page, as by a crawl: one in four of a page's links leads to a new URL.
type webOf struct {
	dice *rand.Rand
	urls int
	page int
}

const linksAPage = 40

func (w *webOf) visit(v *Visit, key func(int) ids.Key) {
	v.Page, v.Links, v.Out = key(w.page), v.Links[:0], linksAPage
	for range linksAPage {
		to := 0
		switch x := w.dice.IntN(100); {
		case x < 10: // new
			to = w.urls
			w.urls++
		case x < 60: // recent
			to = w.urls - w.dice.IntN(min(w.urls, 5000))
		default: // any, some of them popular
			f := w.dice.Float64()
			to = int(f * f * f * f * float64(w.urls))
		}
		v.Links = append(v.Links, URL{Key: key(to), Depth: 1})
	}
	w.page++
	w.urls = max(w.urls, w.page+1)
}

// BenchmarkPages measures the ranking of a crawl of a million pages, including refreshes. For comparison, kumo takes
// 288 µs per page in total.
func BenchmarkPages(b *testing.B) {
	for name, order := range orders {
		b.Run(name, func(b *testing.B) { benchPages(b, order()) })
	}
}

func benchPages(b *testing.B, order rank.Order) {
	const pages = 1_000_000
	if b.N > 1 {
		b.Fatal("-benchtime 1x")
	}
	cfg := Config{Order: order, Log: linklog.Config{Dir: b.TempDir(), Memory: 64 << 20}}
	r, err := Open(b.Context(), cfg, linklog.Mark{})
	if err != nil {
		b.Fatal(err)
	}
	w := webOf{dice: rand.New(rand.NewPCG(1, 1)), urls: 1}
	key := func(u int) ids.Key { return r.KeyOf(fmt.Sprintf("https://www.example.com/a/path/page-%d.html", u)) }
	visits := make([]Visit, 10_000)
	var done benchDone
	for range pages / len(visits) {
		b.StopTimer()
		for i := range visits {
			w.visit(&visits[i], key)
		}
		b.StartTimer()
		done.fetch(b, r, visits)
	}
	size := r.Size()
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/pages, "ns/page")
	b.ReportMetric(float64(size.Memory)/float64(size.URLs), "B/URL")
	b.ReportMetric(float64(size.Links.Bytes)/float64(size.Links.Links), "B/link")
	b.ReportMetric(float64(size.URLs), "URLs")
	b.ReportMetric(float64(done.rose)/pages, "rises/page")
	b.ReportMetric(float64(done.changes)/pages, "changes/page")
	b.ReportMetric(float64(done.refreshes), "refreshes")
	if err := r.Close(); err != nil {
		b.Fatal(err)
	}
}

type benchDone struct {
	standings                []Placement
	rose, refreshes, changes int
}

// fetch adds pages like a crawl.
func (d *benchDone) fetch(b *testing.B, r *Ranker, visits []Visit) {
	for i := range visits {
		var err error
		if d.standings, err = r.Fetched(&visits[i], d.standings[:0]); err != nil {
			b.Fatal(err)
		}
		for i := range d.standings {
			if d.standings[i].Rose {
				d.rose++
			}
		}
		if i%256 == 0 && r.Due() {
			done, err := r.Refresh(context.Background(), func([]Change) error { return nil })
			if err != nil {
				b.Fatal(err)
			}
			d.refreshes++
			d.changes += done.Places
		}
	}
	if _, err := r.Sync(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkPass measures a pass over 100 million links between 10 million URLs, in memory and on disk.
func BenchmarkPass(b *testing.B) {
	const pages, urls = 2_500_000, 10_000_000
	for _, memory := range []int64{1 << 40, 0} {
		b.Run(fmt.Sprintf("inMemory=%v", memory > 0), func(b *testing.B) {
			log, err := linklog.Open(linklog.Config{Dir: b.TempDir(), Memory: memory}, linklog.Mark{})
			if err != nil {
				b.Fatal(err)
			}
			fillLog(b, log, pages, urls)
			o := pagerank.New(0)
			o.Grow(urls)
			view := log.View(0)
			size := log.Size()
			runtime.GC()
			for b.Loop() {
				o.Begin()
				if err := o.Pass(b.Context(), view.Scan); err != nil {
					b.Fatal(err)
				}
				o.End()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(size.Links), "ns/link")
			b.ReportMetric(float64(size.Bytes)/float64(size.Links), "B/link")
			b.ReportMetric(float64(size.Memory)/1e6, "MB-of-links")
			if err := log.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

func fillLog(b *testing.B, log *linklog.Log, pages, urls int) {
	dice, met := rand.New(rand.NewPCG(1, 1)), map[rank.ID]bool{}
	log.AddKnown(make([]ids.Key, urls))
	p := rank.Page{}
	for i := range pages {
		p.ID, p.Links = rank.ID(i*(urls/pages)), p.Links[:0]
		clear(met)
		near := int(p.ID)
		for len(met) < linksAPage {
			to := near + len(met)/2
			if x := dice.IntN(10); x < 3 {
				to = max(0, near-dice.IntN(20_000))
			} else if x < 7 {
				f := dice.Float64()
				to = int(f * f * f * f * float64(urls))
			}
			met[rank.ID(min(to, urls-1))] = true
			if to >= urls-1 {
				break
			}
		}
		for to := range met {
			p.Links = append(p.Links, to)
		}
		slices.Sort(p.Links)
		p.Out = len(p.Links)
		log.AddPage(nil, &p)
		if i%10_000 == 0 {
			if err := log.Flush(); err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := log.Flush(); err != nil {
		b.Fatal(err)
	}
}
