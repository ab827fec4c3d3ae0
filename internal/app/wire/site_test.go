package wire

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kumo/internal/app/job"
	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/engine/crawl"
)

// A site has a few hosts on one server, distinguished by name: "host/path" → handler. It records requests.
type site struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string        // host/path, in order
	heads []*http.Request // the requests
}

func newSite(t *testing.T, pages map[string]http.HandlerFunc) *site {
	s := &site{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, _ := strings.Cut(r.Host, ":")
		s.mu.Lock()
		s.asked = append(s.asked, host+r.URL.RequestURI())
		s.heads = append(s.heads, r)
		s.mu.Unlock()
		if h := pages[host+r.URL.Path]; h != nil {
			h(w, r)
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// url puts the server's port into http://host/path.
func (s *site) url(hostAndPath string) string {
	host, path, _ := strings.Cut(hostAndPath, "/")
	return "http://" + host + s.port() + "/" + path
}

func (s *site) port() string { return s.URL[strings.LastIndexByte(s.URL, ':'):] }

// job returns a job that crawls the site from a seed, to which every name resolves.
func (s *site) job(t *testing.T, seed string) *job.Job {
	j := &job.Job{Dir: t.TempDir(), Name: "site", Seeds: []string{s.url(seed)}}
	j.Crawl.Depth = -1
	j.Fetch.Resolve = []string{"*:*:127.0.0.1"}
	j.Frontier.RetryWait = time.Millisecond
	j.Crawl.Patience, j.Crawl.OutageWait = time.Millisecond, time.Millisecond
	return j
}

// html responds with a page; PORT in it is replaced by the server's port.
func html(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		io.WriteString(w, withPort(body, r))
	}
}

func redirect(to string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, withPort(to, r), http.StatusFound) }
}

func withPort(s string, r *http.Request) string {
	_, port, _ := strings.Cut(r.Host, ":")
	return strings.ReplaceAll(s, "PORT", port)
}

func mustRun(t *testing.T, j *job.Job) {
	t.Helper()
	if err := run(t, t.Context(), j); err != nil {
		t.Fatal(err)
	}
}

func (s *site) wantAsked(t *testing.T, want ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	got := slices.DeleteFunc(slices.Clone(s.asked), func(a string) bool { return strings.HasSuffix(a, "/robots.txt") })
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("asked for\n%q, want\n%q", got, want)
	}
}

func TestASeedTakesItsRedirectsHostIntoScope(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]http.HandlerFunc{
		"a.test/":      redirect("http://b.test:PORT/"),
		"b.test/":      redirect("http://c.test:PORT/start"),
		"c.test/start": html(`<a href="/2">2</a> <a href="/away">away</a>`),
		"c.test/2":     html(`end`),
		"c.test/away":  redirect("http://d.test:PORT/"),
	})
	j := s.job(t, "a.test/")
	mustRun(t, j)
	s.wantAsked(t, "a.test/", "b.test/", "c.test/start", "c.test/2", "c.test/away")
	first := lines(t, j.Dir, "pages.jsonl")[0]
	if first["final"] != s.url("b.test/") || first["status"] != 302.0 {
		t.Errorf("the redirect's line: %v", first)
	}
	// The scope is part of the crawl, so it applies in the next run, too.
	j2 := *j
	mustRun(t, &j2)
	s.wantAsked(t, "a.test/", "b.test/", "c.test/start", "c.test/2", "c.test/away")
}

func TestRedirectsInARowAreBounded(t *testing.T) {
	t.Parallel()
	pages := map[string]http.HandlerFunc{}
	for i := range 30 {
		pages[fmt.Sprintf("a.test/%d", i)] = redirect(fmt.Sprintf("/%d", i+1))
	}
	s := newSite(t, pages)
	j := s.job(t, "a.test/0")
	mustRun(t, j)
	if n := len(lines(t, j.Dir, "pages.jsonl")); n != 21 {
		t.Errorf("%d redirects were followed in a row, want 20 and the first", n)
	}
	if last := lines(t, j.Dir, "skipped.jsonl"); len(last) != 1 || last[0]["rule"] != "redirects" {
		t.Errorf("skipped: %v", last)
	}
}

