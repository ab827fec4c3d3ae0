package batch

import (
	"errors"
	"strings"
	"testing"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/content/robots"
	"kumo/internal/engine/visit"
	"kumo/internal/state/frontier"
)

// TestWishesAreClaimedOnce adds InURLs of a URL: the first makes the URL new, and claim returns all.
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

// TestAFullTaskWaits checks that waitForRoom blocks until a URL is claimed or stop is called.
func TestAFullTaskWaits(t *testing.T) {
	for _, stops := range []bool{false, true} {
		p := newPending()
		p.add("http://a.example/", []InURL{{}})
		p.urls = maxPending
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

// TestAHostKeepsItsLongestInterval checks that a host uses the longest interval of its URLs' collections.
func TestAHostKeepsItsLongestInterval(t *testing.T) {
	u, err := weburl.Parse("http://a.example/")
	if err != nil {
		t.Fatal(err)
	}
	f := newTestFrontier(t)
	cache := robots.NewCache(robots.Config{Agent: "test"})
	t.Cleanup(func() { _ = cache.Close() })
	hs := &hosts{frontier: f, rules: cache, intervals: map[string]time.Duration{}}
	for i, interval := range []time.Duration{time.Minute, time.Second, 2 * time.Minute} {
		hs.push(u, item.Item{URL: u.String() + strings.Repeat("b", i)}, interval)
	}
	if got := hs.interval(u.Host()); got != 2*time.Minute || hs.interval("b.example") != 0 {
		t.Errorf("the host's interval is %v", got)
	}
	if h, _ := f.Host(u.Host()); h.Delay != 2*time.Minute || h.Pending != 3 {
		t.Errorf("the frontier has %+v", h)
	}
}

// TestAnOriginIsAbandonedAfterFailures in a row.
func TestAnOriginIsAbandonedAfterFailures(t *testing.T) {
	const origin = "http://a.example"
	now := time.Now()
	c := &crawler{origins: visit.NewOrigins(originLimits, func() time.Time { return now })}
	record := func(j visit.Verdict) bool {
		now = now.Add(time.Second)
		return c.judgeOrigin(origin, &frontier.Visit{Started: now}, &j)
	}
	failed := visit.Verdict{Outcome: frontier.Failed, Failure: page.Unreachable, Detail: "no route"}
	for range originLimits.Refusals - 1 {
		record(failed)
	}
	record(visit.Verdict{Failure: page.Private, Outcome: frontier.NoRequest})
	record(visit.Verdict{Outcome: frontier.Answered})
	for i := range originLimits.Refusals - 1 {
		if record(failed) {
			t.Fatalf("it is abandoned after %d failures", i+1)
		}
	}
	if !record(failed) {
		t.Error("it is not abandoned")
	}
	if a, gone := c.origins.Abandoned(origin); !gone || !strings.Contains(a.Why, "no route") {
		t.Errorf("it is abandoned for %q", a.Why)
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
