package links

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/base/page"
	"kumo/internal/content/fetch"
)

// elsewhere is an external site that records requests.
func elsewhere(t *testing.T, pages map[string]http.HandlerFunc) (url string, asked func() []string) {
	var mu sync.Mutex
	var all []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		all = append(all, r.Method+" "+r.URL.Path)
		mu.Unlock()
		if h := pages[r.URL.Path]; h != nil {
			h(w, r)
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL, func() []string {
		mu.Lock()
		defer mu.Unlock()
		defer func() { all = nil }()
		return slices.Clone(all)
	}
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func to(url string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, url, http.StatusFound) }
}

func checker() Checker {
	return Checker{Fetch: fetch.Config{AllowPrivate: true}, Agent: "kumo", Robots: true, MaxURLs: 100, Concurrency: 2}
}

func TestCheckExternal(t *testing.T) {
	onlyGet := func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			w.WriteHeader(http.StatusMethodNotAllowed)
		}
	}
	site, asked := elsewhere(t, map[string]http.HandlerFunc{
		"/robots.txt": func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("User-agent: *\nDisallow: /private")) },
		"/fine":       status(200), "/get": onlyGet, "/moved": to("/gone"), "/round": to("/and"), "/and": to("/round"),
	})
	var out []page.Link
	for _, path := range []string{"/fine", "/get", "/moved", "/round", "/private", "/gone"} {
		out = append(out, page.Link{URL: site + path, Kind: page.Anchor})
	}
	c := crawl(t, visit(1, "", 200, out...))
	check := func(most int) (done CheckResult) {
		f, err := Open(t.Context(), Config{Dir: c.Dir})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		k := checker()
		k.MaxURLs = most
		if done, err = f.CheckExternal(t.Context(), k); err != nil {
			t.Fatal(err)
		}
		return done
	}
	if done := check(2); done != (CheckResult{2, 4}) {
		t.Errorf("at first %+v", done)
	}
	asked()
	if done := check(100); done != (CheckResult{4, 0}) {
		t.Errorf("then %+v", done)
	}
	all := asked()
	if slices.ContainsFunc(all, func(a string) bool { return strings.HasSuffix(a, "/private") }) ||
		slices.Contains(all, "HEAD /fine") || !slices.Contains(all, "HEAD /moved") {
		t.Errorf("asked %q", all)
	}
	if done := check(100); done != (CheckResult{}) || len(asked()) > 0 {
		t.Errorf("at last %+v", done)
	}
	got := found(t, c.Dir, broken)
	for i := range got {
		got[i] = strings.ReplaceAll(got[i], site, "")
	}
	want := []string{`/gone 404 / "link 5"`, `/moved 404 / "link 2" [/gone]`, `/round 0loop / "link 3" [/and /round]`}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	text, err := os.ReadFile(c.Path(ExternalName))
	if err != nil || strings.Count(string(text), "\n") != 6 {
		t.Errorf("%v\n%s", err, text)
	}
	for line := range strings.Lines(string(text)) {
		var one Check
		if err := json.Unmarshal([]byte(line), &one); err != nil || one.URL == site+"/private" && one.Error != "robots" {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// A host that asks for a pause gets no more requests, and the rest of its URLs is left for the next call.
func TestAHostThatIsBusyIsLeftAlone(t *testing.T) {
	site, _ := elsewhere(t, map[string]http.HandlerFunc{"/1": status(429), "/2": status(200)})
	c := crawl(t, visit(1, "", 200, page.Link{URL: site + "/1", Kind: page.Anchor},
		page.Link{URL: site + "/2", Kind: page.Anchor}))
	f, err := Open(t.Context(), Config{Dir: c.Dir})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if done, err := f.CheckExternal(t.Context(), checker()); done != (CheckResult{0, 2}) || err != nil {
		t.Errorf("%+v, %v", done, err)
	}
}

// Requests to a host are a delay apart, even from several goroutines.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &checkRun{Checker: Checker{Delay: time.Second}, next: map[string]time.Time{}}
		began := time.Now()
		for range 3 {
			if err := k.waitTurn(t.Context(), "a.test", time.Second); err != nil {
				t.Fatal(err)
			}
		}
		if err := k.waitTurn(t.Context(), "b.test", time.Second); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("three requests to a host and one to another took %v", took)
		}
	})
}
