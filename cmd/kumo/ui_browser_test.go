package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// A hostileSite has pages that try to run scripts, send requests and redirect wherever they are shown. Requests to
// their targets are counted.
type hostileSite struct {
	*httptest.Server
	canary *httptest.Server
	hits   atomic.Int64
	hold   chan struct{}
}

const hostileTitle = "<script>document.title='ran'</script> \u202egnp.exe\u202c \x1b[31m"

func newHostileSite(t *testing.T) *hostileSite {
	s := &hostileSite{hold: make(chan struct{})}
	s.canary = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.UserAgent(), "kumo") { // kumo fetches embedded resources
			s.hits.Add(1)
		}
		w.Header().Set("Access-Control-Allow-Origin", "*")
	}))
	evil := s.canary.URL
	call := "fetch('" + evil + "/ran');document.title='ran';try{top.location='" + evil + "/top'}catch(e){}"
	pages := map[string]string{
		"/": `<a href="/evil.html">evil</a> <a href="/held">held</a> <a href="/pic.svg">svg</a> <a href="/?x=<script>alert(1)</script>">q</a>
			<img src="/dot.png"><link rel=stylesheet href="/own.css"><h1 id=own>Home</h1>`,
		"/evil.html": "<title>" + strings.ReplaceAll(hostileTitle, "<", "&lt;") + `</title><script>` + call + `</script>
			<link rel=stylesheet href="` + evil + `/s.css"><style>@import "` + evil + `/i.css"; body { background: url(` + evil +
			`/b.png) }</style>
			<body onload="` + call + `"><img src=x onerror="` + call + `"><img src="` + evil + `/i.png"><iframe src="` + evil +
			`/f"></iframe>
			<iframe srcdoc="<script>` + strings.ReplaceAll(call, "'", "&quot;") + `</script>"></iframe>
			<object data="` + evil + `/o"></object><embed src="` + evil + `/e"><video src="` + evil + `/v" autoplay></video>
			<meta http-equiv=refresh content="0;url=` + evil + `/r"><form action="` + evil +
			`/form"><button id=send>send</button></form>
			<svg><script>` + call + `</script></svg><a id=away href="` + evil + `/away">away</a> <a id=home href="/">home</a>
			<p id=text>Some words that are the text of this page, and a few more so that it is one.</p>`,
		"/pic.svg": `<svg xmlns="http://www.w3.org/2000/svg" onload="` + call + `"><script>` + call +
			`</script><image href="` + evil + `/svg.png"/></svg>`,
		"/own.css": `#own { color: rgb(1, 2, 3) }`,
		"/late":    "<title>late</title>",
	}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Evil", `"><script>`+call+`</script>`)
		w.Header().Set("Refresh", "0;url="+evil+"/refresh")
		w.Header().Set("Link", "<"+evil+"/link.css>; rel=stylesheet")
		switch body, ok := pages[r.URL.Path]; {
		case r.URL.Path == "/held":
			select {
			case <-s.hold:
			case <-r.Context().Done():
			}
		case !ok:
			http.NotFound(w, r)
		default:
			kinds := map[string]string{".svg": "image/svg+xml", ".css": "text/css", ".png": "image/png"}
			kind := kinds[filepath.Ext(r.URL.Path)]
			if kind == "" {
				kind = "text/html; charset=utf-8"
			}
			w.Header().Set("Content-Type", kind)
			fmt.Fprint(w, body)
		}
	}))
	t.Cleanup(s.canary.Close)
	t.Cleanup(s.Close)
	return s
}

// A uiBrowser is a Chromium with a list of its requests.
type uiBrowser struct {
	ctx   context.Context
	mu    sync.Mutex // guards asked
	asked []string
}

func newUIBrowser(t *testing.T) *uiBrowser {
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(string(chromiumPath(t))), chromedp.NoSandbox,
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("disable-gpu", true), chromedp.UserDataDir(t.TempDir()))
	alloc, endAlloc := chromedp.NewExecAllocator(t.Context(), opts...)
	t.Cleanup(endAlloc)
	b := &uiBrowser{}
	ctx, end := chromedp.NewContext(alloc, chromedp.WithListener(func(e any) {
		if e, is := e.(*network.EventRequestWillBeSent); is {
			b.mu.Lock()
			b.asked = append(b.asked, e.Request.URL)
			b.mu.Unlock()
		}
	}))
	t.Cleanup(end)
	b.ctx = ctx
	if err := chromedp.Do(ctx); err != nil { // which starts it
		t.Fatal(err)
	}
	return b
}

func (b *uiBrowser) do(t *testing.T, what string, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 30*time.Second)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// evaluate returns the result of an action.
func evaluate[T any](t *testing.T, b *uiBrowser, what string, a chromedp.Action[T]) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 30*time.Second)
	defer cancel()
	x, err := chromedp.Run(ctx, a)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	return x
}

// text returns a page's title and text.
func (b *uiBrowser) text(t *testing.T, url string) string {
	t.Helper()
	b.do(t, url, chromedp.Navigate(url))
	return evaluate(t, b, url, chromedp.Evaluate[string]("document.title + '\\n' + document.body.innerText"))
}

// barriers returns the serious accessibility problems that axe finds on the open page, for screen readers and
// keyboards. Parts of archived pages are ignored. Without KUMO_TEST_AXE, a file with axe, it returns "".
func (b *uiBrowser) barriers(t *testing.T, what string) string {
	name := os.Getenv("KUMO_TEST_AXE")
	if name == "" {
		return ""
	}
	axe, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	const run = `axe.run({iframes: false}).then(found => found.violations.filter(v => ["serious", "critical"].includes(v.impact))
		.map(v => v.id + ": " + v.help + " (" + v.nodes.map(n => n.target.join(" ")).join(", ") + ")").join("\n"))`
	return evaluate(t, b, what, chromedp.Evaluate[string](string(axe)+"\n"+run, chromedp.EvalAwaitPromise))
}

// prefer sets the preference for light or dark pages.
func prefer(scheme string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
		return err
	})
}

// shoot takes pictures of a page, wide and narrow, light and dark, if a folder for them is named.
func (b *uiBrowser) shoot(t *testing.T, name, url string) {
	dir := os.Getenv("KUMO_TEST_SCREENSHOTS")
	if dir == "" {
		return
	}
	for _, width := range []int64{1280, 390} {
		for _, scheme := range []string{"light", "dark"} {
			b.do(t, name, chromedp.EmulateViewport(width, 844), prefer(scheme), chromedp.Navigate(url),
				chromedp.Sleep(300*time.Millisecond))
			picture := evaluate(t, b, name, chromedp.FullScreenshot(100))
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%d-%s.png", name, width, scheme)), picture,
				0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestPageInBrowser crawls a site of hostile pages, and opens every view of the crawl in a real Chromium: no script of
// a page runs, only kumo receives requests, and the controls work. KUMO_TEST_SCREENSHOTS names a folder for pictures.
// The test is skipped where there is no Chromium, unless CI requires one.
func TestPageInBrowser(t *testing.T) {
	b := newUIBrowser(t)
	s := newHostileSite(t)
	dir := filepath.Join(t.TempDir(), "hostile")
	crawl := exec.Command(kumoProgram(t), "crawl", "-q", "--delay", "0", "--per-host", "4", "--timeout", "60s",
		"--allow-private", "--embeds", "--index", "--ui=127.0.0.1:0",
		"-o", dir, s.URL+"/")
	crawl.Stderr = os.Stderr
	if err := crawl.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- crawl.Wait() }()
	defer func() {
		_ = crawl.Process.Signal(syscall.SIGKILL) // it has ended already if all went well
	}()
	page := pageIn(t, dir)
	at := page.url
	b.do(t, "the URL with the token", chromedp.Navigate(page.link()), chromedp.WaitVisible("h1"))
	records := waitFor(t, func() string {
		text := page.fetched(t, "api/v1/crawls/hostile/records")
		if strings.Contains(text, "/evil.html") && strings.Contains(text, "/pic.svg") && strings.Contains(text, "own.css") {
			return text
		}
		return ""
	})
	waitFor(t, func() string {
		if text := page.fetched(t, "api/v1/crawls/hostile/search?words=type:text/html&using=index"); strings.Contains(text,
			"/evil.html") {
			return text
		}
		return ""
	})
	var views []string
	for _, path := range []string{"", "crawls", "crawls/hostile?span=all", "crawls/hostile/hosts",
		"crawls/hostile/hosts?by=name&prefix=127",
		"crawls/hostile/hosts/" + strings.TrimPrefix(s.URL, "http://"), "crawls/hostile/urls", "crawls/hostile/urls?url=" +
			s.URL + "/evil.html",
		"crawls/hostile/pages", "crawls/hostile/pages?status=2xx&type=text/", "crawls/hostile/pages?words=type:text/html",
		"crawls/hostile/pages?words=x:y",
		"crawls/hostile/act/add", "crawls/hostile/act/limit", "nowhere"} {
		views = append(views, at+path)
	}
	for _, id := range []int64{idOf(t, records, "/evil.html"), idOf(t, records, "/pic.svg"), idOf(t, records, s.URL+"/")} {
		for _, show := range []string{"headers", "text", "links", "page"} {
			views = append(views, fmt.Sprintf("%scrawls/hostile/pages/%d?show=%s", at, id, show))
		}
	}
	for i, view := range views {
		b.do(t, view, prefer([]string{"light", "dark"}[i%2]))
		if text := b.text(t, view); !strings.Contains(text, "kumo") || strings.HasPrefix(text, "ran") {
			t.Errorf("%s is\n%s", view, text)
		}
		if found := b.barriers(t, view); found != "" {
			t.Errorf("%s has barriers:\n%s", view, found)
		}
	}
	for _, scheme := range []string{"dark", "light"} { // the views with most colours
		for _, view := range []string{at + "crawls/hostile", at + "crawls", at + "crawls/hostile/pages",
			at + "crawls/hostile/pages?words=type:text"} {
			b.do(t, view, prefer(scheme), chromedp.Navigate(view))
			if found := b.barriers(t, view); found != "" {
				t.Errorf("%s, %s, has barriers:\n%s", view, scheme, found)
			}
		}
	}
	evil := idOf(t, records, "/evil.html")
	if text := b.text(t, fmt.Sprintf("%scrawls/hostile/pages/%d", at, evil)); !strings.Contains(text,
		"<script>document.title='ran'</script>") ||
		!strings.Contains(text, "U+202E") {
		t.Errorf("the title is not to be seen in\n%s", text)
	}
	b.do(t, "the page as archived", chromedp.Navigate(fmt.Sprintf("%scrawls/hostile/pages/%d?show=page", at, evil)))
	archived := strings.TrimSuffix(at, "/") + evaluate(t, b, "the frame", chromedp.AttributeValue("iframe", "src")).Value
	if text := b.text(t, archived); !strings.Contains(text, "Some words") || strings.HasPrefix(text, "ran") {
		t.Errorf("the page as archived: %s", text)
	}
	b.do(t, "a link in the archive", chromedp.Click("#home"), chromedp.WaitVisible("#own"))
	home := evaluate(t, b, "its style", chromedp.Evaluate[string]("getComputedStyle(document.getElementById('own')).color"))
	if home != "rgb(1, 2, 3)" {
		t.Errorf("the style of a page in the archive gives %s", home)
	}
	b.do(t, "a link out of the archive", chromedp.Navigate(archived), chromedp.Click("#away"), chromedp.WaitVisible("h1"))
	b.do(t, "a form in the archive", chromedp.Navigate(archived), chromedp.Click("#send"),
		chromedp.Sleep(200*time.Millisecond))
	b.mu.Lock()
	for _, url := range b.asked {
		if !strings.HasPrefix(url, at) && !strings.HasPrefix(url, "data:") && !strings.HasPrefix(url, "about:") {
			t.Errorf("asked for %s", url)
		}
	}
	b.mu.Unlock()
	if n := s.hits.Load(); n > 0 {
		t.Errorf("what pages reach for was asked for %d times", n)
	}

	for name, path := range map[string]string{"overview": "crawls/hostile", "crawls": "crawls",
		"pages": "crawls/hostile/pages", "hosts": "crawls/hostile/hosts",
		"explain": "crawls/hostile/urls?url=" + s.URL + "/evil.html", "add": "crawls/hostile/act/add",
		"record": fmt.Sprintf("crawls/hostile/pages/%d", evil), "archived": fmt.Sprintf("crawls/hostile/pages/%d?show=page",
			evil)} {
		b.shoot(t, name, at+path)
	}

	overview := at + "crawls/hostile"
	b.do(t, "pause", chromedp.Navigate(overview), chromedp.Click(`a[href$="/act/pause"]`),
		chromedp.Click(`button[name=sure]`),
		chromedp.WaitVisible(`.state.paused`), chromedp.WaitVisible(`.word.done`))
	b.do(t, "resume", chromedp.Click(`a[href$="/act/resume"]`), chromedp.Click(`button[name=sure]`),
		chromedp.WaitVisible(`.state.running`))
	b.do(t, "add", chromedp.Click(`a[href$="/act/add"]`), chromedp.SendKeys("#value", s.URL+"/late\n"+s.URL+"/"),
		chromedp.Click(`.act .main`),
		chromedp.Click(`button[name=sure]`), chromedp.WaitVisible(`.word.done`))
	if said := evaluate(t, b, "what was added", chromedp.Text(`.word.done`)); said != "Done: 2 URLs added, 1 of them new" {
		t.Errorf("it says %q", said)
	}
	waitFor(t, func() string {
		return strings.TrimPrefix(page.fetched(t, "api/v1/crawls/hostile/records?prefix="+strings.TrimPrefix(s.URL, "http://")+
			"/late"), `{"records":[]`)
	})
	b.do(t, "limit", chromedp.Navigate(overview), chromedp.Click(`a[href$="/act/limit"]`),
		chromedp.SendKeys("#value", "123"), chromedp.Click(`.act .main`),
		chromedp.Click(`button[name=sure]`), chromedp.WaitVisible(`.word.done`))
	if out, err := exec.Command(kumoProgram(t), "set", "-o", dir).CombinedOutput(); err != nil ||
		!strings.Contains(string(out), "123") {
		t.Errorf("the limit: %v, %s", err, out)
	}
	b.do(t, "the limit again", chromedp.Click(`a[href$="/act/limit"]`), chromedp.WaitVisible(`//b/bdi[text()='123']`))
	b.do(t, "delay", chromedp.Navigate(at+"crawls/hostile/hosts/"+strings.TrimPrefix(s.URL, "http://")),
		chromedp.Click(`a[href*="/act/delay"]`),
		chromedp.SendKeys("#value", "7s"), chromedp.Click(`.act .main`), chromedp.Click(`button[name=sure]`),
		chromedp.WaitVisible(`.word.done`))
	if text := page.fetched(t, "api/v1/crawls/hostile/hosts/"+strings.TrimPrefix(s.URL, "http://")); !strings.Contains(text,
		`"delay":7000000000`) {
		t.Errorf("the host's delay: %s", text)
	}
	b.do(t, "stop", chromedp.Navigate(overview), chromedp.Click(`a[href$="/act/stop"]`),
		chromedp.Click(`button[name=sure]`),
		chromedp.WaitVisible(`//h1[text()='The crawl is ending']`))
	close(s.hold)
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Error("the crawl goes on")
	}
	before := s.hits.Load() // or the test would prove nothing
	b.do(t, "the page itself", chromedp.Navigate(s.URL+"/evil.html"), chromedp.Sleep(500*time.Millisecond))
	if s.hits.Load() == before {
		t.Error("the page itself asks for nothing: what was found above says nothing")
	}
}
