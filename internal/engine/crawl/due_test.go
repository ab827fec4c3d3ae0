package crawl

import (
	"testing"
	"time"

	"kumo/internal/base/weburl"
	"kumo/internal/cluster/member"
	"kumo/internal/content/policy"
	"kumo/internal/state/seen"
)

// TestADueURLIsTakenOnce: a URL that is due both on disk and in memory is queued once. A due URL whose host has no
// known owner may become this node's, unless the host was handed over.
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
	elsewhere, owned := false, false
	e.recrawls.hosts.router = routerFunc(func(string) bool { return owned })
	e.recrawls.elsewhere = func(string) bool { return elsewhere }
	for _, elsewhere = range []bool{false, true} { // the host is another node's, or has no owner
		_, open, err := e.recrawls.requeue(t.Context(), e.cfg.Now())
		if err != nil || (open == 0) != elsewhere || e.frontier.Counts().URLs > 0 {
			t.Fatalf("elsewhere %v: %d URLs are left to find, %d wait; %v", elsewhere, open, e.frontier.Counts().URLs, err)
		}
	}
	owned = true
	e.recrawls.complete.Store(1)
	if !e.recrawls.isComplete() {
		t.Error("a scan found all, and the crawl is not complete")
	}
	e.recrawls.arrivals.counting(nil)(member.Transfer{}, nil)
	if e.recrawls.isComplete() {
		t.Error("a host has arrived since the scan, and the crawl is complete")
	}
	for range 2 {
		if _, _, err := e.recrawls.requeue(t.Context(), e.cfg.Now()); err != nil {
			t.Fatal(err)
		}
		if n := e.frontier.Counts().URLs; n != 1 {
			t.Fatalf("%d URLs wait, want 1", n)
		}
	}
	visit()
	elsewhere, owned = false, false
	for _, want := range []int{1, 0} {
		if _, open, err := e.recrawls.requeue(t.Context(), e.cfg.Now()); err != nil || open != want {
			t.Errorf("%d URLs are left to find, want %d; %v", open, want, err)
		}
		e.frontier.Remove("a.example") // handed over
	}
}
