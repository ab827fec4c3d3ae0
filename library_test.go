package kumo_test

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kumo"
)

// A testSite has pages by path, and records requests.
type testSite struct {
	*httptest.Server
	mu    sync.Mutex // guards asked
	asked []*http.Request
}

func serve(t *testing.T, pages map[string]string) *testSite {
	s := &testSite{}
	s.Server = httptest.NewServer(s.handler(pages))
	t.Cleanup(s.Close)
	return s
}

func (s *testSite) handler(pages map[string]string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked = append(s.asked, r)
		s.mu.Unlock()
		body, ok := pages[r.URL.RequestURI()]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", http.DetectContentType([]byte(body)))
		io.WriteString(w, body)
	})
}

// paths returns the requested paths, in order, without robots.txt.
func (s *testSite) paths() (all []string) {
	for _, r := range s.requests() {
		all = append(all, r.URL.RequestURI())
	}
	slices.Sort(all)
	return all
}

func (s *testSite) requests() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.asked), func(r *http.Request) bool { return r.URL.Path == "/robots.txt" })
}

func (s *testSite) wantAsked(t *testing.T, want ...string) {
	t.Helper()
	if got := s.paths(); !slices.Equal(got, want) {
		t.Errorf("asked for %q, want %q", got, want)
	}
}

func quick(opts ...kumo.Option) *kumo.Crawler { return kumo.New(append(opts, kumo.Delay(0))...) }

func mustRun(t *testing.T, c *kumo.Crawler, seeds ...string) {
	t.Helper()
	if err := c.Run(t.Context(), seeds...); err != nil {
		t.Fatal(err)
	}
}

func TestNothingFetched(t *testing.T) {
	t.Parallel()
	gone := serve(t, nil)
	gone.Close()
	closed := serve(t, map[string]string{"/robots.txt": "User-agent: *\nDisallow: /", "/": "<p>text"})
	var failed *kumo.Error
	err := quick(kumo.Tries(1)).Run(t.Context(), gone.URL)
	if !errors.Is(err, kumo.ErrNothing) || !errors.As(err, &failed) || failed.Kind != "refused" {
		t.Errorf("nobody listens: %v", err)
	}
	err = quick().Run(t.Context(), closed.URL)
	if !errors.Is(err, kumo.ErrNothing) || !strings.Contains(err.Error(), "excluded: robots: ") {
		t.Errorf("robots.txt forbids it: %v", err)
	}
	err = quick().Run(t.Context())
	if err == nil || strings.Contains(err.Error(), "--") || !strings.Contains(err.Error(), "no URL to begin with") {
		t.Errorf("without a seed: %v", err)
	}
	err = quick(kumo.Out(t.TempDir())).Run(t.Context())
	if err == nil || strings.Contains(err.Error(), "--") || !strings.Contains(err.Error(), "no URL to begin with") {
		t.Errorf("without a seed, in an empty folder: %v", err)
	}
	err = quick().Run(t.Context(), "http://me:secret@example.com/")
	if err == nil || strings.Contains(err.Error(), "--") || !strings.Contains(err.Error(), "kumo.BasicAuth") {
		t.Errorf("a password in a URL: %v", err)
	}
}

