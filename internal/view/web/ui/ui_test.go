package ui

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"kumo/internal/app/inspect"
	"kumo/internal/app/job"
	"kumo/internal/app/lookup"
	"kumo/internal/app/session"
	"kumo/internal/app/wire"
	"kumo/internal/base/page"
	"kumo/internal/base/settings"
	"kumo/internal/base/vfs"
	"kumo/internal/base/weburl"
	"kumo/internal/lab/jobtest"
	"kumo/internal/lab/synthweb"
)

const (
	hostile = "<script>alert('title')</script>\u202etxt.exe\u2066\x1b]0;x\a\u200b\"'`"
	inURL   = "/%3Cscript%3Ealert(1)%3C/script%3E?a=%22onload%3D%22x&b=javascript:alert(1)"
)

// A bed is a server with a completed crawl of a generated web, and a running one of hostile pages.
type bed struct {
	*httptest.Server
	ui   *Server
	site *httptest.Server
	log  *lockedLog
	stop func() error

	hold    chan struct{} // closed when held requests may be answered
	release func()
}

type lockedLog struct {
	mu   sync.Mutex // guards text
	text strings.Builder
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func newSite(hold <-chan struct{}) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Hostile", `"><script>alert('field')</script>`)
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		switch {
		case r.URL.Path == "/robots.txt":
			_, _ = io.WriteString(w, "User-agent: *\nDisallow: /<script>alert('robots')</script>\nCrawl-delay: 0\n")
		case r.URL.Path == "/held":
			<-hold
		case r.URL.Path == "/":
			_, _ = io.WriteString(w, `<title>`+strings.ReplaceAll(hostile, "<", "&lt;")+`</title><a href="`+inURL+
				`">one</a> <a href=/moved>m</a>
				<a href="/late" rel="<script>alert('rel')</script>">`+strings.ReplaceAll(hostile, "<", "&lt;")+
				`</a> <a href=/style.css>s</a> <a href=/held>held</a><p>`+
				strings.Repeat("Words of a text "+strings.ReplaceAll(hostile, "<", "&lt;")+" go on. ", 30))
		case r.URL.Path == "/moved":
			http.Redirect(w, r, "/late", http.StatusMovedPermanently)
		case r.URL.Path == "/style.css":
			w.Header().Set("Content-Type", "text/css")
			_, _ = io.WriteString(w, "@import 'http://far.example/x.css'; p { background: url(/pic.png) }")
		default:
			_, _ = io.WriteString(w, "<p>"+r.URL.Path)
		}
	}))
}

func newBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{log: &lockedLog{}, hold: make(chan struct{})}
	b.site, b.release = newSite(b.hold), sync.OnceFunc(func() { close(b.hold) })
	t.Cleanup(b.site.Close)
	s := jobtest.Serve(t, synthweb.Clean(1, 6, 60))
	done := jobtest.For(s, filepath.Join(t.TempDir(), "done"))
	b.run(t, done)()

	j := &job.Job{Dir: filepath.Join(t.TempDir(), "runs"), Name: "runs", Seeds: []string{b.site.URL + "/"},
		Scope: weburl.ScopeHost}
	j.Crawl.Depth, j.Fetch.AllowPrivate, j.Fetch.Timeout, j.Frontier.PerHost = -1, true, time.Minute, 4
	b.stop = b.run(t, j)
	view := func(j *job.Job) func(context.Context) (*inspect.View, error) {
		return func(ctx context.Context) (*inspect.View, error) {
			return wire.Inspect(ctx, j.Dir, func() (*job.Job, error) { job := *j; return &job, nil })
		}
	}
	b.ui = New(Config{Crawls: []Crawl{{Dir: done.Dir, Open: view(done)},
		{Dir: j.Dir, Open: func(ctx context.Context) (*inspect.View, error) {
			return session.Dial(ctx, j.Dir)
		}}},
		Log: slog.New(slog.NewTextHandler(b.log, nil))})
	b.Server = httptest.NewServer(b.ui)
	t.Cleanup(b.ui.Close)
	t.Cleanup(b.Close)
	return b
}

// run starts a crawl. The returned function waits for its end.
func (b *bed) run(t *testing.T, j *job.Job) func() error {
	c, err := wire.Open(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, err := c.Run(ctx)
		ended <- errors.Join(err, c.Close())
	}()
	wait := sync.OnceValue(func() error { return <-ended })
	t.Cleanup(func() { stop(); b.release(); _ = wait() })
	return wait
}

