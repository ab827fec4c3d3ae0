package wire

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kumo/internal/app/job"
	"kumo/internal/base/page"
	"kumo/internal/content/policy"
	"kumo/internal/content/render"
	"kumo/internal/engine/crawl"
)

// A fakeBrowser is a crawl.Renderer. The second script of a page has a line for each request: "get URL" appends the
// answer to the document, and "go URL" leaves the page.
type fakeBrowser struct {
	crash func(url string) error

	mu     sync.Mutex
	pages  []string // rendered, in order
	closed int
}

func (b *fakeBrowser) Pages() int { return 2 }

func (b *fakeBrowser) Close() error {
	b.closed++
	return nil
}

func (b *fakeBrowser) Render(ctx context.Context, j render.Job) (*render.Result, error) {
	b.mu.Lock()
	b.pages = append(b.pages, strings.TrimSuffix(j.URL+" "+string(j.Wait), " "))
	b.mu.Unlock()
	if b.crash != nil {
		if err := b.crash(j.URL); err != nil {
			return nil, err
		}
	}
	doc, err := j.Answer(ctx, &render.Request{URL: j.URL, Method: "GET", Document: true, Type: "Document"})
	if err != nil {
		return nil, err
	}
	r := &render.Result{URL: j.URL, Complete: true, Requests: 1, Took: time.Second}
	text := string(doc.Body)
	_, script, _ := strings.Cut(text, "<script>") // the first one has attributes
	script, _, _ = strings.Cut(script, "</script>")
	for line := range strings.Lines(script) {
		verb, url, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || verb != "get" && verb != "go" {
			continue
		}
		a, err := j.Answer(ctx, &render.Request{URL: url, Method: "GET", Document: verb == "go", Type: "XHR",
			Header: http.Header{"X-Script": {"yes"}, "Referer": {j.URL}}})
		switch {
		case errors.Is(err, render.ErrBlocked):
			r.Blocked++
		case err != nil:
			r.Failed++
		case a.Status == http.StatusOK:
			r.Requests++
			text += string(a.Body)
		default:
			r.Requests++
		}
		if err != nil {
			text += "<p>" + err.Error()
		}
	}
	r.HTML = []byte(text)
	if slices.Contains(j.Actions, render.Scroll) && strings.HasSuffix(j.URL, "/app") {
		r.Links = []string{strings.Replace(j.URL, "/app", "/item", 1), strings.Replace(j.URL, "/app", "/seen", 1), "mailto:a@b.test"}
		r.ActionErr = errors.New("no time")
	}
	for _, kind := range j.Shots {
		if strings.HasSuffix(j.URL, "/app2") && kind == page.ShotPDF {
			r.ShotErrors = append(r.ShotErrors, errors.New("no printer"))
			continue
		}
		r.Shots = append(r.Shots, page.Shot{Kind: kind, Data: []byte("picture of " + j.URL)})
	}
	return r, nil
}

// rendered returns the paths of the rendered pages, sorted.
func (b *fakeBrowser) rendered() (paths []string) {
	for _, url := range b.pages {
		_, path, _ := strings.Cut(strings.TrimPrefix(url, "http://"), "/")
		paths = append(paths, "/"+path)
	}
	slices.Sort(paths)
	return paths
}

// shell returns a page that needs script, whose scripts make these requests.
func shell(requests ...string) http.HandlerFunc {
	return html(`<title>Shell</title><div id="root"></div><script src="/app.js"></script><script>` + "\n" +
		strings.Join(requests, "\n") + "\n// " + strings.Repeat("x", 200) + `</script>`)
}

func (s *site) renderJob(t *testing.T, seed string, b *fakeBrowser) *job.Job {
	j := s.job(t, seed)
	j.Renderer, j.Crawl.Render = b, policy.RenderAuto
	return j
}

