package wire

import (
	"compress/gzip"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"kumo/internal/app/job"
	"kumo/internal/base/weburl"
	"kumo/internal/content/policy"
	"kumo/internal/engine/plan"
)

// planOf surveys a job's hosts.
func planOf(t *testing.T, j *job.Job) *plan.Plan {
	t.Helper()
	s, done, err := Survey(j)
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := done(); err != nil {
		t.Fatal(err)
	}
	p.Estimate(plan.Assumptions{Hosts: 64})
	return p
}

func hostIn(t *testing.T, p *plan.Plan, name string) *plan.Host {
	t.Helper()
	for i := range p.Hosts {
		if h := &p.Hosts[i]; strings.HasPrefix(h.Host, name+":") {
			return h
		}
	}
	t.Fatalf("the plan lacks %s: %+v", name, p.Hosts)
	return nil
}

func pagesOf(h *plan.Host) int64 {
	if h.Pages == nil {
		return -1
	}
	return *h.Pages
}

func sitemap(urls ...string) http.HandlerFunc {
	body := `<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`
	for _, u := range urls {
		body += "<url><loc>" + u + "</loc></url>"
	}
	return html(body + "</urlset>")
}

// A plan requests robots.txt and the sitemaps that it names, once each, and nothing else. It counts by the crawl's
// rules.
func TestAPlanAsksForRobotsAndSitemapsAlone(t *testing.T) {
	packed := func(w http.ResponseWriter, r *http.Request) {
		z := gzip.NewWriter(w)
		fmt.Fprint(z, withPort(`<urlset><url><loc>http://a.test:PORT/3</loc></url><url><loc>http://a.test:PORT/1</loc></url>
			<url><loc>http://a.test:PORT/x.pdf</loc></url><url><loc>http://a.test:PORT/private/4</loc></url>
			<url><loc>http://elsewhere.test:PORT/5</loc></url></urlset>`, r))
		z.Close()
	}
	s := newSite(t, map[string]http.HandlerFunc{
		"a.test/robots.txt": html("User-agent: *\nDisallow: /private\nCrawl-delay: 0.01\n" +
			"Sitemap: http://a.test:PORT/index.xml\n"),
		"a.test/index.xml": html(`<sitemapindex><sitemap><loc>http://a.test:PORT/one.xml</loc></sitemap>
			<sitemap><loc>http://a.test:PORT/two.xml.gz</loc></sitemap>
			<sitemap><loc>http://a.test:PORT/lost.xml</loc></sitemap></sitemapindex>`),
		"a.test/one.xml":    sitemap("http://a.test:PORT/1", "http://a.test:PORT/2", "http://a.test:PORT/"),
		"a.test/two.xml.gz": packed,
		"b.test/robots.txt": html("User-agent: *\nDisallow: /\nSitemap: http://b.test:PORT/one.xml\n"),
		"c.test/robots.txt": http.NotFound,
	})
	j := s.job(t, "a.test/")
	j.Seeds = append(j.Seeds, s.url("b.test/x"), s.url("c.test/"), s.url("a.test/private/"))
	j.Crawl.Exclude = []*regexp.Regexp{regexp.MustCompile(`\.pdf$`)}
	p := planOf(t, j)
	slices.Sort(s.asked)
	want := []string{"a.test/index.xml", "a.test/lost.xml", "a.test/one.xml", "a.test/robots.txt", "a.test/two.xml.gz",
		"b.test/robots.txt", "c.test/robots.txt"}
	if !slices.Equal(s.asked, want) {
		t.Errorf("asked for\n%q, want\n%q", s.asked, want)
	}
	if p.Requests != int64(len(want)) || p.Seeds != 4 {
		t.Errorf("%d requests, %d seeds", p.Requests, p.Seeds)
	}
	a := hostIn(t, p, "a.test")
	if got := a.Sitemaps; got.Read != 3 || got.Failed != 1 || got.URLs != 8 || got.InScope != 7 || got.Allowed != 4 {
		t.Errorf("the sitemaps: %+v", got)
	}
	if a.Allowed != plan.Some || a.Rule == nil || a.Rule.Number != 2 || a.Rule.URL != s.url("a.test/private/") {
		t.Errorf("of two seeds one is forbidden: %s by %+v", a.Allowed, a.Rule)
	}
	if pagesOf(a) != 4 || a.Delay != 0.01 || a.DelayBy != "Crawl-delay" || *a.Seconds < 0.04 {
		t.Errorf("%d pages by %s, a delay of %v by %s, %v s", pagesOf(a), a.PagesBy, a.Delay, a.DelayBy, *a.Seconds)
	}
	b := hostIn(t, p, "b.test")
	if b.Allowed != plan.No || b.Rule.Text != "Disallow: /" || b.Rule.Number != 2 || pagesOf(b) != 0 {
		t.Errorf("all is forbidden: %+v, %+v", b, b.Rule)
	}
	if c := hostIn(t, p, "c.test"); c.Allowed != plan.Yes || c.Pages != nil ||
		c.PagesBy != "unknown: it names no sitemap" {
		t.Errorf("nobody knows how many: %+v", c)
	}
	if s := p.Sum; s.Hosts != 3 || s.Reached != 3 || s.Forbidden != 1 || s.Unknown != 1 || s.Pages != 4 {
		t.Errorf("the sum: %+v", s)
	}
}