func (b *bed) ask(t *testing.T, method, path string, form url.Values, fields ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, b.URL+path, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(fields); i += 2 {
		if r.Header.Set(fields[i], fields[i+1]); fields[i] == "Host" {
			r.Host = fields[i+1]
		}
	}
	resp, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(text)
}

// until repeats a request until the answer contains a text.
func (b *bed) until(t *testing.T, path, want string) string {
	t.Helper()
	for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		_, text := b.ask(t, http.MethodGet, path, nil)
		if strings.Contains(text, want) {
			return text
		}
		if time.Since(begin) > 20*time.Second {
			t.Fatalf("%s has no %q in 20 s, but\n%s", path, want, text)
		}
	}
}

func (b *bed) records(t *testing.T, crawl string) (all []lookup.Record) {
	t.Helper()
	_, text := b.ask(t, http.MethodGet, "/api/v1/crawls/"+crawl+"/records?limit=500", nil)
	var p recordPage
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	return p.Records
}

// Every endpoint conforms to its description, for a running crawl and a completed one, and reports invalid requests in
// the described form. Every view is rendered, and contains no markup of strangers.
func TestAllRoutes(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.until(t, "/api/v1/crawls/runs/records", "/late")
	c := newChecker(t)
	host := strings.TrimPrefix(b.site.URL, "http://")
	_, text := b.ask(t, http.MethodGet, "/api/v1/crawls/done/hosts", nil)
	var hosts hostPage
	if err := json.Unmarshal([]byte(text), &hosts); err != nil || len(hosts.Hosts) < 6 {
		t.Fatal(err, text)
	}
	asked, failed := map[string]int{}, 0
	for _, crawl := range []string{"done", "runs", "none"} {
		records := b.records(t, map[string]string{"done": "done", "runs": "runs", "none": "done"}[crawl])
		inCrawl := map[string]string{"done": hosts.Hosts[2].Key, "runs": host, "none": host}[crawl]
		for _, e := range ofCrawls() {
			for _, q := range []string{"", "?limit=2", "?limit=0", "?limit=x", "?prefix=" + inCrawl[:3],
				"?prefix=http://h0001&after=http://h0002.synth.test/",
				"?after=" + inCrawl, "?by=waiting", "?by=name", "?url=" + url.QueryEscape(b.site.URL+inURL), "?url=" +
					url.QueryEscape(records[0].URL),
				"?url=" + url.QueryEscape(records[len(records)/2].URL), "?url=nothing", "?url=", "?url=%00", "?status=2xx&limit=3",
				"?status=abc",
				"?type=text/&prefix=h", "?day=2026-11", "?day=x", "?lang=en", "?cursor=100", "?cursor=-1", "?cursor=99999999999",
				"?limit=2&limit=3", "?" + strings.Repeat("x", 20_000)} {
				ids := []string{strconv.FormatInt(records[0].ID, 10)}
				if strings.Contains(e.path, "{id}") && q == "" {
					ids = append(ids, "0", "1", "-1", "x", "99999999999999999999", strconv.FormatInt(records[len(records)-1].ID, 10))
				}
				for _, id := range ids {
					path := strings.NewReplacer("{crawl}", crawl, "{host}", url.PathEscape(inCrawl), "{id}", id).Replace(e.path)
					resp, text := b.ask(t, http.MethodGet, "/api/v1"+path+q, nil)
					if err := c.check("/api/v1"+e.path, resp.StatusCode, resp.Header.Get("Content-Type"), []byte(text)); err != nil {
						t.Errorf("%s%s: %d: %v\n%.300s", path, cut(q, 60), resp.StatusCode, err, text)
					}
					if resp.StatusCode == http.StatusOK {
						asked[crawl+" "+e.name]++
					} else {
						failed++
					}
					if resp.StatusCode >= 500 {
						t.Errorf("%s%s: %s", path, cut(q, 60), text)
					}
				}
			}
		}
	}
	for _, e := range ofCrawls() {
		if asked["done "+e.name] == 0 || asked["runs "+e.name] == 0 || e.path != "/crawls" && asked["none "+e.name] > 0 {
			t.Errorf("%s: %v", e.name, asked)
		}
	}
	if failed < 100 {
		t.Errorf("%d questions were refused", failed)
	}
	b.views(t, host)
}