func lineOf(t *testing.T, dir, suffix string) map[string]any {
	t.Helper()
	for _, l := range lines(t, dir, "pages.jsonl") {
		if strings.HasSuffix(l["url"].(string), suffix) {
			return l
		}
	}
	t.Fatalf("pages.jsonl has no line of %s", suffix)
	return nil
}

func TestRenderedPages(t *testing.T) {
	t.Parallel()
	var header http.Header
	busy := 0
	s := newSite(t, map[string]http.HandlerFunc{
		"a.test/robots.txt":   html("User-agent: *\nDisallow: /secret"),
		"cdn.test/robots.txt": html("User-agent: *\nDisallow: /private"),
		"a.test/":             html(`<p>Text</p><a href=/app>app</a> <a href=/app2>2</a> <a href=/plain>plain</a>`),
		"a.test/app": shell("get http://a.test:PORT/items", "get http://a.test:PORT/secret", "get http://cdn.test:PORT/lib",
			"get http://cdn.test:PORT/private", "get http://busy.test:PORT/1", "get http://busy.test:PORT/2"),
		"a.test/app2":  shell("get http://a.test:PORT/items", "get http://cdn.test:PORT/lib", "go http://a.test:PORT/led"),
		"a.test/items": html(`<a href=/item>item</a>`),
		"a.test/item":  html(`an item`),
		"a.test/led":   html(`led here`),
		"a.test/plain": html(`plain`),
		"cdn.test/lib": func(w http.ResponseWriter, r *http.Request) {
			header = r.Header
			fmt.Fprint(w, "<p>from the library</p>")
		},
		"busy.test/1": func(w http.ResponseWriter, _ *http.Request) {
			busy++
			w.WriteHeader(http.StatusTooManyRequests)
		},
	})
	b := &fakeBrowser{}
	j := s.renderJob(t, "a.test/", b)
	mustRun(t, j)
	s.wantAsked(t, "a.test/", "a.test/app", "a.test/app2", "a.test/plain", "a.test/items", "a.test/item", "a.test/led",
		"cdn.test/lib", "busy.test/1") // each resource once, though two pages request it
	if header.Get("X-Script") != "yes" || !strings.Contains(header.Get("User-Agent"), "kumo") {
		t.Errorf("a resource was requested with %v", header)
	}
	app := lineOf(t, j.Dir, "/app")
	if app["rendered"] != true || app["needs_script"] != "root" || app["links"] != 2.0 || app["render_requests"] != 3.0 {
		t.Errorf("the app's line: %v", app)
	}
	if plain := lineOf(t, j.Dir, "a.test"+s.port()+"/"); plain["rendered"] != nil {
		t.Errorf("a page that needs no script: %v", plain)
	}
	if b.closed != 1 {
		t.Errorf("the browser was closed %d times", b.closed)
	}
}

// TestScreenshots checks that pictures of rendered pages are stored and listed, and that a page is kept if its picture
// fails.
func TestScreenshots(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]http.HandlerFunc{
		"a.test/":      html(`<p>Text</p><a href=/app>app</a> <a href=/app2>2</a>`),
		"a.test/app":   shell("get http://a.test:PORT/items"),
		"a.test/app2":  shell("get http://a.test:PORT/items"),
		"a.test/items": html(`<a href=/item>item</a>`),
		"a.test/item":  html(`an item`),
	})
	j := s.renderJob(t, "a.test/", &fakeBrowser{})
	j.Crawl.RenderActions = []render.Action{render.Scroll}
	acted := 0
	j.Listener.ActionFailed = func(string, error) { acted++ }
	j.Crawl.Shots, j.Crawl.PrintPDF = []page.ShotKind{page.ShotView, page.ShotThumb}, true
	var mu sync.Mutex
	var failed []string
	j.Listener.ShotFailed = func(url string, err error) {
		mu.Lock()
		defer mu.Unlock()
		failed = append(failed, url+" "+err.Error())
	}
	mustRun(t, j)
	if want := s.url("a.test/app2") + " no printer"; len(failed) != 1 || failed[0] != want {
		t.Errorf("failed: %q, want %q", failed, want)
	}
	// links that appeared only in between are followed
	s.wantAsked(t, "a.test/", "a.test/app", "a.test/app2", "a.test/items", "a.test/item", "a.test/seen")
	if links := lineOf(t, j.Dir, "/app")["links"]; links != 2.0+1 || acted != 1 {
		t.Errorf("%v links, %d failures", links, acted)
	}
	for path, want := range map[string][]string{"/app": {"view", "thumbnail", "pdf"}, "/app2": {"view", "thumbnail"},
		"a.test" + s.port() + "/": nil} {
		var got []string
		shots, _ := lineOf(t, j.Dir, path)["screenshots"].([]any)
		for _, s := range shots {
			got = append(got, s.(map[string]any)["kind"].(string))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s has the pictures %q, want %q", path, got, want)
		}
	}
}

