package main

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestServedInBrowser opens all views of batch crawls of hostile pages, and of an experiment with manipulated files, in
// a real Chromium: no script runs, and only kumo receives requests. See [TestPageInBrowser].
func TestServedInBrowser(t *testing.T) {
	b := newUIBrowser(t)
	s := newHostileSite(t)
	close(s.hold)
	dir := t.TempDir()
	news, results, config := filepath.Join(dir, "news"), filepath.Join(dir, "results"), filepath.Join(dir, "en.yaml")
	text := fmt.Sprintf("code: en\nseeds: [%q]\ninterval: 0s\nlanguage: {share: 0, confidence: 0}\n", s.URL+"/")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"batch", "run", "-q", "--allow-private", "--ip-delay", "0", "--place", news, "--date",
		"2026-11-21", config},
		{"batch", "run", "-q", "--allow-private", "--ip-delay", "0", "--place", news, "--date", "2098-01-01", config},
		{"sim", "rank", "--pages", "1000", "--top", "20", "--out", filepath.Join(results, "rank")}} {
		if out, err := exec.Command(kumoProgram(t), args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	evil := `<svg xmlns="http://www.w3.org/2000/svg" onload="document.title='ran'"><script>document.title='ran';fetch('` +
		s.canary.URL + `/x')</script>` +
		`<image href="` + s.canary.URL + `/svg.png"/><text y="20">a plot</text></svg>`
	if err := os.WriteFile(filepath.Join(results, "rank", "rank.svg"), []byte(evil), 0o600); err != nil {
		t.Fatal(err)
	}
	served := exec.Command(kumoProgram(t), "serve", "--listen", "127.0.0.1:0", news, results)
	served.Stderr = os.Stderr
	if err := served.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = served.Process.Signal(syscall.SIGINT)
		_ = served.Wait()
	}()
	page := pageIn(t, news)
	at := page.url
	b.do(t, "the URL with the token", chromedp.Navigate(page.link()), chromedp.WaitVisible("h1"))
	day := "batches/news/collections/en/days/2026-11-21"
	record := day + "/page?url=" + url.QueryEscape(s.URL+"/evil.html")
	views := map[string]string{"list": "crawls", "collections": "batches/news",
		"collection": "batches/news/collections/en", "day": day,
		"find": day + "?find=" + url.QueryEscape(hostileTitle), "batch-text": record, "batch-xml": record + "&show=xml",
		"batch-headers": record + "&show=headers",
		"unchanged":     strings.Replace(record, "2026-11-21", "2098-01-01", 1), "none": day + "/page?url=" +
			url.QueryEscape("http://never.example/<script>"),
		"experiments": "experiments", "experiment": "experiments/rank", "table": "experiments/rank/tables/curves.csv",
		"plot": "experiments/rank/files/rank.svg"}
	i := 0
	for name, path := range views {
		i++
		b.do(t, name, prefer([]string{"light", "dark"}[i%2]))
		if name == "plot" { // not a page
			b.do(t, name, chromedp.Navigate(at+path))
			if title := evaluate(t, b, name, chromedp.Evaluate[string]("document.title")); title != "" {
				t.Errorf("the plot's title is %q", title)
			}
			continue
		}
		if text := b.text(t, at+path); !strings.Contains(text, "kumo") || strings.HasPrefix(text, "ran\n") {
			t.Errorf("%s is\n%s", path, text)
		}
		if found := b.barriers(t, name); found != "" {
			t.Errorf("%s has barriers:\n%s", path, found)
		}
	}
	if text := b.text(t, at+record); !strings.Contains(text, "Some words") || !strings.Contains(text, "Home") &&
		!strings.Contains(text, "U+202E") {
		t.Errorf("the record is\n%s", text)
	}
	b.mu.Lock()
	for _, asked := range b.asked {
		// an image of the plot viewed as a page: reported by the browser, but blocked by its policy
		if asked == s.canary.URL+"/svg.png" {
			continue
		}
		if !strings.HasPrefix(asked, at) && !strings.HasPrefix(asked, "data:") && !strings.HasPrefix(asked, "about:") {
			t.Errorf("asked for %s", asked)
		}
	}
	b.mu.Unlock()
	if n := s.hits.Load(); n > 0 {
		t.Errorf("what pages and pictures reach for was asked for %d times", n)
	}
	for name, path := range views {
		b.shoot(t, name, at+path)
	}
}
