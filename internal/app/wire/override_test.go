package wire

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"kumo/internal/app/job"
	"kumo/internal/base/page"
	"kumo/internal/content/policy"
)

func setOverrides(t *testing.T, j *job.Job, text string) {
	t.Helper()
	all, err := policy.ParseOverrides(text)
	if err == nil {
		err = j.SetOverrides(all)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestOverridesOfRequests overrides headers, user agent, tries, length and proxy for some hosts, including their
// robots.txt.
func TestOverridesOfRequests(t *testing.T) {
	t.Parallel()
	long := html(strings.Repeat("x", 10_000))
	s := newSite(t, map[string]http.HandlerFunc{
		"a.test/": html(`<a href="/long"></a><a href="http://b.test:PORT/"></a><a href="http://c.test:PORT/"></a>`),
		"b.test/": html(`<a href="/long"></a><a href="/bad"></a>`), "c.test/": html(`<a href="/bad"></a>`),
		"a.test/long": long, "b.test/long": long,
		"b.test/bad": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		"c.test/bad": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
	})
	var passed atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		passed.Add(1)
		s.Config.Handler.ServeHTTP(w, r)
	}))
	defer proxy.Close()
	j := s.job(t, "a.test/")
	j.Crawl.Tries = 2
	setOverrides(t, j, `
- {match: {host: 'b.test:*', url: long}, max-body: 1KB}
- {match: {host: 'b.test:*'}, user-agent: special, header: [X-Of: b], tries: 4, scope: any}
- {match: c.test, scope: any, proxy: "`+proxy.URL+`"}`)
	var cut []string
	j.Listener.Visited = func(r *page.Record) {
		if r.Response != nil && r.Response.Truncated != "" {
			cut = append(cut, r.URL)
		}
	}
	j.Frontier.Hosts = 1
	if err := run(t, t.Context(), j); err != nil {
		t.Fatal(err)
	}
	times := map[string]int{}
	for i, asked := range s.asked {
		times[asked]++
		agent, of := s.heads[i].UserAgent(), s.heads[i].Header.Get("X-Of")
		if isB := strings.HasPrefix(asked, "b.test/"); isB != (agent == "special") || isB != (of == "b") {
			t.Errorf("%s was asked for by %q of %q", asked, agent, of)
		}
	}
	for asked, want := range map[string]int{"b.test/bad": 4, "c.test/bad": 2, "b.test/robots.txt": 1, "a.test/long": 1} {
		if times[asked] != want {
			t.Errorf("%s was asked for %d times, want %d", asked, times[asked], want)
		}
	}
	if want := []string{s.url("b.test/long")}; !slices.Equal(cut, want) {
		t.Errorf("cut were %v, want %v", cut, want)
	}
	if n := int(passed.Load()); n != times["c.test/"]+times["c.test/robots.txt"]+times["c.test/bad"] || n == 0 {
		t.Errorf("%d requests went through the proxy of c.test, of %v", n, times)
	}
}