// ofCrawls returns the endpoints for crawls; TestCluster tests those for clusters.
func ofCrawls() (all []endpoint) {
	for _, e := range endpointsOf(nil, &crawlSet{}, &batchSet{}, nil) {
		if strings.HasPrefix(e.path, "/crawls") && e.name != "cluster" {
			all = append(all, e)
		}
	}
	return all
}

func (b *bed) views(t *testing.T, host string) {
	for _, crawl := range []string{"done", "runs"} {
		paths := []string{"", "?span=all", "?done=add&n=<script>&of=2", "?done=<script>", "/curves", "/hosts",
			"/hosts?by=name", "/hosts?prefix=" + url.QueryEscape(hostile), "/hosts?prefix=" + host,
			"/urls", "/urls?prefix=http", "/excluded", "/excluded?rule=" + url.QueryEscape(hostile), "/pages", "/pages?status=2xx&type=text/", "/pages?prefix=" + url.QueryEscape(hostile),
			"/act/pause", "/act/resume", "/act/stop", "/act/add", "/act/limit", "/act/delay?host=a.example:80"}
		for _, r := range b.records(t, crawl) {
			paths = append(paths, "/urls?url="+url.QueryEscape(r.URL))
			for _, show := range []string{"", "?show=text", "?show=links", "?show=page"} {
				paths = append(paths, fmt.Sprintf("/pages/%d%s", r.ID, show))
			}
			if len(paths) > 80 {
				break
			}
		}
		if crawl == "runs" {
			paths = append(paths, "/hosts/"+url.PathEscape(host), "/hosts/"+url.PathEscape(host+"#1"))
		}
		for _, path := range append(paths, "/nowhere", "/pages/x", "/urls?url=<script>", "/pages?status=<script>",
			"/act/<script>", "/act/delay?host="+url.QueryEscape(hostile)) {
			resp, text := b.ask(t, http.MethodGet, "/crawls/"+crawl+strings.ReplaceAll(path, "<script>", "%3Cscript%3E"), nil)
			if want := !slices.Contains(paths, path); want != (resp.StatusCode >= 400) || resp.StatusCode >= 500 {
				t.Errorf("%s%s: %d\n%s", crawl, path, resp.StatusCode, text)
			}
			wantTame(t, crawl+path, resp, text)
			if strings.Contains(text, ">Cluster</a>") {
				t.Errorf("%s%s leads to a cluster that there is not", crawl, path)
			}
		}
	}
	_, wrong := b.ask(t, http.MethodGet, "/crawls/runs/urls?url=nothing", nil)
	_, secret := b.ask(t, http.MethodGet, "/archived/x/runs", nil) // which needs no token
	if !strings.Contains(wrong, `href="/crawls/runs/pages"`) || strings.Contains(secret, "runs") {
		t.Errorf("what is wrong is said in\n%s, and without a key in\n%s", wrong, secret)
	}
	for _, path := range []string{"/", "/crawls", "/static/style.css", "/static/script.js", "/nothing"} {
		resp, text := b.ask(t, http.MethodGet, path, nil)
		wantTame(t, path, resp, text)
	}
	if _, text := b.ask(t, http.MethodGet, "/crawls/runs/pages", nil); !strings.Contains(text,
		`<span class="hidden">U+202E</span>`) ||
		!strings.Contains(text, "&lt;script&gt;alert(&#39;title&#39;)&lt;/script&gt;") {
		t.Errorf("the title is not seen in\n%s", text)
	}
}

// wantTame checks security properties of every page of this server.
func wantTame(t *testing.T, path string, resp *http.Response, text string) {
	t.Helper()
	for name, want := range map[string]string{"Content-Security-Policy": csp, "Referrer-Policy": "same-origin",
		"X-Content-Type-Options": "nosniff",
		"X-Frame-Options":        "DENY"} {
		if got := resp.Header.Get(name); got != want {
			t.Errorf("%s: %s is %q", path, name, got)
		}
	}
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") {
		return
	}
	const own = `<script src="/static/script.js" defer></script>`
	if rest := strings.Replace(text, own, "", 1); strings.Contains(rest, "<script") ||
		strings.Contains(rest, "=\"javascript:") ||
		strings.Contains(rest, " style=") || strings.Contains(rest, "<style") || strings.Contains(rest, " onload=") {
		t.Errorf("%s has markup that is not its own:\n%s", path, text)
	}
	if i := strings.IndexFunc(text, func(r rune) bool { return hidden(r) && r != '\n' && r != '\t' }); i >= 0 {
		t.Errorf("%s has %q", path, text[i:min(i+20, len(text))])
	}
}