func TestSecretsStayWithTheSeedsHosts(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]http.HandlerFunc{
		"a.test/":   html(`<a href="/in">in</a> <a href="//b.test:PORT/">b</a>`),
		"a.test/in": html("in"),
	})
	j := s.job(t, "a.test/")
	j.Scope = weburl.ScopeAny
	j.Fetch.User, j.Fetch.Password = "me", "hunter2"
	j.Fetch.Header = http.Header{"X-Api-Key": {"sesame"}, "X-Plain": {"hello"}}
	mustRun(t, j)
	s.wantAsked(t, "a.test/", "a.test/in", "b.test/")
	for _, r := range s.heads {
		_, _, auth := r.BasicAuth()
		secret := auth && r.Header.Get("X-Api-Key") == "sesame"
		if want := strings.HasPrefix(r.Host, "a.test"); secret != want || r.Header.Get("X-Plain") != "hello" {
			t.Errorf("%s%s: secrets sent %v, want %v", r.Host, r.URL, secret, want)
		}
	}
	everyByte(t, j.Dir, func(name string, data []byte) {
		if m := regexp.MustCompile(`hunter2|sesame|bWU6aHVudGVyMg`).Find(data); m != nil {
			t.Errorf("%s holds the secret %q", name, m)
		}
	})
}

// everyByte calls f with every file of a crawl, uncompressed.
func everyByte(t *testing.T, dir string, f func(name string, data []byte)) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		defer file.Close()
		var r io.Reader = file
		if strings.HasSuffix(name, ".gz") {
			if r, err = gzip.NewReader(file); err != nil {
				return err
			}
		}
		data, err := io.ReadAll(r)
		f(name, data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestEmbedsAreFetchedOnlyWhenAskedFor(t *testing.T) {
	t.Parallel()
	pages := map[string]http.HandlerFunc{
		"a.test/":      html(`<img src=/i.png><a href=/ ping=/ping>home</a><script src=/s.js></script><a href=/i2.png>i2</a><img src=/i2.png>`),
		"a.test/i.png": html("i"), "a.test/i2.png": html("i2"), "a.test/s.js": html("s"),
	}
	s := newSite(t, pages)
	j := s.job(t, "a.test/")
	mustRun(t, j)
	s.wantAsked(t, "a.test/", "a.test/i2.png")

	s = newSite(t, pages)
	j = s.job(t, "a.test/")
	j.Crawl.Embeds, j.Crawl.Depth = true, 0
	mustRun(t, j)
	s.wantAsked(t, "a.test/", "a.test/i.png", "a.test/s.js", "a.test/i2.png")
}

func TestFilters(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]http.HandlerFunc{
		"a.test/": html(`<a href=/keep/1>1</a><a href=/keep/old/2>2</a><a href=/other>3</a><a href=http://b.test/>b</a>`),
	})
	j := s.job(t, "a.test/")
	j.Crawl.Include = []*regexp.Regexp{regexp.MustCompile(`/keep/`)}
	j.Crawl.Exclude = []*regexp.Regexp{regexp.MustCompile(`/old/`)}
	mustRun(t, j)
	s.wantAsked(t, "a.test/", "a.test/keep/1")
	rules := map[any]any{}
	for _, l := range lines(t, j.Dir, "skipped.jsonl") {
		rules[l["rule"]] = l["url"]
	}
	if rules["exclude"] != s.url("a.test/keep/old/2") || rules["include"] != s.url("a.test/other") || len(rules) != 2 {
		t.Errorf("skipped: %v", rules)
	}
}

