package wire

import (
	"compress/gzip"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"

	"kumo/internal/app/job"
	"kumo/internal/base/weburl"
	"kumo/internal/content/policy"
)

// packed responds with a gzip file, a common form of sitemaps.
func packed(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/x-gzip")
		z := gzip.NewWriter(w)
		z.Write([]byte(withPort(body, r)))
		z.Close()
	}
}

// listed is a site with pages that only its sitemaps list.
func listed(t *testing.T) *site {
	end := html("end")
	return newSite(t, map[string]http.HandlerFunc{
		"a.test/robots.txt": body("text/plain", "Sitemap: http://a.test:PORT/maps/index.xml\nSitemap: "+
			"/maps/list.txt\nSitemap: http://b.test:PORT/s.xml\nSitemap: http://[\nUser-agent: *\nDisallow: /no\n"),
		"a.test/maps/index.xml": body("application/xml",
			`<sitemapindex><sitemap><loc>http://a.test:PORT/maps/1.xml.gz</loc></sitemap>
			<sitemap><loc>/maps/lost.xml</loc></sitemap></sitemapindex>`),
		"a.test/maps/1.xml.gz": packed(`<urlset><url><loc>http://a.test:PORT/docs/1</loc></url><url><loc>/no/2</loc></url>
			<url><loc>http://b.test:PORT/elsewhere</loc></url></urlset>`),
		"a.test/maps/list.txt": body("text/plain", "http://a.test:PORT/docs/3\nhttp://a.test:PORT/4\n"),
		"a.test/docs/":         html(`<a href=5>5</a>`), "a.test/": html(`<a href=/docs/>docs</a>`),
		"a.test/docs/1": end, "a.test/docs/3": end, "a.test/4": end, "a.test/docs/5": end,
		"c.test/": end, "c.test/sitemap.xml": body("text/xml", `<urlset><url><loc>/1</loc></url></urlset>`), "c.test/1": end,
	})
}

func TestSitemaps(t *testing.T) {
	t.Parallel()
	maps := []string{"a.test/maps/index.xml", "a.test/maps/1.xml.gz", "a.test/maps/lost.xml", "a.test/maps/list.txt",
		"b.test/s.xml"}
	for _, c := range []struct {
		name, seed string
		change     func(*job.Job)
		want       []string
	}{
		{"all that is named", "a.test/", func(*job.Job) {},
			append(maps, "a.test/", "a.test/docs/", "a.test/docs/1", "a.test/docs/3", "a.test/4", "a.test/docs/5")},
		{"below a folder", "a.test/docs/", func(j *job.Job) { j.Scope = weburl.ScopePrefix },
			append(maps, "a.test/docs/", "a.test/docs/1", "a.test/docs/3", "a.test/docs/5")},
		{"entries are a hop away", "a.test/", func(j *job.Job) { j.Crawl.Depth = 1 },
			append(maps, "a.test/", "a.test/docs/", "a.test/docs/1", "a.test/docs/3", "a.test/4")},
		{"not worth reading", "a.test/", func(j *job.Job) { j.Crawl.Depth = 0 }, []string{"a.test/"}},
		{"one page", "a.test/docs/", func(j *job.Job) { j.Scope = weburl.ScopePage }, []string{"a.test/docs/"}},
		{"ignored", "a.test/", func(j *job.Job) { j.Crawl.Sitemaps = policy.SitemapsIgnored },
			[]string{"a.test/", "a.test/docs/", "a.test/docs/5"}},
		{"none named", "c.test/", func(*job.Job) {}, []string{"c.test/"}},
		{"guessed", "c.test/", func(j *job.Job) { j.Crawl.Sitemaps = policy.SitemapsGuessed },
			[]string{"c.test/", "c.test/sitemap.xml", "c.test/1"}},
		{"guessed without robots.txt", "c.test/", func(j *job.Job) {
			j.Crawl.Sitemaps,
				j.Crawl.IgnoreRobots = policy.SitemapsGuessed, true
		},
			[]string{"c.test/", "c.test/sitemap.xml", "c.test/1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := listed(t)
			j := s.job(t, c.seed)
			c.change(j)
			mustRun(t, j)
			s.wantAsked(t, slices.Clone(c.want)...)
			mustRun(t, j) // nothing new, and nothing is fetched again
			s.wantAsked(t, slices.Clone(c.want)...)
		})
	}
}