func TestPagesOfTheArchive(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.until(t, "/api/v1/crawls/runs/records", "/style.css")
	b.until(t, "/api/v1/crawls/runs/records", "/moved")
	c, archive := b.ui.crawls.byName["runs"], &archivedPages{crawls: b.ui.crawls, keys: b.ui.keys}
	local := &http.Request{RemoteAddr: "127.0.0.1:1"}
	of := func(path string) string { return archive.url(c, local, b.site.URL+path) }
	if resp, _ := b.ask(t, http.MethodGet, archive.url(c, &http.Request{RemoteAddr: "127.0.0.2:1"}, b.site.URL+"/"),
		nil); resp.StatusCode != http.StatusNotFound {
		t.Errorf("another's URL: %d", resp.StatusCode)
	}
	resp, text := b.ask(t, http.MethodGet, of("/"), nil, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Dest", "image")
	policy := resp.Header.Get("Content-Security-Policy")
	if !strings.HasPrefix(policy, "sandbox; default-src 'none'; script-src 'none';") ||
		strings.Contains(policy, "allow-") ||
		resp.Header.Get("Referrer-Policy") != "no-referrer" ||
		!strings.Contains(policy, "img-src "+b.URL+archive.path(c, local)+" data:") || resp.StatusCode != http.StatusOK {
		t.Errorf("%d, %s", resp.StatusCode, policy)
	}
	if want := `href="` + strings.ReplaceAll(of("/late"), "&", "&amp;") + `"`; !strings.Contains(text, want) &&
		!strings.Contains(text, of("/late")) {
		t.Errorf("no %s in\n%s", want, text)
	}
	if resp, _ := b.ask(t, http.MethodGet, of("/moved"), nil); resp.StatusCode != http.StatusFound ||
		resp.Header.Get("Location") != of("/late") {
		t.Errorf("a redirect: %d to %s", resp.StatusCode, resp.Header.Get("Location"))
	}
	if resp, text := b.ask(t, http.MethodGet, of("/style.css"), nil); resp.Header.Get("Content-Type") != "text/css" ||
		strings.Contains(text, "'http://far.example") || !strings.Contains(text, "/archived/") {
		t.Errorf("a style sheet: %s", text)
	}
	for _, path := range []string{archive.path(c, local) + "?url=" +
		url.QueryEscape("http://nowhere.example/<script>"), archive.path(c, local) + "?url=x",
		archive.path(c, local) + "?id=7",
		archive.path(c, local)} {
		if resp, text := b.ask(t, http.MethodGet, path, nil); resp.StatusCode != http.StatusNotFound ||
			!strings.HasPrefix(resp.Header.Get("Content-Security-Policy"), "sandbox;") || strings.Contains(text, "<script") {
			t.Errorf("%s: %d, %s", path, resp.StatusCode, text)
		}
	}
	if resp, _ := b.ask(t, http.MethodGet, "/archived/x/runs?url="+url.QueryEscape(b.site.URL+"/"),
		nil); resp.StatusCode != http.StatusNotFound {
		t.Errorf("without the key: %d", resp.StatusCode)
	}
}

// A page that cannot be rewritten is not displayed: unchanged, its links would lead out of the archive.
func TestPagesThatCannotBeShown(t *testing.T) {
	s := New(Config{Crawls: []Crawl{{Dir: t.TempDir()}}})
	defer s.Close()
	w := httptest.NewRecorder()
	archive := &archivedPages{crawls: s.crawls, keys: s.keys}
	archive.write(w, httptest.NewRequest(http.MethodGet, "/", nil), s.crawls.all[0], &page.Response{URL: "http://a.example/",
		Status: http.StatusOK,
		Header: http.Header{"Content-Type": {"text/html; charset=iso-2022-jp"}}, Body: []byte("<a href=/next>\xff</a>")})
	if text := w.Body.String(); w.Code != http.StatusUnprocessableEntity ||
		!strings.Contains(text, "The page cannot be shown") || strings.Contains(text, "/next") {
		t.Errorf("%d, %s", w.Code, text)
	}
}

// Actions are confirmed, must come from a page of this server, and are logged.
func TestActing(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.until(t, "/api/v1/crawls/runs/records", "/late")
	form := func(more ...string) url.Values {
		v := url.Values{"csrf": {b.ui.keys.sign("act")}, "sure": {"yes"}}
		for i := 0; i+1 < len(more); i += 2 {
			v.Set(more[i], more[i+1])
		}
		return v
	}
	state := func(want inspect.State) {
		t.Helper()
		b.ui.crawls.byName["runs"].status.invalidate()
		if _, text := b.ask(t, http.MethodGet, "/api/v1/crawls/runs", nil); !strings.Contains(text, `"state":"`+string(want)+
			`"`) {
			t.Errorf("the crawl is not %s: %s", want, text)
		}
	}
	for name, r := range map[string]struct {
		form   url.Values
		fields []string
	}{
		"no token": {url.Values{"sure": {"yes"}}, nil}, "wrong token": {form("csrf", "x"), nil},
		"another site's":   {form(), []string{"Origin", "http://evil.example"}},
		"another origin's": {form(), []string{"Sec-Fetch-Site", "cross-site"}},
		"a sandbox's":      {form(), []string{"Origin", "null"}},
		"a neighbour's":    {form(), []string{"Sec-Fetch-Site", "same-site"}},
		"by another name":  {form(), []string{"Host", "evil.example"}},
	} {
		if resp, text := b.ask(t, http.MethodPost, "/crawls/runs/act/pause", r.form, r.fields...); resp.StatusCode < 400 {
			t.Errorf("%s: %d, %s", name, resp.StatusCode, text)
		}
	}
	if resp, _ := b.ask(t, http.MethodGet, "/crawls/runs/act/pause?sure=yes&csrf="+b.ui.keys.sign("act"),
		nil); resp.StatusCode != http.StatusOK {
		t.Error(resp.StatusCode)
	}
	state(inspect.Running)
	if resp, text := b.ask(t, http.MethodPost, "/crawls/runs/act/add", url.Values{"csrf": {b.ui.keys.sign("act")},
		"value": {b.site.URL + "/new"}}); resp.StatusCode != http.StatusOK ||
		!strings.Contains(text, "Add 1 URL:") || !strings.Contains(text, `name="sure"`) {
		t.Errorf("it does not ask: %d, %s", resp.StatusCode, text)
	}
	do := func(name string, want int, more ...string) {
		t.Helper()
		resp, text := b.ask(t, http.MethodPost, "/crawls/runs/act/"+name, form(more...), "Origin", b.URL, "Sec-Fetch-Site",
			"same-origin")
		if resp.StatusCode != want {
			t.Errorf("%s %q: %d, %s", name, more, resp.StatusCode, text)
		}
	}
	do("pause", http.StatusSeeOther)
	state(inspect.Paused)
	do("add", http.StatusSeeOther, "value", b.site.URL+"/new\n\n"+b.site.URL+"/")
	do("add", http.StatusBadRequest, "value", "javascript:alert(1)")
	do("add", http.StatusBadRequest, "value", strings.Repeat(b.site.URL+"/x\n", maxAdded+1))
	do("add", http.StatusBadRequest, "value", strings.Repeat("x", maxBody+1))
	do("limit", http.StatusBadRequest, "value", "many")
	config := filepath.Join(b.ui.crawls.byName["runs"].dir, settings.Name)
	if err := os.WriteFile(config, []byte("limit: 12345\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, text := b.ask(t, http.MethodGet, "/crawls/runs/act/limit", nil); !strings.Contains(text,
		"The current value is <b><bdi>12345</bdi></b>") {
		t.Errorf("the present limit is not shown:\n%s", text)
	}
	do("delay", http.StatusBadRequest, "value", "5", "host", "a.example")
	do("delay", http.StatusBadRequest, "value", "5s", "host", "', x: '")
	do("nothing", http.StatusNotFound)
	do("resume", http.StatusSeeOther)
	state(inspect.Running)
	b.until(t, "/api/v1/crawls/runs/records?prefix="+strings.TrimPrefix(b.site.URL, "http://")+"/new", `"status":200`)
	if resp, text := b.ask(t, http.MethodPost, "/crawls/done/act/pause", form()); resp.StatusCode != http.StatusConflict {
		t.Errorf("a crawl that has ended: %d, %s", resp.StatusCode, text)
	}
	if text := b.log.String(); !strings.Contains(text, `msg="web page: pause" crawl=runs from=127.0.0.1`) ||
		!strings.Contains(text, "time=") ||
		!strings.Contains(text, `msg="web page: add" crawl=runs from=127.0.0.1 value="Add 2 URLs`) {
		t.Errorf("the log:\n%s", text)
	}
	do("stop", http.StatusOK)
	b.release()
	if err := b.stop(); !session.IsStop(err) {
		t.Errorf("the crawl ended with %v", err)
	}
}

// A host's delay replaces the delay that the page set before, in any form that the file allows, and nothing else.
func TestDelays(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), settings.Name)
	withDelay := func(overrides string, g actionInput) (inspect.Setting, error) {
		t.Helper()
		if err := os.WriteFile(file, []byte("override:\n"+overrides), 0o644); err != nil {
			t.Fatal(err)
		}
		all, err := settings.Read(file)
		if err != nil {
			return inspect.Setting{}, err
		}
		changes, err := withDelay(settings.Map(all)["override"], g)
		return append(changes, inspect.Setting{})[0], err
	}
	const others = `- match: {host: proxy.example, domain: example}
  delay: 2s
- match: {host: a.example}
  delay: 2s
  tries: 3
- match: a.example
  delay: 3s
- match: {domain: header.example}
  depth: 2
`
	first := "- delay: 2s\n  match:\n    host: a.example\n" + others
	s, err := withDelay(first, actionInput{"5s", "a.example"})
	if err != nil || len(s.Values) != 5 || s.Values[0] != "{match: {host: 'a.example'}, delay: 5s}" {
		t.Errorf("%q, %v", s.Values, err)
	}
	if s, err := withDelay(first, actionInput{"5s", "b.example"}); err != nil || len(s.Values) != 6 {
		t.Errorf("another host: %q, %v", s.Values, err)
	}
	for _, secret := range []string{"- match: a.example\n  header: ['Cookie: x']\n",
		"- match: a.example\n  proxy: http://u:p@p.example\n", "- what\n"} {
		if _, err := withDelay(others+secret, actionInput{"5s", "a.example"}); err == nil ||
			problemOf(err).Status != http.StatusConflict {
			t.Errorf("%s: %v", secret, err)
		}
	}
}