// TestRenderingLearns: a host's other pages are rendered once that gained something, until it no longer does.
func TestRenderingLearns(t *testing.T) {
	t.Parallel()
	pages := map[string]http.HandlerFunc{
		"a.test/":      html(`<p>Text</p><a href=/app>app</a>`),
		"a.test/app":   shell("get http://a.test:PORT/items"),
		"a.test/items": html(`<a href=/1>1</a><a href=/2>2</a><a href=/3>3</a><a href=/4>4</a><a href=/5>5</a>`),
		"b.test/":      html(`<p>Text</p><a href=/1>1</a><a href=/2>2</a><a href=/3>3</a><a href=/4>4</a><a href=/5>5</a>`),
	}
	for n := range 5 {
		pages[fmt.Sprintf("a.test/%d", n+1)] = html(fmt.Sprintf("<p>page %d", n))
		pages[fmt.Sprintf("b.test/%d", n+1)] = shell()
	}
	s := newSite(t, pages)
	var mu sync.Mutex
	var stopped []string
	b := &fakeBrowser{}
	j := s.renderJob(t, "a.test/", b)
	j.Seeds = append(j.Seeds, s.url("b.test/"))
	j.Listener.RenderingStopped = func(host, why string) {
		mu.Lock()
		defer mu.Unlock()
		stopped = append(stopped, host)
	}
	mustRun(t, j)
	slices.Sort(stopped)
	if want := []string{"a.test" + s.port(), "b.test" + s.port()}; !slices.Equal(stopped, want) {
		t.Errorf("rendering stopped at %v, want %v", stopped, want)
	}
	// /app, and the first three of each host that gained nothing
	if got, want := b.rendered(), []string{"/1", "/1", "/2", "/2", "/3", "/3", "/app"}; !slices.Equal(got, want) {
		t.Errorf("rendered %v, want %v", got, want)
	}
}

// TestRenderModes: always, never, and overrides.
func TestRenderModes(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]http.HandlerFunc{
		"a.test/":    html(`<p>Text</p><a href=/app>app</a><a href=/pdf>pdf</a><a href=/gone>gone</a>`),
		"a.test/app": shell(),
		"a.test/pdf": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/pdf")
			fmt.Fprint(w, "%PDF-1.4")
		},
	})
	for _, c := range []struct {
		mode     policy.RenderMode
		override string
		want     []string
	}{
		{policy.RenderAlways, "", []string{"/", "/app"}},
		{policy.RenderAuto, "", []string{"/app"}},
		{policy.RenderNever, "", nil},
		{policy.RenderAlways, "{match: a.test, render: never}", nil},
		{policy.RenderNever, "{match: a.test, render: always}", []string{"/", "/app"}},
		{policy.RenderAuto, "{match: a.test, render-wait: '#root > p'}", []string{"/app #root > p"}},
		{policy.RenderNever, "{match: b.test, render: always}", nil},
	} {
		b := &fakeBrowser{}
		j := s.renderJob(t, "a.test/", b)
		j.Crawl.Render = c.mode
		if c.override != "" {
			all, err := policy.ParseOverrides(c.override)
			if err != nil {
				t.Fatal(err)
			}
			j.Crawl.Overrides = policy.NewOverrides(all)
		}
		mustRun(t, j)
		if got := b.rendered(); !slices.Equal(got, c.want) {
			t.Errorf("%s %s: rendered %v, want %v", c.mode, c.override, got, c.want)
		}
	}
}

