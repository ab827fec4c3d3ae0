package crawl

import (
	"testing"
	"time"

	"kumo/internal/base/weburl"
	"kumo/internal/content/policy"
	"kumo/internal/state/seen"
)

// TestADueURLIsTakenOnce: a URL that is due both on disk and in memory is queued once.
func TestADueURLIsTakenOnce(t *testing.T) {
	e := onDisk(t, t.TempDir())
	e.Inspector.rules.Scope, e.Seeding.scopeSeeds.all = weburl.NewScope(weburl.ScopeAny), weburl.NewSet()
	now := time.Unix(1e9, 0)
	e.cfg.Now = func() time.Time { return now }
	e.cfg.Recrawl.Intervals = []policy.Interval{{Every: time.Minute, Min: time.Minute, Max: time.Hour}}
	e.known.db.Offer([]seen.URL{{URL: "http://a.example/", State: seen.Known}}, nil)
	visit := func() {
		e.known.db.UpdateMeta("http://a.example/", seen.Meta{Fetched: now, Due: now.Add(time.Minute), Every: time.Minute})
		now = now.Add(time.Hour)
	}
	visit()
	if err := e.Checkpoints.checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	visit()
	for range 2 {
		if _, err := e.recrawls.requeue(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := e.frontier.Counts().URLs; n != 1 {
			t.Fatalf("%d URLs wait, want 1", n)
		}
	}
}
