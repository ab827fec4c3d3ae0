package visit

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/content/robots"
	"kumo/internal/state/frontier"
)

func newTestGate(t *testing.T, moot ...string) *Gate {
	t.Helper()
	f := frontier.New(frontier.Config{Hosts: 4, PerHost: 1, Session: 1, Delay: time.Millisecond, MaxDelay: time.Hour})
	f.KeepOpen(true)
	cache := robots.NewCache(robots.Config{Agent: "test"})
	t.Cleanup(func() { _ = cache.Close() })
	return NewGate(&Gate{Rules: cache, Frontier: f, Unavailable: func(origin string) bool { return slices.Contains(moot, origin) }})
}

func next(t *testing.T, g *Gate) (*frontier.Visit, weburl.URL) {
	t.Helper()
	v, err := g.Frontier.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	u, err := weburl.Parse(v.URL)
	if err != nil {
		t.Fatal(err)
	}
	return v, u
}

// TestRobotsAreRequestedOnce: an origin's robots.txt is requested once, before its URLs, which wait for the end of all
// redirects.
func TestRobotsAreRequestedOnce(t *testing.T) {
	const origin = "http://a.example"
	g := newTestGate(t)
	g.Frontier.Push("a.example", item.Item{URL: origin + "/x"})
	g.Frontier.Push("a.example", item.Item{URL: origin + "/y"})
	v, _ := next(t, g)
	g.Await(v, origin, item.Item{Seed: "s"})
	if parked := g.Frontier.Parked("a.example"); !slices.Equal(parked, []string{origin}) {
		t.Errorf("parked for %v", parked)
	}
	if known, first := g.Request(origin); known || first {
		t.Error("it is requested twice")
	}
	v, u := next(t, g)
	if v.URL != origin+RobotsPath || v.Robots != origin || v.Seed != "s" {
		t.Fatalf("%+v comes first", v.Item)
	}
	moved := &page.Response{Status: 302, Header: http.Header{"Location": {"http://b.example/r"}}}
	it, to := g.HandleAnswer(v, u, moved.Status, moved)
	g.Frontier.Done(v, frontier.Result{})
	if to.Host() != "b.example" || it.Robots != origin || it.Redirects != 1 || it.From != v.URL {
		t.Fatalf("it moves to %s: %+v", to, it)
	}
	g.Frontier.Push(to.Host(), it)
	v, u = next(t, g)
	if _, to = g.HandleAnswer(v, u, 200, &page.Response{Body: []byte("User-agent: *\nCrawl-delay: 7\n")}); !to.IsZero() {
		t.Errorf("it moves on to %s", to)
	}
	g.Frontier.Done(v, frontier.Result{})
	if h, _ := g.Frontier.Host("a.example"); h.Delay != 7*time.Second || len(g.Frontier.Parked("a.example")) > 0 {
		t.Errorf("the host's delay is %v, parked %v", h.Delay, h.Parked)
	}
	if known, _ := g.Request(origin); !known {
		t.Error("the rules are not known")
	}
}

// TestMootRobotsAreNotRequested: a robots.txt that is unavailable parks no host; a redirect without a valid target is
// an answer.
func TestMootRobotsAreNotRequested(t *testing.T) {
	const origin = "http://a.example"
	g := newTestGate(t, origin)
	g.Frontier.Push("a.example", item.Item{URL: origin + "/x"})
	v, _ := next(t, g)
	g.Await(v, origin, item.Item{})
	if n := g.Frontier.Counts().URLs; n != 1 || len(g.Frontier.Parked("a.example")) > 0 {
		t.Errorf("%d URLs, parked for %v", n, g.Frontier.Parked("a.example"))
	}
	g.Frontier.Push("b.example", item.Item{URL: "http://b.example/robots.txt", Robots: "http://b.example"})
	for v.Robots == "" {
		g.Frontier.Done(v, frontier.Result{})
		v, _ = next(t, g)
	}
	v.Redirects = robots.MaxRedirects
	u, err := weburl.Parse(v.URL)
	if err != nil {
		t.Fatal(err)
	}
	moved := &page.Response{Status: 301, Header: http.Header{"Location": {"/on"}}}
	if _, to := g.HandleAnswer(v, u, moved.Status, moved); !to.IsZero() {
		t.Errorf("it follows to %s", to)
	}
	if rules, known := g.Rules.Get("http://b.example"); !known {
		t.Error("no rules")
	} else if ok, _ := rules.Allowed("/"); !ok {
		t.Error("what leads nowhere forbids")
	}
}
