package chromium

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	_ "image/jpeg"
	_ "image/png"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kumo/internal/base/page"
	"kumo/internal/content/render"
)

// newBrowser starts a browser. Without one, the test is skipped, but in CI it fails.
func newBrowser(t *testing.T, change func(*Config)) *Browser {
	t.Helper()
	cfg := Config{NoSandbox: os.Geteuid() == 0, Timeout: 20 * time.Second, Quiet: 300 * time.Millisecond}
	if change != nil {
		change(&cfg)
	}
	b, err := Start(t.Context(), cfg)
	if errors.Is(err, ErrNoBrowser) && os.Getenv("CI") == "" {
		t.Skip("SKIPPED: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// A web has the pages that an Answerer serves, by URL without scheme, and records the requests.
type web struct {
	files map[string]string

	mu    sync.Mutex
	asked []string
}

func (w *web) answer(ctx context.Context, r *render.Request) (*render.Response, error) {
	u, err := url.Parse(r.URL)
	if err != nil {
		return nil, err
	}
	key := u.Host + u.RequestURI()
	w.mu.Lock()
	w.asked = append(w.asked, r.Method+" "+key)
	w.mu.Unlock()
	text, ok := w.files[key]
	if !ok {
		return &render.Response{Status: http.StatusNotFound, Header: http.Header{"Content-Type": {"text/html"}},
			Body: []byte("nothing here")}, nil
	}
	switch {
	case text == "blocked":
		return nil, render.ErrBlocked
	case text == "never":
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if to, ok := strings.CutPrefix(text, "Location: "); ok {
		return &render.Response{Status: http.StatusFound, Header: http.Header{"Location": {to}}}, nil
	}
	kind := map[string]string{".js": "text/javascript", ".json": "application/json", ".pdf": "application/pdf"}[filepath.Ext(u.Path)]
	if kind == "" {
		kind = "text/html; charset=utf-8"
	}
	return &render.Response{Status: http.StatusOK, Header: http.Header{"Content-Type": {kind}}, Body: []byte(text)}, nil
}

func (w *web) wasAsked(request string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Contains(w.asked, request)
}

func isComplete(t *testing.T, _ *web, r *render.Result) {
	t.Helper()
	if !r.Complete {
		t.Error("it is not complete")
	}
}

func TestRender(t *testing.T) {
	b := newBrowser(t, nil)
	const list = `<script>fetch('/api.json').then(r => r.json()).then(all => { for (const n of all) {
		const a = document.createElement('a'); a.href = n; a.textContent = n; document.body.append(a) } })</script>`
	for _, c := range []struct {
		name  string
		files map[string]string // "/" is the page
		want  string            // in the document
		lacks string
		wait  render.Wait

		virtual time.Duration
		check   func(t *testing.T, w *web, r *render.Result)
	}{
		{name: "client-side app", files: map[string]string{"/": `<!doctype html><html lang="en"><title>App</title><div id=root></div>` + list,
			"/api.json": `["/a","/b"]`}, want: `<a href="/a">/a</a><a href="/b">/b</a>`,
			check: func(t *testing.T, _ *web, r *render.Result) {
				if !r.Complete || r.Title != "App" || r.Requests < 2 || !bytes.HasPrefix(r.HTML, []byte(`<!DOCTYPE html>`)) ||
					!bytes.Contains(r.HTML, []byte(`<html lang="en">`)) {
					t.Errorf("%+v", r)
				}
			}},
		{name: "shadow DOM", files: map[string]string{"/": `<div id=h></div><script>
			h.attachShadow({mode: 'open'}).innerHTML = '<p>inside <a href=/s>s</a></p>'</script>`}, want: `inside <a href="/s">s</a>`},
		{name: "redirect", files: map[string]string{"/": "Location: /next", "/next": "<p>arrived"}, want: "arrived",
			check: func(t *testing.T, _ *web, r *render.Result) {
				if r.URL != "http://x.test/next" {
					t.Errorf("%s", r.URL)
				}
			}},
		{name: "script leads elsewhere", files: map[string]string{"/": `<script>location.replace('/next')</script>`,
			"/next": "<p>arrived"}, want: "arrived"},
		{name: "history", files: map[string]string{"/": `<p>x<script>history.pushState({}, '', '/state')</script>`}, want: "x",
			check: func(t *testing.T, _ *web, r *render.Result) {
				if r.URL != "http://x.test/state" {
					t.Errorf("%s", r.URL)
				}
			}},
		{name: "endless timer", files: map[string]string{"/": `<p id=p>0</p><script>setInterval(() => p.textContent++, 1)</script>`},
			want: `<p id="p">`},
		{name: "dialogs", files: map[string]string{"/": `<script>onbeforeunload = () => 'stay'; alert('hello'); confirm('sure?');
			onload = () => { alert('loaded'); document.body.append('went on') }</script><body>`}, want: "went on",
			check: func(t *testing.T, _ *web, r *render.Result) {
				if r.Dialogs != 3 {
					t.Errorf("%d dialogs", r.Dialogs)
				}
			}},
		{name: "frames and workers", files: map[string]string{"/": `<iframe src=/frame></iframe><iframe src="http://other.test/"></iframe>
			<script>new Worker('/worker.js')</script>`, "/frame": `<script>fetch('/from-frame')</script>`,
			"other.test/": `<script>fetch('/from-other')</script>`, "/worker.js": `fetch('/from-worker'); importScripts('/more.js')`,
			"/more.js": ``}, want: "iframe", check: func(t *testing.T, w *web, r *render.Result) {
			for _, want := range []string{"x.test/from-frame", "other.test/from-other", "x.test/from-worker", "x.test/more.js"} {
				if !w.wasAsked("GET " + want) {
					t.Errorf("%s was not requested", want)
				}
			}
			if r.Workers != 1 {
				t.Errorf("%d workers", r.Workers)
			}
		}},
		{name: "what cannot be paused", files: map[string]string{"/": `<p>here<script>new SharedWorker('/shared.js');
			new WebSocket('ws://x.test/socket'); open('/popup'); navigator.sendBeacon('/beacon', 'x');
			fetch('/post', {method: 'POST', body: 'x'}); navigator.serviceWorker?.register('/sw.js');</script>`,
			"/shared.js": `fetch('/from-shared')`, "/popup": "popup", "/sw.js": `fetch('/from-sw')`}, want: "here",
			check: func(t *testing.T, w *web, r *render.Result) {
				for _, bad := range []string{"GET x.test/from-shared", "GET x.test/popup", "POST x.test/beacon", "POST x.test/post"} {
					if w.wasAsked(bad) {
						t.Errorf("%s was requested", bad)
					}
				}
				if r.WebSockets != 1 || r.Windows != 1 || r.Blocked != 2 {
					t.Errorf("%+v", r)
				}
			}},
		{name: "blocked resource", files: map[string]string{"/": `<script src=/gone.js></script><p>rest`, "/gone.js": "blocked"},
			want: "rest", check: func(t *testing.T, _ *web, r *render.Result) {
				if r.Blocked != 1 || r.Failed != 0 {
					t.Errorf("%+v", r)
				}
			}},
		{name: "requests that never end", files: map[string]string{"/": `<p>rest<script>onload = () => fetch('/events')</script>`,
			"/events": "never"}, want: "rest", check: func(t *testing.T, _ *web, r *render.Result) {
			if r.Complete {
				t.Error("it is said to be complete")
			}
		}},
		{name: "wait for load", wait: render.WaitLoad, files: map[string]string{"/": `<p id=p>first<script>
			onload = () => fetch('/events')</script>`, "/events": "never"}, want: "first", check: isComplete},
		{name: "wait for a selector", wait: "#late:not(.soon)", files: map[string]string{"/": `<p>x<script>setTimeout(() => {
			document.body.innerHTML = '<p id=late class=soon>soon'; setTimeout(() => late.className = 'now', 900) }, 900)</script>`},
			want: `class="now"`, check: isComplete},
		{name: "wait for a selector while requests go on", wait: "p", files: map[string]string{
			"/": `<p>x<script>fetch('/events')</script><img src=/events>`, "/events": "never"}, want: "x", check: isComplete},
		{name: "virtual time", virtual: time.Hour, files: map[string]string{"/": `<p id=p>x<script>setTimeout(async () => {
			p.textContent = await (await fetch('/n.json')).text(); setTimeout(() => p.textContent += ' later', 3e5) }, 1e6)</script>`,
			"/n.json": "7"}, want: "7 later", check: isComplete},
		{name: "empty answers", files: map[string]string{"/": `<script src=/e.js></script><p>rest`, "/e.js": ""}, want: "rest"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &web{files: map[string]string{}}
			for path, text := range c.files {
				if strings.HasPrefix(path, "/") {
					path = "x.test" + path
				}
				w.files[path] = text
			}
			b.cfg.Settle = 3 * time.Second
			r, err := b.Render(t.Context(), render.Job{URL: "http://x.test/", Answer: w.answer, Wait: c.wait,
				VirtualTime: c.virtual})
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Contains(r.HTML, []byte(c.want)) {
				t.Errorf("the document is %s", r.HTML)
			}
			if c.check != nil {
				c.check(t, w, r)
			}
		})
	}
}

// TestDocumentFails: a page that cannot be fetched is an error of its own, and the browser goes on.
func TestDocumentFails(t *testing.T) {
	b := newBrowser(t, nil)
	w := &web{files: map[string]string{"x.test/": "<p>well"}}
	refused := errors.New("connection refused")
	_, err := b.Render(t.Context(), render.Job{URL: "http://x.test/", Answer: func(context.Context, *render.Request) (*render.Response, error) {
		return nil, refused
	}})
	if !errors.Is(err, render.ErrDocument) || !errors.Is(err, refused) {
		t.Errorf("%v", err)
	}
	if r, err := b.Render(t.Context(), render.Job{URL: "http://x.test/", Answer: w.answer}); err != nil || !bytes.Contains(r.HTML, []byte("well")) {
		t.Errorf("%v", err)
	}
	if r, err := b.Render(t.Context(), render.Job{URL: "http://x.test/none", Answer: w.answer}); err != nil || r.Requests == 0 {
		t.Errorf("an answer with an error status: %+v, %v", r, err)
	}
}

// TestPagesAreSeparate: pages share neither cookies nor storage.
func TestPagesAreSeparate(t *testing.T) {
	b := newBrowser(t, nil)
	w := &web{files: map[string]string{"x.test/": `<p id=p></p><script>
		p.textContent = 'saw:' + document.cookie + (localStorage.seen || ''); document.cookie = 'a=1'; localStorage.seen = 'x'</script>`}}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			r, err := b.Render(t.Context(), render.Job{URL: "http://x.test/", Answer: w.answer})
			if err != nil || !bytes.Contains(r.HTML, []byte(">saw:</p>")) {
				t.Errorf("%s, %v", r.HTML, err)
			}
		})
	}
	all.Wait()
}

