package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"html"
	"image"
	"image/color"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kumo/internal/lab/testmain"

	"golang.org/x/text/encoding/charmap"
)

// TestMirrorInBrowser copies a made site on three hosts, shuts the servers down, and opens the files in a real
// Chromium. Its only network access is a proxy that refuses every request. Nothing may be requested, every image is
// shown, styles and fonts apply, and each page is decoded with its charset. KUMO_TEST_SCREENSHOT names a file for a
// picture of the page. The test is skipped where there is no Chromium, unless CI requires one.
func TestMirrorInBrowser(t *testing.T) {
	testmain.Slow(t)
	t.Parallel()
	browser, font := chromiumPath(t), madeFont(t)
	web := newBrowsedWeb(t, font)
	dir := filepath.Join(t.TempDir(), "mirror")
	out, err := exec.Command(kumoProgram(t), "mirror", "--delay", "0", "--allow-private", web.site+"/",
		dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
	web.close()

	proxy := newRefusal(t)
	host := strings.ReplaceAll(strings.TrimPrefix(web.site, "http://"), ":", "+")
	page := func(name string) string { return "file://" + filepath.Join(dir, host, name) }
	dom := browser.dump(t, proxy.URL, page("index.html"))
	m := regexp.MustCompile(`data-found="([^"]*)"`).FindStringSubmatch(dom)
	if m == nil {
		t.Fatalf("the page's script has not run:\n%s", dom)
	}
	var found struct {
		Images map[string]int
		Styles map[string]string
		Fonts  []string
	}
	if err := json.Unmarshal([]byte(html.UnescapeString(m[1])), &found); err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", found)
	for _, id := range []string{"plain", "query", "far", "srcset", "picture", "moved", "svg", "name", "based"} {
		if found.Images[id] == 0 {
			t.Errorf("the image %s is not shown", id)
		}
	}
	for what, want := range map[string]string{"own": "rgb(1, 2, 3)", "imported": "rgb(4, 5, 6)",
		"inline": "rgb(7, 8, 9)"} {
		if got := found.Styles[what]; got != want {
			t.Errorf("the style %s gives %q, want %s", what, got, want)
		}
	}
	for _, what := range []string{"background", "element", "attribute"} {
		if got := found.Styles[what]; !strings.HasPrefix(got, `url("file://`) {
			t.Errorf("the background of the %s is %s", what, got)
		}
	}
	if !slices.Contains(found.Fonts, "made loaded") {
		t.Errorf("fonts: %v", found.Fonts)
	}
	for name, text := range map[string]string{"cyrillic.html": "Привет, мир", "greek.html": "Καλημέρα",
		"list.php@id=1&x=2.html": "a list",
		"moved.html":             "Привет, мир"} {
		if dom := browser.dump(t, proxy.URL, page(name)); !strings.Contains(dom, text) {
			t.Errorf("%s has not %q:\n%s", name, text, dom)
		}
	}
	if dom := browser.dump(t, proxy.URL, "file://"+filepath.Join(dir, "index.html")); !strings.Contains(dom,
		"A made site") {
		t.Errorf("the first page leads to\n%s", dom)
	}
	if file := os.Getenv("KUMO_TEST_SCREENSHOT"); file != "" {
		browser.run(t, proxy.URL, "--screenshot="+file, "--window-size=900,700", page("index.html"))
	}
	if asked := proxy.asked(); len(asked) > 0 {
		t.Errorf("asked for over a network: %q", asked)
	}
	// a request reaches the proxy, or the test would prove nothing
	control := filepath.Join(t.TempDir(), "control.html")
	if err := os.WriteFile(control, []byte("<img src="+web.site+"/p.png>"), 0o644); err != nil {
		t.Fatal(err)
	}
	if browser.dump(t, proxy.URL, "file://"+control); len(proxy.asked()) == 0 {
		t.Error("the browser does not ask by way of the proxy")
	}
}

// A browsedWeb is a made site whose pages need two other hosts.
type browsedWeb struct {
	site  string
	close func()
}

func newBrowsedWeb(t *testing.T, font []byte) *browsedWeb {
	picture := madePicture(t)
	cyrillic, err := charmap.Windows1251.NewEncoder().String("<title>x</title><p>Привет, мир <a href='/'>домой</a>")
	if err != nil {
		t.Fatal(err)
	}
	greek, err := charmap.ISO8859_7.NewEncoder().String("<meta charset=iso-8859-7><title>x</title><p>Καλημέρα")
	if err != nil {
		t.Fatal(err)
	}
	type answer struct{ contentType, body string }
	var far, cdn, site *httptest.Server
	serve := func(answers func() map[string]answer) *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			a, ok := answers()[r.URL.RequestURI()]
			switch {
			case !ok:
				http.NotFound(w, r)
			case a.contentType == "":
				http.Redirect(w, r, a.body, http.StatusFound)
			default:
				w.Header().Set("Content-Type", a.contentType)
				_, _ = io.WriteString(w, a.body)
			}
		}))
		t.Cleanup(s.Close)
		return s
	}
	far = serve(func() map[string]answer {
		return map[string]answer{
			"/far.png":     {"image/png", picture},
			"/deep.css":    {"text/css", `#imported { color: rgb(4, 5, 6) }`},
			"/made.ttf":    {"font/ttf", string(font)},
			"/b/based.png": {"image/png", picture},
		}
	})
	cdn = serve(func() map[string]answer {
		return map[string]answer{
			"/style.css?v=3": {"text/css", `@import "` + far.URL + `/deep.css"; @font-face { font-family: made; src: url(` +
				far.URL + `/made.ttf) }
				#own { color: rgb(1, 2, 3); font-family: made } #background { background: url("img/bg (1).png") }`},
			"/img/bg%20(1).png": {"image/png", picture},
			"/2x.png":           {"image/png", picture},
			"/check.js":         {"text/javascript", checkScript},
		}
	})
	site = serve(func() map[string]answer {
		return map[string]answer{
			"/": {"text/html; charset=utf-8", `<!doctype html><html><head><title>A made site</title>
				<meta http-equiv="Content-Security-Policy" content="default-src 'self' 'unsafe-inline' ` + cdn.URL + " " + far.URL +
				`">
				<link rel="preconnect" href="` + cdn.URL + `">
				<link rel=stylesheet href="` + cdn.URL + `/style.css?v=3" integrity="` + "sha256-" + strings.Repeat("A", 43) +
				`=" crossorigin=anonymous disabled-not>
				<style>#element { background: url(p.png) } #inline { color: rgb(7, 8, 9) }</style></head><body>
				<h1 id=own>A made site</h1><p id=imported>imported<p id=inline>inline
				<p id=background>background<p id=element>element<p id=attribute style="background: url(&quot;p.png&quot;)">attribute
				<p><img id=plain src=p.png><img id=query src="p.png?a=1&amp;b=/x"><img id=far src="` + far.URL +
				`/far.png" crossorigin>
				<img id=srcset srcset="` + cdn.URL + `/2x.png 2x, p.png 0.5x"><picture><source srcset="` + cdn.URL +
				`/2x.png 1x"><img id=picture src=none.png></picture>
				<img id=moved src="old.png"><img id=svg src=s.svg><img id=name src="CON/a%3Ab*c.png"><iframe id=frame srcdoc='<img src=p.png>'></iframe>
				<img id=based src="` + far.URL + `/b/../b/based.png">
				<p><a href="cyrillic.html">cyrillic</a> <a href=greek.html>greek</a> <a href="list.php?id=1&amp;x=2#here">list</a> <a href=moved>moved</a>
				<a href="http://away.example/">away</a><form action=search><input name=q></form>
				<script src="` + cdn.URL + `/check.js" crossorigin></script></body></html>`},
			"/p.png": {"image/png", picture}, "/p.png?a=1&b=/x": {"image/png", picture},
			"/CON/a%3Ab*c.png": {"image/png", picture}, "/old.png": {"", far.URL + "/far.png"},
			"/s.svg":             {"image/svg+xml", `<svg xmlns="http://www.w3.org/2000/svg" width="30" height="30"><circle r="12" cx="15" cy="15"/></svg>`},
			"/cyrillic.html":     {"text/html; charset=windows-1251", cyrillic},
			"/greek.html":        {"text/html", greek},
			"/list.php?id=1&x=2": {"text/html", `<base href="/deep/er/"><title>x</title><p id=here>a list <a href="../../">home</a>`},
			"/moved":             {"", "/cyrillic.html"},
		}
	})
	return &browsedWeb{site.URL, func() { site.Close(); cdn.Close(); far.Close() }}
}