// The settings of a crawl's folder decide which URLs are excluded. A run with other settings is refused; a run without
// these settings uses the stored ones.
func TestSettingsLast(t *testing.T) {
	t.Parallel()
	s := serve(t, map[string]string{"/a/": `<a href="/a/1">1</a> <a href="/b">b</a> <a href="/a/x">x</a>`,
		"/a/1": `<a href="/a/2">2</a>`, "/a/2": "<p>2", "/b": "<p>b", "/a/x": "<p>x"})
	dir := filepath.Join(t.TempDir(), "crawl")
	out, not := kumo.Out(dir), kumo.Exclude(regexp.MustCompile("x$"))
	mustRun(t, quick(out, kumo.Scope("prefix"), not, kumo.Depth(1)), s.URL+"/a/")
	s.wantAsked(t, "/a/", "/a/1")
	for words, opt := range map[string]kumo.Option{
		`kumo.Scope: "prefix", not "host", and the setting cannot change`: kumo.Scope("host"),
		`kumo.Depth: "1", not "0", and the setting may only grow`:         kumo.Depth(0),
		`kumo.Exclude: "x$", not "y", and the setting`:                    kumo.Exclude(regexp.MustCompile("y")),
		`kumo.Include: "", not "y", and the setting`:                      kumo.Include(regexp.MustCompile("y")),
		`kumo.Canon: "none", not "index"`:                                 kumo.Canon("index"),
		`kumo.IgnoreRobots: "obey", not "ignore"`:                         kumo.IgnoreRobots(),
	} {
		want := strings.Replace(words, ": ", ": the crawl in "+dir+" was started with ", 1)
		if err := quick(out, opt).Run(t.Context(), s.URL+"/a/"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	mustRun(t, quick(out), s.URL+"/b", s.URL+"/a/")
	s.wantAsked(t, "/a/", "/a/1", "/b") // the scope contains the new seed, too
	mustRun(t, quick(out, kumo.Depth(2), kumo.Scope("prefix"), not))
	s.wantAsked(t, "/a/", "/a/1", "/a/2", "/b")
}

func TestOnRequest(t *testing.T) {
	t.Parallel()
	s := serve(t, map[string]string{"/": `<a href="/a">a</a> <a href="/b">b</a>`, "/a": "<p>a", "/b": "<p>b"})
	dir := filepath.Join(t.TempDir(), "crawl")
	c := quick(kumo.Out(dir), kumo.UserAgent("me"), kumo.Header("X-Always", "1"))
	c.OnRequest(func(r *kumo.Request) {
		if strings.HasSuffix(r.URL, "/b") && r.From == s.URL+"/" && r.Depth == 1 {
			r.Veto("not b")
		}
		if r.Header.Get("User-Agent") != "me" || r.Header.Get("X-Always") != "1" {
			t.Errorf("the fields that go with it: %v", r.Header)
		}
		r.Header.Del("X-Always")
		r.Header.Set("Referer", r.From)
		r.Header.Set("X-Api-Key", "hunter2")
		r.Header.Set("Cookie", "c=hunter2")
	})
	mustRun(t, c, s.URL)
	s.wantAsked(t, "/", "/a")
	for _, r := range s.requests() {
		if r.URL.Path == "/a" && r.Referer() != s.URL+"/" || r.Header["X-Always"] != nil || r.UserAgent() != "me" ||
			r.Header.Get("X-Api-Key") != "hunter2" || r.Header.Get("Cookie") != "c=hunter2" {
			t.Errorf("%s came with %v", r.URL, r.Header)
		}
	}
	wantSkipped(t, dir, "/b", "vetoed", "not b")
	if n := c.Stats(); n.Vetoed != 1 || n.Rules["vetoed"] != 1 || n.Pages != 2 {
		t.Errorf("%+v", n)
	}
	warcs, _ := filepath.Glob(filepath.Join(dir, "warc", "*.warc.gz"))
	for _, name := range warcs {
		if text := gunzipped(t, name); strings.Contains(text, "hunter2") || !strings.Contains(text, "X-Api-Key: REDACTED") {
			t.Errorf("%s has a secret, or has not that there was one", name)
		}
	}
	c = quick()
	c.OnRequest(func(r *kumo.Request) { r.Header.Set("Host", "b.test") })
	err := c.Run(t.Context(), s.URL)
	if err == nil || !strings.Contains(err.Error(), "OnRequest: ") || strings.Contains(err.Error(), "--") {
		t.Errorf("a field that cannot be sent: %v", err)
	}
}

func TestOnLink(t *testing.T) {
	t.Parallel()
	const home = `<a href="/print"><img src=i.png alt=A> <b>printed</b></a> <a href="/old?x=1" rel=next>o</a>
		<a href="/more">m</a>
		<a href="/away">away</a> <a href="/bad">bad</a><img src="/i.png">`
	for _, folder := range []bool{false, true} {
		s := serve(t, map[string]string{"/": home, "/old": `<a href="/fine">fine</a>`, "/more": "<p>more",
			"/more/2": "<p>2", "/fine": "<p>fine"})
		var opts []kumo.Option
		dir := filepath.Join(t.TempDir(), "crawl")
		if folder {
			opts = append(opts, kumo.Out(dir))
		}
		c := quick(opts...)
		var met sync.Map
		c.OnLink(func(l *kumo.Link) {
			met.Store(strings.TrimPrefix(l.URL, s.URL), fmt.Sprintf("%s %q %s", l.Element, l.Text, l.Rel))
			switch path := strings.TrimPrefix(l.URL, s.URL); path {
			case "/print":
				l.Veto("for printers")
			case "/old?x=1":
				l.URL = "old" // relative to the page
			case "/more":
				l.Add("/more/2")
			case "/away":
				l.URL = "http://elsewhere.test/" // out of scope: the rules still apply
			case "/bad":
				l.URL = "http://[bad"
			}
		})
		c.OnPage(func(p *kumo.Page) {
			if p.URL == s.URL+"/" && !slices.Contains(p.Links, s.URL+"/old?x=1") {
				t.Errorf("the page's own links: %v", p.Links)
			}
		})
		mustRun(t, c, s.URL)
		s.wantAsked(t, "/", "/fine", "/more", "/more/2", "/old")
		for path, want := range map[string]string{"/print": `a "A printed" `, "/old?x=1": `a "o" next`, "/i.png": `img "" `} {
			if got, _ := met.Load(path); got != want {
				t.Errorf("%s: %v, want %s", path, got, want)
			}
		}
		if n := c.Stats(); n.Vetoed != 1 || n.Rules["vetoed"] != 2 {
			t.Errorf("folder %v: %+v", folder, n)
		}
		if folder {
			wantSkipped(t, dir, "/print", "vetoed", "for printers")
			wantSkipped(t, dir, "/bad", "vetoed", "changed to an invalid URL")
		}
	}
}

// A veto applies to a link: if another link leads to the URL, it is fetched.
func TestAVetoIsOfALink(t *testing.T) {
	t.Parallel()
	s := serve(t, map[string]string{"/": `<a href="/a">a</a> <a href="/b">no</a>`, "/a": `<a href="/b">yes</a>`,
		"/b": "<p>b"})
	dir := filepath.Join(t.TempDir(), "crawl")
	c := quick(kumo.Out(dir))
	c.OnLink(func(l *kumo.Link) {
		if l.Text == "no" {
			l.Veto("")
		}
	})
	mustRun(t, c, s.URL)
	s.wantAsked(t, "/", "/a", "/b")
	if n := c.Stats(); n.Vetoed != 1 || n.Skipped != 0 {
		t.Errorf("%+v", n)
	}
}

func TestFindLinks(t *testing.T) {
	t.Parallel()
	s := serve(t, map[string]string{"/api/1": `{"next": "2"}`, "/api/2": `{"next": "/b"}`, "/b": "<p>b"})
	c := quick()
	c.FindLinks(func(p *kumo.Page) []string {
		var answer struct{ Next string }
		if json.Unmarshal(p.Body, &answer) != nil {
			return nil
		}
		return []string{answer.Next, "http://elsewhere.test/"}
	})
	mustRun(t, c, s.URL+"/api/1")
	s.wantAsked(t, "/api/1", "/api/2", "/b")
}

func TestPages(t *testing.T) {
	t.Parallel()
	pages := map[string]string{"/": `<a href="/1">1</a> <a href="/2">2</a> <a href="/3">3</a>`, "/1": "<p>1", "/2": "<p>2",
		"/3": "<p>3"}
	s := serve(t, pages)
	got := map[string]int{}
	for p, err := range quick().Pages(t.Context(), s.URL) {
		if err != nil {
			t.Fatal(err)
		}
		got[strings.TrimPrefix(p.URL, s.URL)]++
	}
	if want := map[string]int{"/": 1, "/1": 1, "/2": 1, "/3": 1}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}

	c := quick()
	for p, err := range c.Pages(t.Context(), s.URL) { // which stops the crawl
		if p == nil || err != nil {
			t.Error(p, err)
		}
		break
	}
	if n := c.Stats(); n.Pages == 0 || n.Took == 0 {
		t.Errorf("%+v", n)
	}
	var last error
	for p, err := range c.Pages(t.Context(), s.URL) {
		if p != nil || last != nil {
			t.Error("it runs a second time")
		}
		last = err
	}
	if last == nil {
		t.Error("a second range has no error")
	}

	var errs []error
	for p, err := range quick(kumo.Limit(2)).Pages(t.Context(), s.URL) {
		if p == nil {
			errs = append(errs, err)
		}
	}
	if len(errs) != 1 || !errors.Is(errs[0], kumo.ErrLimit) {
		t.Errorf("a limit: %v", errs)
	}

	gone := serve(t, nil)
	gone.Close()
	errs = nil
	for p, err := range quick(kumo.Tries(1)).Pages(t.Context(), gone.URL) {
		if p != nil {
			t.Error(p)
		}
		errs = append(errs, err)
	}
	var failed *kumo.Error
	if len(errs) != 2 || !errors.As(errs[0], &failed) || failed.Kind != "refused" || !errors.Is(errs[1], kumo.ErrNothing) {
		t.Errorf("nobody listens: %v", errs)
	}
}

// A loop's body that panics ends the crawl before the panic goes on.
func TestPagesEndWithAPanic(t *testing.T) {
	t.Parallel()
	s := serve(t, map[string]string{"/": "<p>text"})
	c := quick()
	func() {
		defer func() { _ = recover() }()
		for range c.Pages(t.Context(), s.URL) {
			panic("in the body")
		}
	}()
	if err := c.Run(t.Context(), s.URL); err == nil {
		t.Error("it runs a second time")
	}
	if n := c.Stats(); n.Pages != 1 {
		t.Errorf("%+v", n)
	}
}

// A shelf is a Store in memory that records which pages were synced.
type shelf struct {
	mu          sync.Mutex // guards the fields below
	put, synced []string
	fail        error
}

func (s *shelf) Put(p *kumo.Page) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put = append(s.put, p.URL+" "+string(p.Body))
	return nil
}