func TestFeedsAndPlainText(t *testing.T) {
	t.Parallel()
	end := html("end")
	s := newSite(t, map[string]http.HandlerFunc{
		"a.test/": html(`<link rel=alternate type=application/rss+xml href=/rss> <a href=/list.txt>t</a> <a href=/app.js>code</a>`),
		"a.test/rss": body("application/rss+xml",
			`<rss><channel><item><link>http://a.test:PORT/post</link></item></channel></rss>`),
		"a.test/post":  html(`<link rel=alternate type=application/atom+xml href=/atom>`),
		"a.test/atom":  body("application/atom+xml", `<feed><entry><link href="/entry"/></entry></feed>`),
		"a.test/entry": html(`<link rel=alternate type=application/feed+json href=/json>`),
		"a.test/json": body("application/json",
			`{"version":"https://jsonfeed.org/version/1.1","items":[{"url":"/item"}]}`),
		"a.test/item":     end,
		"a.test/list.txt": body("text/plain", "see http://a.test:PORT/told, and so on"), "a.test/told": end,
		"a.test/app.js": body("text/javascript", `load("/api/data.html")`), "a.test/api/data.html": end,
	})
	j := s.job(t, "a.test/")
	mustRun(t, j)
	want := []string{"a.test/", "a.test/rss", "a.test/post", "a.test/atom", "a.test/entry", "a.test/json", "a.test/item",
		"a.test/list.txt",
		"a.test/told", "a.test/app.js"}
	s.wantAsked(t, want...)
	j = s.job(t, "a.test/app.js")
	j.ScriptPaths = true
	mustRun(t, j)
	s.wantAsked(t, append(want, "a.test/app.js", "a.test/api/data.html")...)
}

func TestCleanParam(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]http.HandlerFunc{
		"a.test/robots.txt": body("text/plain", "User-agent: *\nDisallow:\nClean-param: ref&sid /shop/\n"),
		"a.test/":           html(`<a href="/shop/x?ref=1&id=7">1</a> <a href="/shop/x?id=7&sid=9">2</a> <a href="/other?ref=1">3</a>`),
		"a.test/shop/x":     html(`<a href="/shop/y?sid=9">4</a>`), "a.test/shop/y": html("y"), "a.test/other": html("z"),
	})
	j := s.job(t, "a.test/")
	mustRun(t, j)
	s.wantAsked(t, "a.test/", "a.test/shop/x?id=7", "a.test/other?ref=1", "a.test/shop/y")
	for _, l := range lines(t, j.Dir, "skipped.jsonl") {
		if l["rule"] != "clean-param" {
			t.Errorf("skipped: %v", l)
		}
	}
	for _, l := range lines(t, j.Dir, "pages.jsonl") {
		if l["url"] == s.url("a.test/shop/y") && (l["depth"] != 2.0 || l["from"] != s.url("a.test/shop/x?id=7")) {
			t.Errorf("the last page's line: %v", l)
		}
	}
}

