package render_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kumo"
	"kumo/internal/content/render/chromium"
	"kumo/render"
)

// serve serves an app whose script fetches items and links to them.
func serve() *httptest.Server {
	pages := map[string]string{
		"/": `<!doctype html><title>Loading</title><noscript>You need to enable JavaScript to run this app.</noscript>` +
			`<div id="root"></div><script src="/main.js"></script>`,
		"/main.js": `document.title = 'Shop'; fetch('/items.json').then(r => r.json()).then(all => {
			root.innerHTML = '<h1>Articles</h1>' + all.map(n => '<p><a href="/item/' + n + '">Article ' + n + '</a>').join('') })`,
		"/items.json": `[1]`, "/item/1": `<title>Article 1</title><p>An article.`,
	}
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := pages[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		switch filepath.Ext(r.URL.Path) {
		case ".js":
			w.Header().Set("Content-Type", "text/javascript")
		case ".json":
			w.Header().Set("Content-Type", "application/json")
		default:
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
		}
		io.WriteString(w, body)
	}))
}

func Example() {
	if _, err := chromium.Find(""); err != nil {
		fmt.Println("Shop: 1 link") // there is no browser on this machine
		return
	}
	s := serve()
	defer s.Close()
	r, err := render.New(render.Options{NoSandbox: os.Geteuid() == 0}) // root: only for trusted pages
	if err != nil {
		panic(err)
	}
	c := kumo.New(kumo.Render("auto", r), kumo.Depth(0))
	c.OnPage(func(p *kumo.Page) { fmt.Printf("%s: %d link\n", p.Title, len(p.Links)-1) }) // not the script
	if err := c.Run(context.Background(), s.URL); err != nil {
		panic(err)
	}
	// Output: Shop: 1 link
}

func TestRender(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: a browser takes seconds to start")
	}
	if _, err := chromium.Find(""); err != nil {
		t.Skip("SKIPPED: ", err)
	}
	s := serve()
	defer s.Close()
	dir := filepath.Join(t.TempDir(), "crawl")
	r, err := render.New(render.Options{NoSandbox: os.Geteuid() == 0, Pages: 1, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	c := kumo.New(kumo.Render("auto", r), kumo.Delay(0), kumo.Out(dir))
	var got []string
	for p, err := range c.Pages(t.Context(), s.URL) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s rendered=%v", p.Title, p.Rendered))
		if p.Title != "Shop" {
			continue
		}
		if !strings.Contains(p.HTML(), "Article 1</a>") || strings.Contains(string(p.Body), "Article 1</a>") {
			t.Errorf("document %s\nbody %s", p.HTML(), p.Body)
		}
		for h := range p.Find("h1") {
			got = append(got, h.Text())
		}
	}
	slices.Sort(got)
	if want := []string{"Article 1 rendered=true", "Articles", "Shop rendered=true"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	err = kumo.New(kumo.Out(dir)).Run(t.Context(), s.URL)
	if err == nil || !strings.Contains(err.Error(), "give it a renderer with kumo.Render") {
		t.Errorf("the crawl resumed without a renderer: %v", err)
	}
}

func TestNoBrowser(t *testing.T) {
	if _, err := render.New(render.Options{Browser: "/nowhere/chromium", NoSandbox: true}); err == nil {
		t.Error("no error")
	}
}

// A program that imports only package kumo does not link the browser's library.
func TestLinksNoBrowser(t *testing.T) {
	for _, c := range []struct {
		of    string
		links bool
	}{{"kumo", false}, {"kumo/render", true}} {
		out, err := exec.Command("go", "list", "-deps", c.of).Output()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(out), "github.com/chromedp/"); got != c.links {
			t.Errorf("%s links chromedp: %v", c.of, got)
		}
	}
}