func (s *shelf) Sync() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.synced = slices.Clone(s.put)
	return s.fail
}

func TestKeep(t *testing.T) {
	t.Parallel()
	s := serve(t, map[string]string{"/": `<a href="/1">1</a> <a href="/gone">gone</a>`, "/1": "<p>1"})
	for _, opts := range [][]kumo.Option{nil, {kumo.Out(filepath.Join(t.TempDir(), "crawl"))}} {
		own := &shelf{}
		mustRun(t, quick(append(opts, kumo.Keep(own))...), s.URL)
		slices.Sort(own.synced)
		if len(own.synced) != 3 || own.synced[1] != s.URL+"/1 <p>1" || !strings.HasPrefix(own.synced[2], s.URL+"/gone 404") {
			t.Errorf("synced %q", own.synced)
		}
	}
	full := errors.New("the disk is full")
	if err := quick(kumo.Keep(&shelf{fail: full})).Run(t.Context(), s.URL); !errors.Is(err, full) {
		t.Errorf("a Store that cannot sync: %v", err)
	}
}

// The next run puts pages again that a Store has not synced.
func TestAStoreMissesNothing(t *testing.T) {
	t.Parallel()
	s := serve(t, map[string]string{"/": `<a href="/1">1</a> <a href="/2">2</a>`, "/1": "<p>1", "/2": "<p>2"})
	out := kumo.Out(filepath.Join(t.TempDir(), "crawl"))
	broken := &shelf{fail: errors.New("the disk is broken")}
	if err := quick(out, kumo.Keep(broken)).Run(t.Context(), s.URL); !errors.Is(err, broken.fail) {
		t.Fatal(err)
	}
	own := &shelf{}
	mustRun(t, quick(out, kumo.Keep(own)), s.URL)
	if len(own.synced) != 3 {
		t.Errorf("synced %q", own.synced)
	}
}

