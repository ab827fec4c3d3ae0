package synthweb

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"kumo/internal/content/appshell"
)

// TestScriptShare: pages that need script have no content without it, and their data have the links of the page.
func TestScriptShare(t *testing.T) {
	cfg := Clean(1, 12, 600)
	plain := New(cfg)
	cfg.ScriptShare = 0.3
	w := New(cfg)
	styles, pages := map[string]int{}, 0
	for url := range w.Truth(TruthOptions{}).All(80) {
		r, _ := w.refOf(url)
		if r.Kind != Page {
			continue
		}
		pages++
		a, err := w.Page(url)
		if err != nil {
			t.Fatal(err)
		}
		style := w.ScriptStyle(url)
		if style == "" {
			if b, _ := plain.Page(url); string(a.Body) != string(b.Body) {
				t.Errorf("%s differs from the page of a web without script", url)
			}
			continue
		}
		styles[style]++
		if appshell.Detect(a.Body) == "" || strings.Contains(string(a.Body), "<a ") {
			t.Errorf("%s: %s", url, a.Body)
		}
		data, err := w.Page(w.URL(Ref{r.Host, r.N, Data}, 80))
		if err != nil {
			t.Fatal(err)
		}
		var content struct{ Links []string }
		if err := json.Unmarshal(data.Body, &content); err != nil || data.Header.Get("Content-Type") != "application/json" {
			t.Fatalf("%s: %v: %s", url, err, data.Body)
		}
		var want []string
		for _, l := range w.links(nil, r) {
			if l.via == byLink {
				address := w.URL(l.Ref, 80)
				if l.Host == r.Host {
					address = string(w.appendPath(nil, l.Ref, false))
				}
				want = append(want, address)
			}
		}
		if !slices.Equal(content.Links, want) {
			t.Errorf("%s has the links %q, want %q", url, content.Links, want)
		}
		if style == "stream" && !strings.Contains(string(a.Body), `\"links\":`) {
			t.Errorf("%s: %s", url, a.Body)
		}
		if app, err := w.Page(w.URL(Ref{r.Host, 0, App}, 80)); err != nil || app.Status != 200 {
			t.Errorf("the script of %s: %d, %v", url, app.Status, err)
		}
	}
	need := 0
	for _, n := range styles {
		need += n
	}
	if len(styles) != len(scriptStyles) || need < pages/4 || need > pages*35/100 {
		t.Errorf("of %d pages, %d need script: %v", pages, need, styles)
	}
	if _, has := plain.refOf("http://h0000.synth.test/app/0.js"); has {
		if a, _ := plain.Page("http://h0000.synth.test/app/0.js"); a.Status != 404 {
			t.Errorf("a web without script has one: %d", a.Status)
		}
	}
}
