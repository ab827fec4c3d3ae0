package crawl

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/stats"
	"kumo/internal/base/vfs"
	"kumo/internal/base/weburl"
	"kumo/internal/cluster/strategy"
	"kumo/internal/content/robots"
	"kumo/internal/state/entry"
	"kumo/internal/state/frontier"
	"kumo/internal/state/journal"
	"kumo/internal/state/rank/linklog"
	"kumo/internal/state/rank/pagerank"
	"kumo/internal/state/rank/ranker"
	"kumo/internal/state/recovery"
	"kumo/internal/state/seen"
)

// BenchmarkPageOfLinks commits visits of pages with 40 links, half of them new: with all hosts on this node, the same
// with PageRank as the order, with a third of the hosts on this node, and with claimed links. Links are taken from the
// outbox at once.
func BenchmarkPageOfLinks(b *testing.B) {
	for _, way := range []string{"alone", "ranked", "shared", "claimed"} {
		b.Run(way, func(b *testing.B) { benchmarkLinks(b, way) })
	}
}

// linksEngine returns an engine without a journal that commits until end is called.
func linksEngine(b *testing.B, way string) (e *Engine, end func()) {
	db, err := seen.Open(vfs.OS, b.TempDir(), seen.Config{Memory: 1 << 30})
	if err != nil {
		b.Fatal(err)
	}
	var ranks Ranks
	var front frontier.Config
	if way == "ranked" {
		ranks.Links, err = ranker.Open(b.Context(), ranker.Config{Order: pagerank.New(0)}, linklog.Mark{})
		if err != nil {
			b.Fatal(err)
		}
		front.Ranker = ranks.Links
	}
	s, err := recovery.Recover(journal.Discard, recovery.Views{Seen: db, Digests: seen.NewRecent(),
		Frontier: frontier.New(front)})
	if err != nil {
		b.Fatal(err)
	}
	parts := Parts{Ranks: ranks, Journal: journal.Discard, Robots: robots.NewCache(robots.Config{}),
		Scope: weburl.NewScope(weburl.ScopeAny)}
	if way == "shared" || way == "claimed" {
		parts.Router = routerFunc(func(host string) bool { return way == "claimed" || hash64(host)%3 == 0 })
	}
	e = New(Config{Depth: -1, Outbox: 1 << 40, Claims: way == "claimed"}, parts, s)
	ctx, stop := context.WithCancel(b.Context())
	ran := make(chan error)
	go func() { ran <- e.ledger.Run(ctx) }()
	return e, func() {
		stop()
		if err := errors.Join(<-ran, db.Close()); err != nil {
			b.Error(err)
		}
	}
}

func benchmarkLinks(b *testing.B, way string) {
	const links = 40
	e, end := linksEngine(b, way)
	defer end()
	dice := rand.New(rand.NewPCG(1, 2))
	urls := make([]string, 0, 1<<16)
	w, now := e.runner.workers.acquire(), time.Now()
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		it := item.Item{URL: fmt.Sprintf("http://h%d.test/page/%d", n%100, n), Seed: "http://seed.test/"}
		pg := page.Page{Links: make([]page.Link, 0, links)}
		for i := range links {
			url := fmt.Sprintf("http://h%d.test/some/folder/%d-%d.html", i%100, n, i)
			if i%2 == 0 && len(urls) > 0 {
				url = urls[dice.IntN(len(urls))]
			} else if len(urls) < cap(urls) {
				urls = append(urls, url)
			}
			pg.Links = append(pg.Links, page.Link{URL: url, Kind: page.Anchor})
		}
		n++
		w.batch.reset()
		e.Inspector.ranks.beginPage(&w.batch, it.URL, links)
		if err := e.abandons.admission.addLinks(&w.batch, &it, &pg); err != nil {
			b.Fatal(err)
		}
		w.batch.visitURL, w.batch.ranks.last = it.URL, w.batch.ranks.ofPage
		w.batch.records = append(w.batch.records, &page.Record{URL: it.URL})
		w.batch.done = append(w.batch.done, &entry.Done{URL: it.URL, Visit: stats.Visit{Host: "h.test", Status: 200},
			Meta: seen.Meta{Fetched: now, Status: 200}})
		if err := e.abandons.commitBatch(&w.batch, nil); err != nil {
			b.Fatal(err)
		}
		e.abandons.ends.clear(it.URL)
		if n%100 == 0 {
			for _, l := range e.Links.Batches(now, func(string) (strategy.Node, bool) { return "other", true }) {
				e.Links.Answered(l.To, l.Number, nil, now)
			}
			now = now.Add(time.Hour)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/links, "ns/link")
}

// BenchmarkTakeDispatched admits batches of 500 dispatched links: all new, or all pending already. It does not wait for
// the journal.
func BenchmarkTakeDispatched(b *testing.B) {
	const links = 500
	for _, known := range []bool{false, true} {
		b.Run(fmt.Sprint("known ", known), func(b *testing.B) {
			e, end := linksEngine(b, "claimed")
			defer end()
			n := 0
			b.ReportAllocs()
			for b.Loop() {
				urls := make([]string, links)
				for i := range urls {
					urls[i] = fmt.Sprintf("http://h%d.test/some/folder/%d-%d.html", 3*i, n, i)
				}
				if !known {
					n++
				}
				var all batch
				if err := all.read(linksTo(urls...)); err != nil {
					b.Fatal(err)
				}
				if _, _, err := e.Dispatches.commitDispatched(&all); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/links, "ns/link")
		})
	}
}