func TestStatsWhileItRuns(t *testing.T) {
	t.Parallel()
	s := serve(t, map[string]string{"/": `<a href="/1">1</a> <a href="/2">2</a>`, "/1": "<p>1", "/2": "<p>2"})
	c := quick()
	var during []kumo.Stats
	c.OnPage(func(*kumo.Page) { during = append(during, c.Stats()) }) // of one host, one after another
	if n := c.Stats(); n.Pages != 0 || n.Took != 0 {
		t.Errorf("before: %+v", n)
	}
	mustRun(t, c, s.URL)
	if len(during) != 3 || during[0].Pages != 1 || during[0].Known != 3 || during[0].Waiting == 0 ||
		during[0].Statuses[200] != 1 {
		t.Errorf("during: %+v", during)
	}
	if n := c.Stats(); n.Pages != 3 || n.Waiting != 0 || n.Links != 2 || n.Robots != 1 || n.Bytes == 0 || n.Took == 0 {
		t.Errorf("afterwards: %+v", n)
	}
}

// resolving resolves all names to one address.
type resolving struct{ addr netip.Addr }

func (r resolving) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{r.addr}, nil
}

func TestResolver(t *testing.T) {
	t.Parallel()
	s := serve(t, map[string]string{"/": "<p>text", "/linked": `<a href="//b.test/">b`})
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	r := kumo.Resolver(resolving{netip.MustParseAddr("127.0.0.1")})
	mustRun(t, quick(r), "http://a.test:"+port) // a seed's host may be at a private address
	if got := s.requests(); len(got) != 1 || got[0].Host != "a.test:"+port {
		t.Errorf("asked for %v", got)
	}
	c := quick(r, kumo.Scope("any")) // the hosts that it links to may not
	var failed *kumo.Error
	c.OnError(func(err *kumo.Error) { failed = err })
	mustRun(t, c, "http://a.test:"+port+"/linked")
	if failed == nil || failed.Kind != "private" || !strings.Contains(failed.Error(), "kumo.AllowPrivate") {
		t.Errorf("a private address: %v", failed)
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	s := &testSite{}
	s.Server = httptest.NewTLSServer(s.handler(map[string]string{"/": "<p>text"}))
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	mustRun(t, quick(kumo.TLS(&tls.Config{RootCAs: roots})), s.URL)
	var failed *kumo.Error
	if err := quick(kumo.Tries(1)).Run(t.Context(), s.URL); !errors.As(err, &failed) || failed.Kind != "tls" {
		t.Errorf("a certificate that nobody knows: %v", err)
	}
}

func TestProxy(t *testing.T) {
	t.Parallel()
	proxy := serve(t, map[string]string{"/": "<p>text"})
	mustRun(t, quick(kumo.Proxy(proxy.URL), kumo.AllowPrivate()), "http://a.test/")
	if got := proxy.requests(); len(got) != 1 || got[0].RequestURI != "http://a.test/" {
		t.Errorf("the proxy was asked for %v", got)
	}
}

func TestCookiesThatAreGiven(t *testing.T) {
	t.Parallel()
	s := serve(t, map[string]string{"/": "<p>text"})
	file := filepath.Join(t.TempDir(), "cookies.txt")
	if err := os.WriteFile(file, []byte("127.0.0.1\tFALSE\t/\tFALSE\t0\tfile\t1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	mustRun(t, quick(kumo.CookieFile(file), kumo.Cookies(s.URL, &http.Cookie{Name: "code", Value: "2"})), s.URL)
	if got := s.requests()[0]; !hasCookie(got, "file", "1") || !hasCookie(got, "code", "2") {
		t.Errorf("the cookies are %v", got.Cookies())
	}
}

func hasCookie(r *http.Request, name, value string) bool {
	k, err := r.Cookie(name)
	return err == nil && k.Value == value
}

func TestMaxBody(t *testing.T) {
	t.Parallel()
	s := serve(t, map[string]string{"/": "<p>" + strings.Repeat("long ", 1000)})
	c := quick(kumo.MaxBody(1000))
	c.OnPage(func(p *kumo.Page) {
		if len(p.Body) != 1000 || !p.Truncated {
			t.Errorf("%d bytes, truncated: %v", len(p.Body), p.Truncated)
		}
	})
	mustRun(t, c, s.URL)
}

// wantSkipped checks the one line of skipped.jsonl for a URL.
func wantSkipped(t *testing.T, dir, path, rule, why string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "skipped.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for line := range strings.Lines(string(data)) {
		var s struct{ URL, Rule, Why string }
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(s.URL, path) {
			found = append(found, s.Rule+": "+s.Why)
		}
	}
	if len(found) != 1 || !strings.HasPrefix(found[0], rule+": "+why) {
		t.Errorf("%s was left out: %q, want %s: %s", path, found, rule, why)
	}
}

func gunzipped(t *testing.T, name string) string {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if !strings.HasSuffix(name, ".gz") {
		data, _ := io.ReadAll(f)
		return string(data)
	}
	in, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestALongPageIsWhole: a page too long for the first read attempt is not truncated.
func TestALongPageIsWhole(t *testing.T) {
	long := strings.Repeat("x", 3<<20)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, long)
	}))
	defer s.Close()
	c := quick(kumo.Depth(0))
	c.OnPage(func(p *kumo.Page) {
		if len(p.Body) != len(long) || p.Truncated {
			t.Errorf("%d bytes of %d, truncated: %v", len(p.Body), len(long), p.Truncated)
		}
	})
	if err := c.Run(t.Context(), s.URL); err != nil {
		t.Fatal(err)
	}
}