func TestSitemapsElsewhere(t *testing.T) {
	t.Parallel()
	entries := body("text/xml",
		`<urlset><url><loc>http://a.test:PORT/1</loc></url><url><loc>http://b.test:PORT/2</loc></url></urlset>`)
	for _, c := range []struct {
		name  string
		pages map[string]http.HandlerFunc
		want  []string
	}{
		{"behind a redirect", map[string]http.HandlerFunc{"a.test/s.xml.gz": redirect("/new"),
			"a.test/new": packed(`<urlset><url><loc>/1</loc></url></urlset>`)},
			[]string{"a.test/s.xml.gz", "a.test/new", "a.test/1"}},
		{"on another host, whose pages are not the crawl's", map[string]http.HandlerFunc{
			"a.test/robots.txt": body("text/plain", "Sitemap: http://b.test:PORT/index.xml"),
			"b.test/index.xml": body("text/xml",
				`<sitemapindex><sitemap><loc>/s.xml</loc></sitemap><sitemap><loc>http://c.test:PORT/s.xml</loc></sitemap></sitemapindex>`),
			"b.test/s.xml": entries, "c.test/s.xml": entries},
			[]string{"b.test/index.xml", "b.test/s.xml", "a.test/1"}},
		{"in indexes without end", map[string]http.HandlerFunc{"a.test/s.xml.gz": func(w http.ResponseWriter,
			r *http.Request) {
			body("text/xml", "<sitemapindex><sitemap><loc>/s.xml.gz?"+r.URL.RawQuery+"x</loc></sitemap></sitemapindex>")(w, r)
		}}, []string{"a.test/s.xml.gz", "a.test/s.xml.gz?x", "a.test/s.xml.gz?xx", "a.test/s.xml.gz?xxx"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			pages := map[string]http.HandlerFunc{"a.test/robots.txt": body("text/plain", "Sitemap: /s.xml.gz"),
				"a.test/": html("seed"), "a.test/1": html("1")}
			for at, h := range c.pages {
				pages[at] = h
			}
			s := newSite(t, pages)
			mustRun(t, s.job(t, "a.test/"))
			s.wantAsked(t, append(c.want, "a.test/")...)
		})
	}
}

// A host first found at a greater depth is found again at a smaller one, so that more of its sitemap is in scope.
func TestSitemapsOfAHostThatComesNearer(t *testing.T) {
	t.Parallel()
	var asked atomic.Bool
	s := newSite(t, map[string]http.HandlerFunc{
		"a.test/": html(`<a href="http://c.test:PORT/">1</a> <a href="/slow">2</a>`),
		"c.test/": html(`<a href="http://b.test:PORT/far">3</a>`),
		"a.test/slow": func(w http.ResponseWriter, r *http.Request) {
			if asked.Swap(true) {
				redirect("http://b.test:PORT/near")(w, r)
				return
			}
			w.Header().Set("Retry-After", "1") // b.test is known by then
			w.WriteHeader(http.StatusServiceUnavailable)
		},
		"b.test/robots.txt": body("text/plain", "Sitemap: /s.xml"), "b.test/far": html("x"), "b.test/near": html("y"),
		"b.test/1":     html("1"),
		"b.test/s.xml": body("text/xml", "<urlset><url><loc>/1</loc></url></urlset>"),
	})
	j := s.job(t, "a.test/")
	j.Scope, j.Crawl.Depth = weburl.ScopeAny, 2
	mustRun(t, j)
	s.wantAsked(t, "a.test/", "c.test/", "a.test/slow", "a.test/slow", "b.test/far", "b.test/near", "b.test/s.xml",
		"b.test/1")
}

func TestCleanParamOfRedirectsAndSeeds(t *testing.T) {
	t.Parallel()
	robots := body("text/plain", "User-agent: *\nDisallow:\nClean-param: sid /\n")
	home := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery == "" {
			redirect("/?sid=1")(w, r)
			return
		}
		html("home")(w, r)
	}
	s := newSite(t, map[string]http.HandlerFunc{"a.test/robots.txt": robots, "a.test/": home})
	mustRun(t, s.job(t, "a.test/"))
	s.wantAsked(t, "a.test/", "a.test/?sid=1")

	s = newSite(t, map[string]http.HandlerFunc{"a.test/robots.txt": robots, "a.test/x": html("x")})
	j := s.job(t, "a.test/x?sid=1")
	j.Scope = weburl.ScopePage
	mustRun(t, j)
	s.wantAsked(t, "a.test/x")
}
