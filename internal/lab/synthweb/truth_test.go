package synthweb

import (
	"testing"
	"time"
)

// webs returns the webs on which graph and server are compared. Their bursts and slow hosts are quick.
func webs(seed uint64) map[string]Config {
	messy := Messy(seed, 12, 600)
	messy.MedianSize, messy.LargeSize = 3000, 100_000
	messy.BurstEvery = 15
	messy.RetryAfter, messy.CrawlDelay, messy.Slow = time.Millisecond, time.Millisecond, 2*time.Millisecond
	odd := Clean(seed, 5, 300)
	odd.Odd, odd.MedianSize = 1000, 2000
	odd.Traits = map[Trait]int{Legacy: 1000}
	clean := Clean(seed, 4, 300)
	clean.MedianSize = 2000
	return map[string]Config{"clean": clean, "messy": messy, "odd": odd, "one page": {Seed: seed, Pages: 1}}
}

func TestTruthEqualsWhatACrawlerFinds(t *testing.T) {
	for name, cfg := range webs(7) {
		for _, embeds := range []bool{false, true} {
			t.Run(name, func(t *testing.T) { compare(t, New(cfg), TruthOptions{Embeds: embeds}) })
		}
	}
}

func compare(t *testing.T, w *Web, opts TruthOptions) {
	s := serve(t, w, ServeOptions{Truth: opts})
	found := walk(t, s, opts.Embeds).found
	truth := w.Truth(opts)
	for u := range truth.All(s.Port()) {
		if found[u] == 0 {
			t.Errorf("in the truth, not found: %s", u)
		}
	}
	for u, status := range found {
		if !truth.Has(u) {
			t.Errorf("found with status %d, not in the truth: %s", status, u)
		}
	}
	score := s.Score()
	if len(found) != truth.Len() || score.Covered != truth.Len() || !score.Perfect() {
		t.Errorf("found %d, truth %d, score:\n%s", len(found), truth.Len(), score)
	}
	if score.MostInFlight.Value != 1 {
		t.Errorf("a client that fetches one by one had %d in flight", score.MostInFlight.Value)
	}
	t.Logf("%v\n%v %v", w, truth.Counts(), score)
}

func serve(t testing.TB, w *Web, opts ServeOptions) *Server {
	t.Helper()
	s, err := Serve(t.Context(), w, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestTruthWithinOneHost(t *testing.T) {
	w := New(Messy(9, 6, 300))
	truth := w.Truth(TruthOptions{Seeds: []string{"http://" + w.Host(2) + ":8080/"},
		Within: func(host string) bool { return host == w.Host(2) }})
	if got := truth.Counts()["page"]; got != w.hosts[2].pages {
		t.Errorf("%d of %d pages", got, w.hosts[2].pages)
	}
	for u := range truth.All(80) {
		if r, ok := w.refOf(u); !ok || r.Host != 2 {
			t.Errorf("%s is on another host", u)
		}
	}
	all, bold := w.Truth(TruthOptions{}), w.Truth(TruthOptions{IgnoreRobots: true})
	if all.Has(w.URL(Ref{Host: 2, Kind: Ghost}, 80)) || bold.Len() <= all.Len() ||
		bold.Counts()["private"] <= all.Counts()["private"] {
		t.Errorf("%v without robots.txt, %v with it", bold.Counts(), all.Counts())
	}
}