func TestScreenshot(t *testing.T) {
	b := newBrowser(t, func(c *Config) { c.Width, c.Height = 640, 480 })
	w := &web{files: map[string]string{"x.test/": `<body style="background:#f00;margin:0;height:20000px">`,
		"x.test/short": `<body style="background:#f00">`, "x.test/sheets": strings.Repeat(`<p style="break-after:page">x`, 300)}}
	kinds := []page.ShotKind{page.ShotView, page.ShotFull, page.ShotThumb, page.ShotPDF}
	for path, height := range map[string]int{"/": maxHeight, "/short": 480} {
		r, err := b.Render(t.Context(), render.Job{URL: "http://x.test" + path, Answer: w.answer, Shots: kinds})
		if err != nil || len(r.ShotErrors) > 0 || len(r.Shots) != 4 {
			t.Fatalf("%s: %d pictures; %v, %v", path, len(r.Shots), err, r.ShotErrors)
		}
		for kind, size := range map[page.ShotKind][2]int{page.ShotView: {640, 480}, page.ShotFull: {640, height},
			page.ShotThumb: {320, 240}} {
			shot, name, err := image.Decode(bytes.NewReader(r.Shot(kind)))
			if err != nil || shot.Bounds().Dx() != size[0] || shot.Bounds().Dy() != size[1] || "image/"+name != kind.MediaType() {
				t.Fatalf("%s, %s: %s, %v; want %v", path, kind, name, err, size)
			}
			if red, green, _, _ := shot.At(100, 100).RGBA(); red < 0xf000 || green > 0x0fff {
				t.Errorf("%s, %s: the color is %x, %x", path, kind, red, green)
			}
		}
		if pdf := r.Shot(page.ShotPDF); !bytes.HasPrefix(pdf, []byte("%PDF-")) {
			t.Errorf("%s: the PDF begins with %.10q", path, pdf)
		}
	}
	r, err := b.Render(t.Context(), render.Job{URL: "http://x.test/sheets", Answer: w.answer, Shots: kinds[3:]})
	if err != nil || len(r.Shots) != 1 {
		t.Fatal(err, r.ShotErrors)
	}
	if n := bytes.Count(r.Shot(page.ShotPDF), []byte("/Type /Page\n")); n != maxPrinted {
		t.Errorf("a PDF has %d sheets, want %d", n, maxPrinted)
	}
}