func TestRobotsRedirectsAndAnswers(t *testing.T) {
	t.Parallel()
	deny := func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "User-agent: kumo\nDisallow: /no\n") }
	links := html(`<a href=/no>no</a><a href=/yes>yes</a>`)
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	for _, c := range []struct {
		say    string
		robots http.HandlerFunc
		want   []string
	}{
		{"rules", deny, []string{"a.test/", "a.test/yes"}},
		{"rules elsewhere on the host", redirect("/rules"), []string{"a.test/", "a.test/yes", "a.test/rules"}},
		{"rules on another host", redirect("http://b.test:PORT/rules"), []string{"a.test/", "a.test/yes", "b.test/rules"}},
		{"rules on a host that does not answer", redirect("http://b.test:1/rules"), nil},
		{"a redirect to nowhere", redirect("mailto:me"), []string{"a.test/", "a.test/yes", "a.test/no"}},
		{"none", status(404), []string{"a.test/", "a.test/yes", "a.test/no"}},
		{"forbidden", status(403), []string{"a.test/", "a.test/yes", "a.test/no"}},
		{"broken", status(500), nil},
	} {
		s := newSite(t, map[string]http.HandlerFunc{
			"a.test/robots.txt": c.robots, "a.test/rules": deny, "b.test/rules": deny,
			"a.test/": links, "a.test/yes": html("yes"), "a.test/no": html("no"),
		})
		j := s.job(t, "a.test/")
		t.Run(c.say, func(t *testing.T) {
			mustRun(t, j)
			s.wantAsked(t, c.want...)
		})
	}
}

func TestAHostThatAsksForPatienceGetsIt(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	asked := 0
	s := newSite(t, map[string]http.HandlerFunc{
		"a.test/": func(w http.ResponseWriter, _ *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			if asked++; asked <= 2 {
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			io.WriteString(w, "at last")
		},
	})
	j := s.job(t, "a.test/")
	var slowed []time.Duration
	j.Listener = crawl.Listener{Slowed: func(_ string, _ int, ask, _ time.Duration) { slowed = append(slowed, ask) }}
	start := time.Now()
	mustRun(t, j)
	if took := time.Since(start); took < 2*time.Second || len(slowed) != 2 || slowed[0] != time.Second {
		t.Errorf("took %v, slowed %v", took, slowed)
	}
	if l := lines(t, j.Dir, "pages.jsonl"); len(l) != 1 || l[0]["status"] != 200.0 {
		t.Errorf("pages: %v", l)
	}
}

// A host that requests a delay of years is left alone for as long as the crawl allows, and the user is informed of
// both; also for a robots.txt, and for a URL that is not retried.
func TestAHostThatAsksForYearsIsLeftAloneForAWhile(t *testing.T) {
	busy := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "1000000000")
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	s := newSite(t, map[string]http.HandlerFunc{"a.test/": busy, "b.test/robots.txt": busy, "b.test/": html("never seen")})
	j := s.job(t, "a.test/")
	j.Seeds = append(j.Seeds, s.url("b.test/"))
	j.Crawl.Tries, j.Frontier.MaxWait = 1, 20*time.Millisecond
	var mu sync.Mutex
	told := map[string]int{}
	j.Listener = crawl.Listener{Slowed: func(host string, status int, ask, wait time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		told[strings.TrimSuffix(host, s.port())]++
		if ask != 1e9*time.Second || wait != 20*time.Millisecond || status != http.StatusServiceUnavailable {
			t.Errorf("%s, %d: it asks for %v, and waits for %v", host, status, ask, wait)
		}
	}}
	mustRun(t, j)
	if told["a.test"] != 1 || told["b.test"] == 0 {
		t.Errorf("told of %v", told)
	}
}

func TestPrivateAddressesNeedASeedThatNamesThem(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]http.HandlerFunc{"127.0.0.1/": html(`<a href="http://127.0.0.1:1/">other port</a>`)})
	j := s.job(t, "127.0.0.1/")
	j.Fetch.Resolve, j.Scope = nil, weburl.ScopeAny
	mustRun(t, j)
	data, err := os.ReadFile(filepath.Join(j.Dir, "report.json"))
	if err != nil || !strings.Contains(string(data), `"hosts_given_up": 0`) {
		t.Errorf("what the crawl's own rule forbids is no fault of a host's: %s %v", data, err)
	}
	s.wantAsked(t, "127.0.0.1/")
	skipped := lines(t, j.Dir, "skipped.jsonl")
	if len(skipped) != 1 || !strings.Contains(fmt.Sprint(skipped[0]["why"]), string(page.Private)) {
		t.Errorf("skipped: %v", skipped)
	}
}