// checkScript writes the state of the page into an attribute of it, once everything has loaded.
const checkScript = `addEventListener("load", async () => {
	await document.fonts.ready
	const found = {images: {}, styles: {}, fonts: [...document.fonts].map(f => f.family + " " + f.status)}
	for (const i of document.images) if (i.id) found.images[i.id] = i.naturalWidth
	for (const id of ["own", "imported", "inline"]) found.styles[id] = getComputedStyle(document.getElementById(id)).color
	for (const id of ["background", "element", "attribute"])
		found.styles[id] = getComputedStyle(document.getElementById(id)).backgroundImage
	document.body.dataset.found = JSON.stringify(found)
})`

func madePicture(t *testing.T) string {
	img := image.NewRGBA(image.Rect(0, 0, 24, 24))
	for x := range 24 {
		for y := range 24 {
			img.Set(x, y, color.RGBA{uint8(10 * x), uint8(10 * y), 128, 255})
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A refusal is a proxy that refuses every request, and records the URLs.
type refusal struct {
	*httptest.Server
	mu  sync.Mutex
	all []string
}

func newRefusal(t *testing.T) *refusal {
	r := &refusal{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		r.all = append(r.all, req.Method+" "+req.Host+" "+req.URL.Path)
		r.mu.Unlock()
		http.Error(w, "no", http.StatusForbidden)
	}))
	t.Cleanup(r.Close)
	return r
}

// asked lists the requested URLs, without Chromium's own requests to its vendor.
func (r *refusal) asked() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	makers := regexp.MustCompile(`^\S+ ([a-z0-9-]+\.)*(google|googleapis|gstatic|gvt1)\.com(:443)? `)
	return slices.DeleteFunc(slices.Clone(r.all), makers.MatchString)
}

