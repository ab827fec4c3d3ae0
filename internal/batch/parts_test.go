package batch

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/content/robots"
	"kumo/internal/state/frontier"
)

// TestWishesAreClaimedOnce adds wishes for URLs: the first makes a URL new, and a claim takes all.
func TestWishesAreClaimedOnce(t *testing.T) {
	p := newPending()
	for i, want := range []bool{true, false} {
		if got := p.add("http://a.example/", []InURL{{Depth: i}}); got != want {
			t.Errorf("wish %d makes the URL new: %v", i, got)
		}
	}
	if got := p.claim("http://a.example/"); len(got) != 2 || p.urls != 0 {
		t.Errorf("%v are claimed, %d URLs are left", got, p.urls)
	}
	if p.claim("http://a.example/") != nil || !p.add("http://a.example/", []InURL{{}}) {
		t.Error("a claimed URL still has wishes")
	}
}

// TestAFullTaskWaits until a URL is claimed, or it is stopped.
func TestAFullTaskWaits(t *testing.T) {
	for _, stops := range []bool{false, true} {
		p := newPending()
		p.add("http://a.example/", []InURL{{}})
		p.urls = mostPending
		room := make(chan bool)
		go func() { room <- p.waitForRoom() }()
		select {
		case <-room:
			t.Fatal("there is room in a full task")
		case <-time.After(20 * time.Millisecond):
		}
		if stops {
			p.stop()
		} else {
			p.claim("http://a.example/")
		}
		if <-room == stops {
			t.Errorf("stopped %v, and it goes on: %v", stops, !stops)
		}
	}
}

func newTestFrontier(t *testing.T) *frontier.Frontier {
	t.Helper()
	f := frontier.New(frontier.Config{Hosts: 4, PerHost: 1, Session: 1, Delay: time.Millisecond, MaxDelay: time.Hour})
	f.KeepOpen(true)
	return f
}

// TestAHostIsAbandonedAfterFailures in a row.
func TestAHostIsAbandonedAfterFailures(t *testing.T) {
	u, err := weburl.Parse("http://a.example/")
	if err != nil {
		t.Fatal(err)
	}
	hs := &hosts{frontier: newTestFrontier(t), delay: func(string) time.Duration { return 0 },
		states: map[string]*hostState{}}
	hs.push(u, item.Item{URL: u.String()}, time.Minute)
	hs.push(u, item.Item{URL: u.String() + "b"}, time.Second)
	if got := hs.interval(u.Host()); got != time.Minute || hs.interval("b.example") != 0 {
		t.Errorf("the host's interval is %v, not the longest that is wanted", got)
	}
	failed := verdict{outcome: frontier.Failed, failure: page.Unreachable, detail: "no route"}
	for range hostFailures - 1 {
		hs.record(u.Host(), &failed)
	}
	hs.record(u.Host(), &verdict{failure: page.Private, outcome: frontier.NoRequest})
	hs.record(u.Host(), &verdict{outcome: frontier.Answered})
	for i := range hostFailures {
		if why := hs.abandoned(u.Host()); why != "" {
			t.Fatalf("it is abandoned after %d failures: %s", i, why)
		}
		hs.record(u.Host(), &failed)
	}
	if why := hs.abandoned(u.Host()); !strings.Contains(why, "no route") || hs.abandoned("b.example") != "" {
		t.Errorf("it is abandoned for %q", why)
	}
}

// TestRobotsAreRequestedOnce for an origin, and not at all if the next round requests them.
func TestRobotsAreRequestedOnce(t *testing.T) {
	f := newTestFrontier(t)
	cache := robots.NewCache(robots.Config{Agent: "test", ErrorTTL: time.Hour, MaxBytes: 1 << 20, Now: time.Now})
	t.Cleanup(func() { _ = cache.Close() })
	r := newOriginRules(cache, f)
	u, err := weburl.Parse("http://a.example/page")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if !r.request(u) {
			t.Fatal("the robots.txt is not requested")
		}
	}
	if n := f.Counts().URLs; n != 1 || !slices.Equal(f.Parked(u.Host()), []string{u.Origin()}) {
		t.Errorf("%d requests; parked are %v", n, f.Parked(u.Host()))
	}
	r.answer(u.Origin(), 200, []byte("User-agent: *\nCrawl-delay: 7\n"))
	if !r.request(u) || f.Counts().URLs != 1 || r.delay(u.Origin()) != 7*time.Second {
		t.Errorf("a known robots.txt is requested again, or its delay is %v", r.delay(u.Origin()))
	}
	r.deferTo("http://b.example", "http://c.example/robots.txt")
	r.deferTo(u.Origin(), "http://c.example/robots.txt")
	r.dropDeferred()
	b, err := weburl.Parse("http://b.example/")
	if err != nil {
		t.Fatal(err)
	}
	if r.request(b) || !r.request(u) {
		t.Error("a deferred robots.txt is requested, or a known one is deferred")
	}
	if r.fail(b.Origin(), "refused"); r.failure(b.Origin()) != ": refused" || r.failure(u.Origin()) != "" {
		t.Errorf("it failed: %q", r.failure(b.Origin()))
	}
}

// TestOutputReturnsErrors of the runner that takes the records.
func TestOutputReturnsErrors(t *testing.T) {
	full := errors.New("full")
	o := &output{task: &Task{}, now: time.Now, emit: func([]byte, []byte) error { return full }}
	err := o.fail(&InURL{Collection: "de", URL: "http://a.example/"}, page.Unreachable, "no route")
	if !errors.Is(err, full) {
		t.Errorf("a record that is not taken: %v", err)
	}
}