// The crawl's limits apply to a plan.
func TestAPlanHasTheCrawlsLimits(t *testing.T) {
	var urls []string
	for i := range 100 {
		urls = append(urls, fmt.Sprintf("http://a.test:PORT/%d", i))
	}
	pages := map[string]http.HandlerFunc{
		"a.test/robots.txt":  html("Sitemap: http://a.test:PORT/all.xml\nUser-agent: *\nCrawl-delay: 100\n"),
		"a.test/all.xml":     sitemap(urls...),
		"g.test/sitemap.xml": sitemap("http://g.test:PORT/1", "http://g.test:PORT/2"),
	}
	for name, c := range map[string]struct {
		seed  string
		set   func(*job.Job)
		pages int64
		by    string
		delay float64
		asked int
	}{
		"sitemaps":  {"a.test/", func(*job.Job) {}, 101, "sitemaps", 0.02, 2},
		"depth 0":   {"a.test/", func(j *job.Job) { j.Crawl.Depth = 0 }, 1, "seeds alone (--depth 0)", 0.02, 1},
		"page":      {"a.test/", func(j *job.Job) { j.Scope = weburl.ScopePage }, 1, "seeds alone (--scope page)", 0.02, 1},
		"per host":  {"a.test/", func(j *job.Job) { j.Crawl.PagesPerHost = 7 }, 7, "--max-pages-per-host", 0.02, 2},
		"no robots": {"a.test/", func(j *job.Job) { j.Crawl.IgnoreRobots = true }, -1, "unknown: it names no sitemap", 0, 0},
		"guess": {"g.test/", func(j *job.Job) { j.Crawl.Sitemaps = policy.SitemapsGuessed }, 3, "sitemaps", 0,
			2},
		"no guess": {"n.test/", func(j *job.Job) { j.Crawl.Sitemaps = policy.SitemapsGuessed }, -1,
			"unknown: it has no sitemap",
			0, 2},
		"delay": {"a.test/", func(j *job.Job) { j.Frontier.Delay = 50 * time.Millisecond }, 101, "sitemaps", 0.05, 2},
	} {
		s := newSite(t, pages)
		j := s.job(t, c.seed)
		j.Frontier.MaxDelay = 20 * time.Millisecond
		c.set(j)
		p := planOf(t, j)
		h := hostIn(t, p, c.seed[:6])
		if pagesOf(h) != c.pages || h.PagesBy != c.by || h.Delay != c.delay || len(s.asked) != c.asked {
			t.Errorf("%s: %d pages by %q, a delay of %v; asked for %q", name, pagesOf(h), h.PagesBy, h.Delay, s.asked)
		}
	}
}

// Unreachable hosts are listed with the reason, after at most two requests.
func TestAPlanNamesHostsThatCannotBeHad(t *testing.T) {
	s := newSite(t, map[string]http.HandlerFunc{
		"busy.test/robots.txt": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		"later.test/robots.txt": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusTooManyRequests)
		},
	})
	j := s.job(t, "busy.test/")
	j.Seeds = append(j.Seeds, s.url("later.test/"), "http://closed.test:1/")
	j.Crawl.Tries = 9
	p := planOf(t, j)
	if h := hostIn(t, p, "closed.test"); h.Allowed != plan.NoReply || h.Failure == "" || pagesOf(h) != 0 {
		t.Errorf("nobody listens there: %+v", h)
	}
	for _, name := range []string{"busy.test", "later.test"} {
		h := hostIn(t, p, name)
		if h.Allowed != plan.No || h.Rule == nil || !strings.HasPrefix(h.Rule.Text, "robots.txt: status ") {
			t.Errorf("without rules nothing may be fetched: %+v", h)
		}
	}
	slices.Sort(s.asked)
	want := []string{"busy.test/robots.txt", "busy.test/robots.txt", "later.test/robots.txt"}
	if !slices.Equal(s.asked, want) {
		t.Errorf("asked for %q, want %q", s.asked, want)
	}
}

// If a host has more sitemaps than are read, its size is estimated from those.
func TestAPlanReadsNotAllOfManySitemaps(t *testing.T) {
	pages := map[string]http.HandlerFunc{}
	text := ""
	for i := range 150 {
		text += fmt.Sprintf("Sitemap: http://a.test:PORT/%d.xml\n", i)
		pages[fmt.Sprintf("a.test/%d.xml", i)] = sitemap(fmt.Sprintf("http://a.test:PORT/%d/1", i),
			fmt.Sprintf("http://a.test:PORT/%d/2", i))
	}
	pages["a.test/robots.txt"] = html(text)
	s := newSite(t, pages)
	h := hostIn(t, planOf(t, s.job(t, "a.test/")), "a.test")
	if h.Sitemaps.Read != 100 || h.Sitemaps.Left != 50 || pagesOf(h) != 301 || h.PagesBy != "100 of 150 sitemaps" {
		t.Errorf("%+v, %d pages by %q", h.Sitemaps, pagesOf(h), h.PagesBy)
	}
}