// TestLimits: a page that never loads, is huge or makes endless requests is cut off.
func TestLimits(t *testing.T) {
	long(t)
	b := newBrowser(t, func(c *Config) { c.Timeout, c.MaxHTML, c.MaxRequests = 3*time.Second, 10_000, 20 })
	w := &web{files: map[string]string{"x.test/slow": `<p>text<img src=/never>`, "x.test/never": "never",
		"x.test/fetches": `<p>text<script>onload = () => fetch('/never')</script>`,
		"x.test/long":    `<script>for (let i = 0; i < 1e4; i++) document.write('<p>long</p>')</script>`,
		"x.test/many":    `<script>for (let i = 0; i < 100; i++) fetch('/n?' + i)</script>`,
		"x.test/loops":   `<p>text<script>onload = () => { for (;;); }</script>`}}
	job := func(path string, wait render.Wait) render.Job {
		return render.Job{URL: "http://x.test" + path, Answer: w.answer, Wait: wait}
	}
	render := func(path string) (*render.Result, error) {
		return b.Render(t.Context(), render.Job{URL: "http://x.test" + path, Answer: w.answer})
	}
	if r, err := render("/slow"); err != nil || r.Complete || !bytes.Contains(r.HTML, []byte("text")) {
		t.Errorf("slow: %+v, %v", r, err)
	}
	if r, err := b.Render(t.Context(), job("/slow", "#none")); err != nil || r.Complete {
		t.Errorf("a selector that never matches: %+v, %v", r, err)
	}
	endless := job("/fetches", "load")
	endless.VirtualTime = time.Minute
	if r, err := b.Render(t.Context(), endless); err != nil || r.Complete {
		t.Errorf("virtual time stands still while a request is not answered: %+v, %v", r, err)
	}
	if _, err := b.Render(t.Context(), job("/slow", "p:contains(x)")); err == nil || !strings.Contains(err.Error(), "selector") {
		t.Errorf("a selector that the browser does not know: %v", err)
	}
	if r, err := render("/long"); err != nil || !r.Cut || len(r.HTML) != 10_000 {
		t.Errorf("long: %d bytes, %v", len(r.HTML), err)
	}
	if r, err := render("/many"); err != nil || r.Requests > 20 || r.Blocked < 80 {
		t.Errorf("many: %d requests, %d blocked, %v", r.Requests, r.Blocked, err)
	}
	began := time.Now()
	if _, err := render("/loops"); err == nil {
		t.Error("a page whose script never ends has a result")
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
}

// TestCrash: a killed browser is an error that tells to try again, and leaves no process.
func TestCrash(t *testing.T) {
	b := newBrowser(t, nil)
	w := &web{files: map[string]string{"x.test/": `<p>x<script>onload = () => fetch('/never')</script>`, "x.test/never": "never"}}
	go func() {
		for !w.wasAsked("GET x.test/never") {
			time.Sleep(10 * time.Millisecond)
		}
		b.kill()
	}()
	if _, err := b.Render(t.Context(), render.Job{URL: "http://x.test/", Answer: w.answer}); err == nil {
		t.Error("a page of a killed browser has a result")
	}
	if b.Healthy() {
		t.Error("a killed browser is healthy")
	}
	b.Close()
	if _, err := os.Stat(b.files.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the profile is left: %v", err)
	}
	for range 100 {
		if len(children(t)) == 0 {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("processes are left: %v", children(t))
}

// TestManyImages: ten thousand lazy images are no more requests than the limit allows.
func TestManyImages(t *testing.T) {
	long(t)
	b := newBrowser(t, func(c *Config) { c.Timeout, c.MaxRequests = time.Minute, 20 })
	w := &web{files: map[string]string{"x.test/": `<script>for (let i = 0; i < 1e4; i++)
		document.write('<img loading=lazy src="/n?' + i + '">')</script>`}}
	r, err := b.Render(t.Context(), render.Job{URL: "http://x.test/", Answer: w.answer})
	if err != nil || r.Requests > 20 || !bytes.Contains(r.HTML, []byte("/n?9999")) {
		t.Fatalf("%+v, %v", r, err)
	}
	t.Logf("%d requests, %d blocked in %v", r.Requests, r.Blocked, r.Took)
}

// TestRendererCrash: a page whose process crashes is an error that tells so at once, and the browser goes on.
func TestRendererCrash(t *testing.T) {
	long(t)
	b := newBrowser(t, nil)
	w := &web{files: map[string]string{"x.test/": "<p>well"}}
	began := time.Now()
	if _, err := b.Render(t.Context(), render.Job{URL: "chrome://crash", Answer: w.answer}); !errors.Is(err, render.ErrCrashed) {
		t.Errorf("a crash after %v: %v", time.Since(began), err)
	}
	if r, err := b.Render(t.Context(), render.Job{URL: "http://x.test/", Answer: w.answer}); err != nil ||
		!bytes.Contains(r.HTML, []byte("well")) {
		t.Errorf("the next page: %v", err)
	}
}

// children returns the commands of this process's children.
func children(t *testing.T) []string {
	out, err := exec.Command("pgrep", "-a", "-P", fmt.Sprint(os.Getpid())).Output()
	if _, none := errors.AsType[*exec.ExitError](err); err != nil && !none {
		t.Skip("SKIPPED: ", err)
	}
	return slices.DeleteFunc(strings.Split(strings.TrimSpace(string(out)), "\n"), func(line string) bool {
		return line == "" || strings.Contains(line, "pgrep")
	})
}

// TestActions: links of virtual lists, behind buttons and from the user's script are found; consent layers and forms are
// left alone, and a page without end is bounded.
func TestActions(t *testing.T) {
	long(t)
	b := newBrowser(t, nil)
	w := &web{files: map[string]string{
		"x.test/list": `<div id=l style="height:9000px;position:relative"></div><script>
			const show = () => { const n = Math.floor(scrollY / 300); l.innerHTML = '';
				for (let i = n; i < n + 4; i++) l.innerHTML += '<a href=/item/' + i + '>i</a>' }
			addEventListener('scroll', show); show()</script>`,
		"x.test/more": `<div id=cookie-layer><button onclick="document.body.innerHTML = 'consented'">Show more</button></div>
			<form action=/sent><button>Load more</button></form><a href=/other role=button>Load more</a>
			<details><summary>s</summary><p>d</details><ul id=l></ul><button id=m>Load more results</button><script>
			let n = 0; m.onclick = () => { l.innerHTML += '<li><a href=/more/' + ++n + '>m</a>'; if (n == 5) m.remove() }</script>`,
		"x.test/endless": `<div id=l></div><script>const add = () => { l.style.height = l.clientHeight + 3000 + 'px' };
			add(); addEventListener('scroll', add)</script>`,
	}}
	do := func(path, script string) *render.Result {
		r, err := b.Render(t.Context(), render.Job{URL: "http://x.test" + path, Answer: w.answer, Actions: render.Actions,
			Script: script})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := do("/list", "await new Promise(r => setTimeout(r, 10)); return ['/script']")
	for _, want := range []string{"/item/0", "/item/5", "/item/9", "/script"} {
		if !slices.Contains(r.Links, "http://x.test"+want) {
			t.Errorf("%s is not among the links %v (%v)", want, r.Links, r.ActionErr)
		}
	}
	r = do("/more", "")
	if !bytes.Contains(r.HTML, []byte("/more/5")) || !bytes.Contains(r.HTML, []byte(`<details open="">`)) || r.ActionErr != nil ||
		r.URL != "http://x.test/more" || bytes.Contains(r.HTML, []byte("<body>consented")) {
		t.Errorf("%s, %v: %s", r.URL, r.ActionErr, r.HTML)
	}
	if r = do("/endless", "throw new Error('oops')"); r.ActionErr == nil || !strings.Contains(r.ActionErr.Error(), "oops") {
		t.Errorf("a script that fails: %v", r.ActionErr)
	}
	if r = do("/endless", ""); len(r.HTML) == 0 || r.ActionErr == nil {
		t.Errorf("a page without end took %v, %v", r.Took, r.ActionErr)
	}
}

// long skips a test that mostly waits for a browser, in short runs.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED: it takes some seconds; run it without -short")
	}
}