// A crawl that waits for its folder gets it, however frequent requests are.
func TestACrawlThatWaitsComesIn(t *testing.T) {
	t.Parallel()
	wanted, opened, closed := false, 0, 0
	s := New(Config{Crawls: []Crawl{{Dir: t.TempDir(), FolderWanted: func() bool { return wanted },
		Open: func(context.Context) (*inspect.View, error) {
			opened++
			return inspect.NewView(nil, "", vfs.OS, false, func() error { closed++; return nil }), nil
		}}}})
	defer s.Close()
	c := s.crawls.all[0].view
	first, err := c.acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wanted = true
	if _, err := c.acquire(t.Context()); !errors.Is(err, inspect.ErrUnreachable) || closed != 0 {
		t.Errorf("while one is used: %v, closed %d times", err, closed)
	}
	c.release(first, false)
	second, err := c.acquire(t.Context())
	if err != nil || opened != 2 || closed != 1 {
		t.Errorf("%v; opened %d, closed %d times", err, opened, closed)
	}
	c.release(second, true)
}

// Names of other sites that resolve to this server are refused; with a token, requests without it are refused.
func TestWhoIsAnswered(t *testing.T) {
	t.Parallel()
	log := &lockedLog{}
	s := New(Config{Token: "sesame", Hosts: []string{"crawler.example"}, Log: slog.New(slog.NewTextHandler(log, nil))})
	defer s.Close()
	ask := func(host, target string, fields ...string) *http.Response {
		r := httptest.NewRequest(http.MethodGet, target, nil)
		r.Host = host
		for i := 0; i+1 < len(fields); i += 2 {
			r.Header.Set(fields[i], fields[i+1])
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w.Result()
	}
	const with = "Bearer sesame"
	for host, want := range map[string]int{"127.0.0.1:8090": 200, "[::1]:8090": 200, "localhost:8090": 200,
		"localhost": 200, "crawler.example:8090": 200, "CRAWLER.example": 200,
		"192.168.0.7": 200, "evil.example": 421, "127.0.0.1.evil.example": 421, "": 421, "localhost.evil.example": 421} {
		if resp := ask(host, "/api/v1/crawls", "Authorization", with); resp.StatusCode != want {
			t.Errorf("host %q: %d", host, resp.StatusCode)
		}
	}
	for _, path := range []string{"/api/v1/crawls", "/crawls", "/static/style.css", "/crawls/x/events", "/nowhere"} {
		for _, fields := range [][]string{nil, {"Authorization", "Bearer x"}, {"Cookie", cookie + "=x"}} {
			resp := ask("127.0.0.1", path, fields...)
			text, err := io.ReadAll(resp.Body)
			if resp.StatusCode != http.StatusUnauthorized || resp.Header.Get("WWW-Authenticate") == "" || err != nil ||
				!strings.Contains(string(text), "kumo open FOLDER") {
				t.Errorf("%s with %q: %d %v, %s", path, fields, resp.StatusCode, err, text)
			}
		}
	}
	resp := ask("127.0.0.1", "/crawls?token=sesame&by=x")
	set := resp.Cookies()
	if resp.StatusCode != http.StatusSeeOther || resp.Header.Get("Location") != "/crawls?by=x" || len(set) != 1 ||
		!set[0].HttpOnly ||
		set[0].SameSite != http.SameSiteStrictMode {
		t.Errorf("%d to %s with %v", resp.StatusCode, resp.Header.Get("Location"), set)
	}
	for _, fields := range [][]string{{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Dest", "document"}, {"Accept", "text/html"}} {
		resp := ask("127.0.0.1", "/crawls?token=sesame&by=x", fields...) // a cookie would not be sent with a redirect
		text, err := io.ReadAll(resp.Body)
		if resp.StatusCode != http.StatusOK || len(resp.Cookies()) != 1 || err != nil ||
			!strings.Contains(string(text), `content="0; url=/crawls?by=x"`) {
			t.Errorf("%v: %d with %v, %v: %s", fields, resp.StatusCode, resp.Cookies(), err, text)
		}
	}
	if resp := ask("127.0.0.1", "//evil.example/?token=sesame"); strings.HasPrefix(resp.Header.Get("Location"), "//") {
		t.Errorf("leads to %s", resp.Header.Get("Location"))
	}
	if resp := ask("127.0.0.1", "/crawls?token=x"); resp.StatusCode != http.StatusUnauthorized {
		t.Error(resp.StatusCode)
	}
	if resp := ask("127.0.0.1", "/crawls", "Cookie", cookie+"="+set[0].Value); resp.StatusCode != http.StatusOK {
		t.Errorf("with the cookie: %d", resp.StatusCode)
	}
	if resp := ask("127.0.0.1:8090", "/crawls", "Cookie", cookie+"="+
		set[0].Value); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("with the cookie of another port: %d", resp.StatusCode)
	}
	if set := ask("127.0.0.1:8090", "/crawls?token=sesame").Cookies(); len(set) != 1 || set[0].Name != cookie+"-8090" {
		t.Errorf("cookies %v", set)
	}
	for _, site := range []string{"cross-site", "same-site", "same-origin", "none"} {
		for _, dest := range []string{"image", "iframe", "empty", "", "document"} {
			want := http.StatusOK
			if site != "same-origin" && site != "none" && dest != "document" {
				want = http.StatusForbidden
			}
			if resp := ask("127.0.0.1", "/crawls", "Authorization", with, "Sec-Fetch-Site", site, "Sec-Fetch-Dest",
				dest); resp.StatusCode != want {
				t.Errorf("%s, %s: %d", site, dest, resp.StatusCode)
			}
		}
	}
	if strings.Contains(log.String(), "sesame") {
		t.Errorf("the token is in the log:\n%s", log)
	}
}

// Only event streams and downloads may take unlimited time.
func TestWhatIsBounded(t *testing.T) {
	for path, want := range map[string]bool{"/crawls/x/events": true, "/crawls/events": false,
		"/crawls/x/hosts/events": false, "/events": false,
		"/api/v1/crawls/events": false, "/crawls/x/events/": false,
		"/crawls/x/download/wacz": true, "/crawls/x/audit/broken/csv": true, "/crawls/x/audit/broken": false} {
		if is := isStream(httptest.NewRequest(http.MethodGet, path, nil)); is != want {
			t.Errorf("%s: %v", path, is)
		}
	}
}

// listen opens an event stream until the test ends.
func (b *bed) listen(t *testing.T, path string) io.Reader {
	t.Helper()
	resp, err := http.Get(b.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d", path, resp.StatusCode)
	}
	return resp.Body
}

// An event stream gets an event per second, and one for the end, even if the crawl has ended before. Over the limit,
// the oldest stream ends.
func TestEvents(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	if resp, text := b.ask(t, http.MethodGet, "/crawls/done/events",
		nil); resp.Header.Get("Content-Type") != "text/event-stream" ||
		text != "retry: 3000\n\ndata: {\"runs\":false}\n\n" {
		t.Errorf("a crawl that has ended: %d, %q", resp.StatusCode, text)
	}
	oldest := b.listen(t, "/crawls/runs/events")
	for range maxQueueListeners - 1 { // of one of two crawls
		b.listen(t, "/crawls/runs/events")
	}
	events := bufio.NewScanner(b.listen(t, "/crawls/runs/events"))
	if text, err := io.ReadAll(oldest); err != nil || !strings.HasSuffix(string(text), "retry: 15000\n\n") {
		t.Errorf("the oldest of one too many: %v, %s", err, text)
	}
	next := func() (e event) {
		for events.Scan() {
			if data, is := strings.CutPrefix(events.Text(), "data: "); is {
				if err := json.Unmarshal([]byte(data), &e); err != nil {
					t.Fatal(err)
				}
				return e
			}
		}
		return e
	}
	for range 2 {
		if e := next(); !e.Runs || e.Live["state"] != "running" || e.Live["pages"] == "" {
			t.Fatalf("%+v", e)
		}
	}
	b.ask(t, http.MethodPost, "/crawls/runs/act/stop", url.Values{"csrf": {b.ui.keys.sign("act")}, "sure": {"yes"}})
	b.release()
	_ = b.stop()
	for e := next(); e.Runs; e = next() {
	}
	if resp, text := b.ask(t, http.MethodGet, "/crawls/runs/events", nil); resp.StatusCode != http.StatusOK ||
		!strings.HasPrefix(text, "retry: 3000\n\n") || strings.Contains(text, `"runs":true`) {
		t.Errorf("a crawl that cannot be asked: %d, %q", resp.StatusCode, text)
	}
	if events.Scan() && events.Text() != "" {
		t.Errorf("after the end: %s", events.Text())
	}
}

// TestExcluded checks that the overview's rows of rules link to lists of the URLs that they excluded.
func TestExcluded(t *testing.T) {
	b := newBed(t)
	_, overview := b.ask(t, http.MethodGet, "/crawls/done", nil)
	rows := regexp.MustCompile(`href="(/crawls/done/excluded\?rule=[^"]+)">.*</a><td class="n">(\d+)`).
		FindAllStringSubmatch(overview, -1)
	if len(rows) == 0 {
		t.Fatalf("no row leads to a list:\n%s", overview)
	}
	for _, row := range rows {
		list, n := row[1], 0
		for path := list; path != ""; {
			resp, page := b.ask(t, http.MethodGet, path, nil)
			if resp.StatusCode != http.StatusOK {
				t.Fatal(path, resp.Status)
			}
			n += strings.Count(page, `<td class="url">`)
			more := regexp.MustCompile(`rel="next" href="([^"]+)"`).FindStringSubmatch(page)
			if path = ""; more != nil {
				path = "/crawls/done/excluded" + html.UnescapeString(more[1])
			}
		}
		if strconv.Itoa(n) != row[2] {
			t.Errorf("%s lists %d URLs, the overview counts %s", list, n, row[2])
		}
	}
	if resp, _ := b.ask(t, http.MethodGet, "/crawls/done/excluded?cursor=x", nil); resp.StatusCode != http.StatusBadRequest {
		t.Error(resp.Status)
	}
}
