package wire

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kumo/internal/base/vfs"
	"kumo/internal/engine/crawl"
	"kumo/internal/state/seen"
)

// soonEnough is a time limit for a crawl of some pages on a busy machine.
const soonEnough = time.Minute

// TestNoLineStopsACrawl: unfetchable URLs in robots.txt, feeds, headers and pages do not block the crawl.
func TestNoLineStopsACrawl(t *testing.T) {
	t.Parallel()
	strange := []string{"mailto:a@b", "data:,x", "javascript:1", "urn:a:b", "file:///x", "gopher://a.test/",
		"ftp://a.test/x", "about:blank", "http:///", "x:"}
	list := func(before, after string) (all string) {
		for _, url := range strange {
			all += before + url + after
		}
		return all
	}
	say := func(mediaType, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", mediaType)
			for _, url := range strange {
				w.Header().Add("Link", "<"+url+">; rel=next")
			}
			w.Header().Set("Refresh", "0; url="+strange[0])
			io.WriteString(w, withPort(body, r))
		}
	}
	pages := map[string]http.HandlerFunc{
		"a.test/robots.txt": say("text/plain", list("Sitemap: ", "\n")+"Sitemap: /map.xml\nSitemap: /index.xml\n"),
		"a.test/map.xml":    say("text/xml", "<urlset>"+list("<url><loc>", "</loc></url>")+"</urlset>"),
		"a.test/index.xml":  say("text/xml", "<sitemapindex>"+list("<sitemap><loc>", "</loc></sitemap>")+"</sitemapindex>"),
		"a.test/feed": say("application/rss+xml", "<rss><channel>"+list("<item><link>",
			"</link></item>")+"</channel></rss>"),
		"a.test/": say("text/html", list(`<a href="`, `"></a>`)+list(`<meta http-equiv=refresh content="0;url=`, `">`)+
			list(`<link rel=canonical href="`, `">`)+list(`<base href="`,
			`">`)+`<a href="http://a.test:PORT/feed"></a><a href="http://a.test:PORT/to0"></a>`),
	}
	for i, url := range strange {
		next := "/to" + string(rune('0'+i+1))
		pages["a.test/to"+string(rune('0'+i))] = func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", url)
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(http.StatusFound)
			io.WriteString(w, "<a href="+next+"></a>")
		}
	}
	s := newSite(t, pages)
	j := s.job(t, "a.test/")
	ctx, cancel := context.WithTimeout(t.Context(), soonEnough)
	defer cancel()
	if err := run(t, ctx, j); err != nil {
		t.Error(err)
	}
	for _, path := range []string{"a.test/map.xml", "a.test/index.xml", "a.test/feed", "a.test/to0"} {
		if !s.wasAsked(path) {
			t.Errorf("%s was not asked for", path)
		}
	}
}

func (s *site) wasAsked(path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, asked := range s.asked {
		if asked == path {
			return true
		}
	}
	return false
}

// TestWhatNobodyWillWakeIsSaid: URLs that wait for an event that never happens are abandoned, listed, and the error of
// the run; the next run fetches them.
func TestWhatNobodyWillWakeIsSaid(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]http.HandlerFunc{"a.test/": html("<a href=/2>"), "a.test/2": html("2"),
		"b.test/": html("b")})
	j := s.job(t, "a.test/")
	j.Seeds = append(j.Seeds, s.url("b.test/"))
	c, err := Open(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	c.Frontier.Park("a.test"+s.port(), "http://nobody.test")
	ctx, cancel := context.WithTimeout(t.Context(), soonEnough)
	defer cancel()
	report, err := c.Run(ctx)
	if !errors.Is(err, crawl.ErrStuck) || !strings.Contains(err.Error(), s.url("a.test/")) || report.Abandoned != 1 ||
		!strings.Contains(report.Ended, "not all URLs were fetched") {
		t.Errorf("%v; %+v", err, report)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	wantVerified(t, j.Dir)
	if skipped, err := os.ReadFile(j.Dir + "/skipped.jsonl"); err != nil || !strings.Contains(string(skipped),
		"the robots.txt of http://nobody.test") {
		t.Errorf("%s; %v", skipped, err)
	}
	if err := run(t, ctx, j); err != nil {
		t.Error(err)
	}
	if !s.wasAsked("a.test/2") {
		t.Error("the next run did not fetch it")
	}
}

// TestWhatAnEarlierVersionLetInIsNotLost: the URL database of an earlier version's crawl contains unfetchable URLs.
// This is no fault.
func TestWhatAnEarlierVersionLetInIsNotLost(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]http.HandlerFunc{"a.test/": html("a")})
	j := s.job(t, "a.test/")
	mustRun(t, j)
	db, err := seen.Open(vfs.OS, filepath.Join(j.Dir, "state", "seen"), seen.Config{})
	if err != nil {
		t.Fatal(err)
	}
	db.InsertKnown([]seen.URL{{URL: "mailto:a@b", State: seen.Known}, {URL: "ftp://a.test/", State: seen.Known}})
	db.Freeze(db.Position())
	if err := errors.Join(db.Merge(t.Context(), nil), db.Close()); err != nil {
		t.Fatal(err)
	}
	mustRun(t, j)
	wantVerified(t, j.Dir)
}