// roundTripper is a transport with pages by URL.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestTransport crawls without a network: robots.txt, redirects, https and failures go through the transport.
func TestTransport(t *testing.T) {
	pages := map[string]string{
		"https://a.test/robots.txt": "User-agent: *\nDisallow: /secret",
		"https://a.test/":           `<a href=/one>1</a> <a href=/secret>2</a> <a href=/moved>3</a> <a href=/broken>4</a>`,
		"https://a.test/one":        "<title>One</title>",
		"https://a.test/end":        "<title>End</title>",
	}
	var mu sync.Mutex
	var asked []string
	rt := roundTripper(func(r *http.Request) (*http.Response, error) {
		url := r.URL.String()
		mu.Lock()
		asked = append(asked, url)
		mu.Unlock()
		w := httptest.NewRecorder()
		switch body, known := pages[url]; {
		case strings.HasSuffix(url, "/broken"):
			return nil, errors.New("no such thing")
		case strings.HasSuffix(url, "/moved"):
			http.Redirect(w, r, "/end", http.StatusFound)
		case !known:
			http.NotFound(w, r)
		default:
			w.Header().Set("Content-Type", "text/html")
			io.WriteString(w, body)
		}
		res := w.Result()
		res.ContentLength = -1 // its length is not known before
		return res, nil
	})
	c := kumo.New(kumo.Transport(rt), kumo.Delay(0), kumo.Tries(1))
	var got, failed []string
	c.OnPage(func(p *kumo.Page) { got = append(got, fmt.Sprint(p.URL, " ", p.Status, " ", p.Title)) })
	c.OnError(func(e *kumo.Error) { failed = append(failed, e.URL) })
	if err := c.Run(t.Context(), "https://a.test/"); err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	want := []string{"https://a.test/ 200 ", "https://a.test/end 200 End", "https://a.test/moved 302 ",
		"https://a.test/one 200 One"}
	if !slices.Equal(got, want) || !slices.Equal(failed, []string{"https://a.test/broken"}) {
		t.Errorf("pages %q, failed %q", got, failed)
	}
	if !slices.Contains(asked, "https://a.test/robots.txt") || slices.Contains(asked, "https://a.test/secret") {
		t.Errorf("requests: %q", asked)
	}
}

// TestCancelIsPrompt cancels a crawl whose server does not answer: Run returns within seconds.
func TestCancelIsPrompt(t *testing.T) {
	asked := make(chan struct{}, 100)
	rt := roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.URL.Path == "/robots.txt" {
			w := httptest.NewRecorder()
			http.NotFound(w, r)
			return w.Result(), nil
		}
		asked <- struct{}{}
		<-r.Context().Done()
		return nil, r.Context().Err()
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- kumo.New(kumo.Transport(rt)).Run(ctx, "https://a.test/") }()
	<-asked
	begin := time.Now()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the crawl ends with %v", err)
	}
	if took := time.Since(begin); took > 2*time.Second {
		t.Errorf("the end took %v", took)
	}
}
