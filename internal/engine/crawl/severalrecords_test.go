package crawl

import (
	"testing"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/stats"
	"kumo/internal/content/robots"
	"kumo/internal/state/entry"
	"kumo/internal/state/frontier"
	"kumo/internal/state/journal/memory"
	"kumo/internal/state/recovery"
	"kumo/internal/state/seen"
	"kumo/internal/state/store"
)

// stored collects the URLs of records.
type stored struct {
	store.Store
	urls []string
}

func (s *stored) Put(rec *page.Record) error  { s.urls = append(s.urls, rec.URL); return nil }
func (s *stored) Mark() ([]store.Mark, error) { return nil, nil }
func (s *stored) Sync() error                 { return nil }
func (s *stored) Finalize() error             { return nil }

// A visit that has also fetched embedded resources has several records in one batch: all of them are stored and
// counted, and done in the next run.
func TestAVisitMayBringSeveralRecords(t *testing.T) {
	log, kept := memory.New(), &stored{}
	views := func() recovery.Views {
		return recovery.Views{Seen: seen.New(), Digests: seen.NewRecent(), Frontier: frontier.New(frontier.Config{})}
	}
	s, err := recovery.Recover(log, views())
	if err != nil {
		t.Fatal(err)
	}
	e := New(Config{}, Parts{Journal: log, Robots: robots.NewCache(robots.Config{}), Stores: []store.Store{kept}}, s)
	pg, part := item.FromSeed("http://h.test/"), item.FromSeed("http://h.test/part")
	found := batch{}
	for _, it := range []*item.Item{&pg, &part} {
		found.entries.Found(it)
	}
	b := batch{visitURL: pg.URL}
	for _, it := range []*item.Item{&pg, &part} {
		b.records = append(b.records, &page.Record{URL: it.URL})
		b.done = append(b.done, &entry.Done{URL: it.URL, Visit: stats.Visit{Host: "h.test", Status: 200}})
	}
	for _, all := range []*batch{&found, &b} {
		if err := e.abandons.commitBatch(all, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.ledger.Commit(); err != nil {
		t.Fatal(err)
	}
	again, err := recovery.Recover(log, views())
	if err != nil || len(kept.urls) != 2 || again.Pending() != 0 || e.abandons.stats.Totals().Pages != 2 ||
		again.Stats.Totals().Pages != 2 {
		t.Errorf("stored %q, %d wait, %d and %d pages: %v", kept.urls, again.Pending(), e.abandons.stats.Totals().Pages,
			again.Stats.Totals().Pages, err)
	}
}