// A browserProgram is a Chromium.
type browserProgram string

func chromiumPath(t *testing.T) browserProgram {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return browserProgram(path)
		}
	}
	if os.Getenv("CI") != "" {
		t.Fatal("there is no Chromium, which CI must have")
	}
	t.Skip("SKIPPED: there is no Chromium; apt-get install chromium")
	return ""
}

// run runs Chromium without a window and returns what it prints.
func (b browserProgram) run(t *testing.T, proxy string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	args = append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--user-data-dir=" +
		t.TempDir(),
		"--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--disable-default-apps",
		"--disable-extensions", "--proxy-server=" + proxy, "--proxy-bypass-list=<-loopback>", "--virtual-time-budget=5000"},
		args...)
	cmd := exec.CommandContext(ctx, string(b), args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.Bytes())
	}
	return string(out)
}

// dump returns the document after scripts have run.
func (b browserProgram) dump(t *testing.T, proxy, url string) string {
	t.Helper()
	return b.run(t, proxy, "--dump-dom", url)
}

// madeFont is a font of one glyph, a box for an A.
func madeFont(t *testing.T) []byte {
	data, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(tinyFont, "\n", ""))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

const tinyFont = `AAEAAAAKAIAAAwAgT1MvMkUgRcUAAAEoAAAAYGNtYXAADACUAAABkAAAADRnbHlmTRZnoAAAAcwAAAAwaGVhZGHSQ5wAAACsAAAANmhoZWEF3gK+AAAA
5AAAACRobXR4AyAAAAAAAYgAAAAGbG9jYQAYAAwAAAHEAAAABm1heHAABAAGAAABCAAAACBuYW1lPz2cZgAAAfwAAABXcG9zdAADAAAAAAJUAAAAIAAB
AAAAAQAALLl7HF8PPPUAAwPoAAAAAAAAAAAAAAAAAAAAAAAAAAACvAK8AAAAAwACAAAAAAAAAAEAAAMg/zgAAAMgAAAAZAK8AAEAAAAAAAAAAAAAAAAA
AAABAAEAAAACAAQAAQAAAAAAAgAAAAAAAAAAAAAAAAAAAAAAAwMgAZAABQAEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAABAAAAAAAA
AAAAAAAAPz8/PwAAAEEAQQMgAAAAAAMgAMgAAAAAAAAAAAAAAAAAAAAgAAADIAAAAAAAAAAAAAIAAAADAAAAFAADAAEAAAAUAAQAIAAAAAQABAABAAAA
Qf//AAAAQf///8AAAQAAAAAAAAAMABgAAAABAAAAAAK8ArwAAwAAMREhEQK8Arz9RAABAAAAAAK8ArwAAwAAMREhEQK8Arz9RAAAAAQANgABAAAAAAAB
AAQAAAABAAAAAAACAAcABAADAAEECQABAAgACwADAAEECQACAA4AE21hZGVSZWd1bGFyAG0AYQBkAGUAUgBlAGcAdQBsAGEAcgAAAwAAAAAAAAAAAAAA
AAAAAAAAAAAAAAAAAAAAAAAAAA==`