// TestRenderFails: a page that the browser cannot render is used as it was received.
func TestRenderFails(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]http.HandlerFunc{
		"a.test/":     shell("get http://a.test:PORT/items"),
		"a.test/back": html("back"),
	})
	var failed []string
	b := &fakeBrowser{crash: func(string) error { return render.ErrCrashed }}
	j := s.renderJob(t, "a.test/", b)
	j.Listener.RenderFailed = func(url string, err error) {
		if !errors.Is(err, render.ErrCrashed) {
			t.Error(err)
		}
		failed = append(failed, url)
	}
	mustRun(t, j)
	if l := lineOf(t, j.Dir, "/"); l["title"] != "Shell" || l["rendered"] != nil || l["needs_script"] != "root" {
		t.Errorf("the page's line: %v", l)
	}
	if len(failed) != 1 {
		t.Errorf("failures: %v", failed)
	}
}

// TestStopWhileRendering: a crawl that stops while a page is rendered fetches it again in the next run.
func TestStopWhileRendering(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]http.HandlerFunc{
		"a.test/":      shell("get http://a.test:PORT/items"),
		"a.test/items": html(`<a href=/item>item</a>`),
		"a.test/item":  html("an item"),
	})
	ctx, stop := context.WithCancel(t.Context())
	var b crawl.Renderer = stoppingBrowser{&fakeBrowser{}, stop}
	j := s.renderJob(t, "a.test/", nil)
	j.Renderer, j.Crawl.Grace = b, time.Millisecond
	if err := run(t, ctx, j); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	j.Renderer = &fakeBrowser{}
	mustRun(t, j)
	s.wantAsked(t, "a.test/", "a.test/", "a.test/items", "a.test/item")
	if l := lineOf(t, j.Dir, "/"); l["rendered"] != true {
		t.Errorf("the page's line: %v", l)
	}
}

// A stoppingBrowser stops the crawl when it gets a page, and never finishes it.
type stoppingBrowser struct {
	*fakeBrowser
	stop func()
}

func (b stoppingBrowser) Render(ctx context.Context, _ render.Job) (*render.Result, error) {
	b.stop()
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestRenderedEmbeds: resources that a page has loaded are not fetched again as embeds; what they refer to is.
func TestRenderedEmbeds(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]http.HandlerFunc{
		"a.test/": html(`<title>Shell</title><link rel=stylesheet href=/s.css><img src=/i.png><img src=/other.png>` +
			`<div id="root"></div><script src="/app.js"></script><script>` + "\nget http://a.test:PORT/s.css\n" +
			"get http://a.test:PORT/i.png\nget http://a.test:PORT/item\n// " + strings.Repeat("x", 200) + `</script>`),
		"a.test/s.css": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/css")
			fmt.Fprint(w, `@import "/more.css"; p { background: url(/bg.png) }`)
		},
		"a.test/i.png": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "image/png")
			fmt.Fprint(w, "\x89PNG\r\n\x1a\n")
		},
		"a.test/item": html(`<a href=/item>the page itself</a>`),
	})
	j := s.renderJob(t, "a.test/", &fakeBrowser{})
	j.Crawl.Embeds = true
	mustRun(t, j)
	s.wantAsked(t, "a.test/", "a.test/s.css", "a.test/i.png", "a.test/item", "a.test/other.png", "a.test/app.js",
		"a.test/more.css", "a.test/bg.png", "a.test/item") // the last one as a page
	if l := lineOf(t, j.Dir, "/bg.png"); !strings.HasSuffix(l["from"].(string), "/s.css") {
		t.Errorf("the style sheet's image: %v", l)
	}
}
