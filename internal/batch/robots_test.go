package batch_test

import (
	"fmt"
	"net/http"
	"testing"

	"kumo/internal/batch"
)

// All requests and answers for a robots.txt are recorded, including redirects, for WARC files.
func TestTheExchangesForRobotsTxtAreKept(t *testing.T) {
	const text = "User-agent: *\nDisallow: /private\n"
	s := newSite(t, map[string]http.HandlerFunc{"www.test/robots.txt": func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, text)
	}, "dead.test/robots.txt": hangUp})
	s.set("a.test/robots.txt", s.redirect("www.test/robots.txt"))
	s.set("a.test/", s.page("start"))
	c := s.collection("en", "a.test/", "b.test/", "dead.test/")
	for _, reducers := range []int{1, 3} {
		day := fmt.Sprintf("2026-11-2%d", reducers)
		s.setDay(day)
		p := s.pipeline(day, reducers, c)
		p.Fetching.Tries = 1
		s.run(t, p)
		names, err := batch.ListFiles(t.Context(), s.place, batch.RobotsFolder+"/"+day)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, name := range names {
			for r, err := range batch.ReadFile(t.Context(), s.place, name) {
				if err != nil {
					t.Fatal(err)
				}
				rules, err := batch.ReadRobotsRecord(r.Key, r.Value)
				if err != nil {
					t.Fatal(err)
				}
				x := &rules.Exchange
				got[rules.Origin+" "+x.URL] = fmt.Sprint(x.Status, " ", string(x.Raw[x.HeadLen:]), len(x.Request) > 0)
			}
		}
		origin := func(host string) string { u := s.url(host + "/"); return u[:len(u)-1] }
		for key, want := range map[string]string{
			origin("a.test") + " " + s.url("a.test/robots.txt"): fmt.Sprintf("302 <a href=%q>Found</a>.\n\ntrue",
				s.url("www.test/robots.txt")),
			origin("a.test") + " " + s.url("www.test/robots.txt"): "200 " + text + "true",
			origin("b.test") + " " + s.url("b.test/robots.txt"):   "404 404 page not found\ntrue",
			origin("dead.test") + " ":                             "0 false",
		} {
			if got[key] != want {
				t.Errorf("%d reducers: %s: %q, not %q", reducers, key, got[key], want)
			}
		}
	}
}
