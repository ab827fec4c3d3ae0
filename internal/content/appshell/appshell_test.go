package appshell

import (
	"strings"
	"testing"

	"kumo/internal/base/page"
)

const (
	head = `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Shop</title></head><body>`
	// a script that builds a page, and one for statistics
	bundle     = `<script defer src="/static/js/main.4f2a.js"></script>`
	statistics = `<script async src="https://stats.example/count.js"></script>`
)

func TestDetect(t *testing.T) {
	long := strings.Repeat("A sentence that a reader can read. ", 8)
	for _, c := range []struct {
		name, page string
		want       page.ScriptNeed
	}{
		{"React", head + `<noscript>You need to enable JavaScript to run this app.</noscript><div id="root"></div>` + bundle, "root"},
		{"Vue", head + `<div id="app"></div><script type="module" src="/src/x.js"></script>`, "root"},
		{"Nuxt, loading", head + `<div id="__nuxt"><div class="spinner">Loading…</div></div>` +
			`<script type="module" src="/_nuxt/a1.js"></script>`, "root"},
		{"Next without server rendering", head + `<div id="__next"></div><script id="__NEXT_DATA__" ` +
			`type="application/json">{"props":{}}</script><script src="/_next/static/chunks/pages.js"></script>`, "root"},
		{"Angular", head + `<app-root></app-root><script src="runtime.js" type="module"></script>`, "root"},
		{"AngularJS", `<html ng-app="shop"><body><div ng-view></div><script src="/js/app.js"></script>`, "root"},
		{"Flutter", head + `<script src="flutter_bootstrap.js" async></script>`, "empty"},
		{"inline script builds it", head + `<div id="mount"></div><script>` + strings.Repeat("render(1);", 30) + `</script>`,
			"root"},
		{"own framework with a plea", head + `<div class="x"></div><noscript><p>Please turn on JavaScript.</p></noscript>` +
			bundle, "noscript"},
		{"plea in another language", head + `<noscript>Bitte aktivieren Sie Javascript.</noscript>` + bundle, "noscript"},
		{"a few links", head + `<div id="app"></div><a href="/imprint">Imprint</a> <a href="/privacy">Privacy</a>` + bundle,
			"root"},
		{"script leaves", head + `<script>window.location.replace("/en/")</script>`, "redirect"},
		{"script sets href", `<script>document.location.href = "https://www.example/home";</script>`, "redirect"},

		{"rendered on the server", head + `<div id="root"><p>` + long + `</p></div>` + bundle, ""},
		{"navigation in the markup", head + `<div id="app"></div>` +
			strings.Repeat(`<a href="/a">a</a> <a href="/b">b</a> `, 3) + bundle, ""},
		{"no script", head + `<div id="root"></div>`, ""},
		{"statistics only", head + `<p>It works!</p>` + statistics, ""},
		{"statistics with a plea", head + `<p>It works!</p><noscript>JavaScript is off.</noscript>` + statistics, ""},
		{"data only", head + `<div id="root"></div><script type="application/ld+json">` + long + `</script>`, ""},
		{"login form", head + `<div id="app"><form><input name="user"></form></div>` + bundle, ""},
		{"hidden input", head + `<div id="app"></div><input type="hidden" name="t">` + bundle, "root"},
		{"frames", head + `<iframe src="/inner"></iframe>` + bundle, ""},
		{"pictures", head + strings.Repeat(`<img src="x.jpg">`, 3) + bundle, ""},
		{"pixel in noscript", head + `<noscript><img src="https://stats.example/p.gif"><iframe src="//x"></iframe></noscript>` +
			`<div id="root"></div>` + bundle, "root"},
		{"meta refresh", `<meta http-equiv="refresh" content="0; url=/en/"><script>location.href="/en/"</script>`, ""},
		{"text about pleas", head + `<p>` + long + `You need to enable JavaScript.</p>` + bundle, ""},
		{"a button changes the page", head + `<p>Choose a language, please, then go on to the shop.</p>` +
			`<script>function go(l) { location.href = l }</script>`, ""},
		{"nothing", "", ""},
	} {
		if got := Detect([]byte(c.page)); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestLongShell: inline data does not hide that there is nothing else.
func TestLongShell(t *testing.T) {
	data := `<script type="application/json">` + strings.Repeat(`{"a":"some text of a state"},`, 10_000) + `</script>`
	if got := Detect([]byte(head + data + `<div id="root"></div>` + bundle)); got != page.ScriptRoot {
		t.Errorf("%q", got)
	}
}

func FuzzDetect(f *testing.F) {
	f.Add([]byte(head + `<div id="root"></div>` + bundle))
	f.Add([]byte(`<script>location = "/"`))
	f.Fuzz(func(t *testing.T, markup []byte) {
		if need := Detect(markup); need != "" && !strings.Contains(strings.ToLower(string(markup)), "<script") {
			t.Errorf("%q without a script", need)
		}
	})
}

func BenchmarkDetect(b *testing.B) {
	markup := []byte(head + `<noscript>You need to enable JavaScript.</noscript><div id="root"></div>` + bundle)
	b.ReportAllocs()
	for b.Loop() {
		Detect(markup)
	}
}
