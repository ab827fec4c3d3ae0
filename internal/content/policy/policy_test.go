package policy

import (
	"regexp"
	"testing"
	"time"

	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
)

func TestJudge(t *testing.T) {
	scope := weburl.NewScope(weburl.ScopePrefix)
	scope.AddSeed(parseURL(t, "http://a.test/docs/"))
	rules := Rules{Scope: scope, MaxDepth: 3, MaxRedirects: 2, Embeds: true,
		Include: []*regexp.Regexp{regexp.MustCompile(`/docs/`)}, Exclude: []*regexp.Regexp{regexp.MustCompile(`[?&]print=`)}}
	anchor := Link{From: "http://a.test/docs/", Kind: page.Anchor, Depth: 1}
	with := func(change func(l *Link)) Link { l := anchor; change(&l); return l }
	for _, c := range []struct {
		name, url string
		link      Link
		want      Verdict
	}{
		{"in", "http://a.test/docs/1", anchor, Verdict{}},
		{"no web", "mailto:a@a.test", anchor, Verdict{Rule: "scope", Why: "not http or https", OffHost: true}},
		{"another host", "http://b.test/docs/", anchor, Verdict{Rule: "scope", Why: "another host", OffHost: true}},
		{"beside", "http://a.test/", anchor, Verdict{Rule: "scope", Why: "not below a seed's folder"}},
		{"excluded", "http://a.test/docs/1?print=1", anchor, Verdict{Rule: "exclude", Why: `[?&]print=`}},
		{"what a seed redirects to", "http://b.test/docs/", Link{Kind: page.Redirect, Redirects: 1, Seed: true}, Verdict{}},
		{"what another redirects to", "http://b.test/docs/", Link{Kind: page.Redirect, Redirects: 1},
			Verdict{Rule: "scope", Why: "another host", OffHost: true}},
		{"a seed that was taken out", "http://b.test/docs/", Link{Kind: page.Seed, Seed: true},
			Verdict{Rule: "scope", Why: "another host", OffHost: true}},
		{"too deep", "http://a.test/docs/1", with(func(l *Link) { l.Depth = 4 }), Defer("depth", "deeper than 3")},
		{"redirected", "http://a.test/docs/1", with(func(l *Link) { l.Redirects = 3 }),
			Defer("redirects", "more than 2 in a row")},
		{"a ping", "http://a.test/docs/1", with(func(l *Link) { l.Kind = page.Ping }), Defer("embed", page.Ping.String())},
		{"a list that robots.txt names", "http://b.test/list.xml",
			Link{From: "http://a.test/robots.txt", Kind: page.Sitemap, Depth: 1}, Verdict{}},
		{"a list that its index names", "http://b.test/2.xml", Link{From: "http://b.test/1.xml", Kind: page.Sitemap,
			Depth: 1}, Verdict{}},
		{"a list of another host's", "http://c.test/2.xml", Link{From: "http://b.test/1.xml", Kind: page.Sitemap, Depth: 1},
			Verdict{Rule: "scope", Why: "another host", OffHost: true}},
	} {
		if got := rules.Judge(parseURL(t, c.url), c.link); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	rules.Include = nil
	for _, c := range []struct {
		name, from, path string
		kind             page.Kind
		in               bool
	}{
		{"an image of a page", "http://a.test/docs/", "L", page.Image, true},
		{"an anchor of a page", "http://a.test/docs/", "L", page.Anchor, false},
		{"a ping of a page", "http://a.test/docs/", "L", page.Ping, false},
		{"where an image redirects to", "http://a.test/docs/i.png", "LE", page.Redirect, true},
		{"where an image elsewhere redirects to", "http://b.test/i.png", "LER", page.Redirect, true},
		{"where a page redirects to", "http://a.test/docs/i", "L", page.Redirect, false},
		{"a style sheet's font", "http://b.test/s.css", "LE", page.CSS, true},
		{"what it imports", "http://b.test/s.css", "LERE", page.Style, true},
		{"what is imported too deep", "http://b.test/s.css", "LEEEEE", page.Style, false},
		{"a script of a page elsewhere", "http://b.test/frame", "LE", page.Script, false},
		{"an image of a page elsewhere", "http://b.test/", "L", page.Image, false},
		{"a style sheet of a page elsewhere", "http://b.test/", "L", page.Style, false},
	} {
		link := Link{From: c.from, Kind: c.kind, Path: c.path, Depth: 1}
		if got := rules.Judge(parseURL(t, "http://cdn.test/x"), link); got.Refused() == c.in {
			t.Errorf("%s: %+v", c.name, got)
		}
		link.Fetched = true
		if got := rules.Judge(parseURL(t, "http://cdn.test/x"), link); c.in && got.Refused() {
			t.Errorf("%s, fetched before: %+v", c.name, got)
		}
		rules.Embeds = false
		if got := rules.Judge(parseURL(t, "http://cdn.test/x"), link); !got.OffHost {
			t.Errorf("%s, without embeds: %+v", c.name, got)
		}
		rules.Embeds = true
	}
	rules.Include, rules.Scope = []*regexp.Regexp{regexp.MustCompile(`/wanted/`)}, weburl.NewScope(weburl.ScopeAny)
	if got := rules.Judge(parseURL(t, "http://a.test/docs/1"), anchor); got.Rule != "include" {
		t.Errorf("matches no pattern to include: %+v", got)
	}
	if got := rules.Judge(parseURL(t, "http://a.test/docs/1"), Link{Kind: page.Seed, Seed: true}); got.Refused() {
		t.Errorf("a seed need not match a pattern to include: %+v", got)
	}
	rules.Embeds, rules.Include, rules.MaxDepth = false, nil, -1
	if got := rules.Judge(parseURL(t, "http://a.test/x.png"), Link{Kind: page.Image, Depth: 99}); got != Defer("embed",
		page.Image.String()) {
		t.Errorf("an image: %+v", got)
	}
	if rules.TooDeep(parseURL(t, "https://example.com/"), 1<<20) {
		t.Error("too deep, without a limit")
	}
}

func TestLinksOfAPage(t *testing.T) {
	asks := page.Robots{NoFollow: true, Meta: "nofollow"}
	plain, marked := page.Link{Kind: page.Anchor}, page.Link{Kind: page.Anchor, NoFollow: true, Rel: "nofollow ugc"}
	for _, c := range []struct {
		name    string
		ignored Directives
		asks    page.Robots
		link    page.Link
		want    string
	}{
		{"page", 0, asks, plain, "robots meta element: nofollow"},
		{"page, ignored", NoFollow, asks, plain, ""},
		{"link", 0, page.Robots{}, marked, "rel=nofollow ugc"},
		{"link, ignored", RelNoFollow, page.Robots{}, marked, ""},
		{"neither", 0, page.Robots{}, plain, ""},
		{"a redirect", 0, asks, page.Link{Kind: page.Redirect}, ""},
		{"a part of the page", 0, asks, page.Link{Kind: page.Image}, ""},
	} {
		if got := c.ignored.Links(&c.asks).NoFollow(&c.link); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	at := time.Unix(1e9, 0)
	rec := page.Record{Time: at, Page: &page.Page{Robots: page.Robots{NoArchive: true, UnavailableAfter: at}}}
	if Directives(0).Mark(&rec); !rec.NoIndex || !rec.NoArchive {
		t.Errorf("expired, not to be archived: %+v", rec)
	}
	if (UnavailableAfter | NoArchive).Mark(&rec); rec.NoIndex || rec.NoArchive {
		t.Errorf("both ignored: %+v", rec)
	}
}

func TestIntervalsAdapt(t *testing.T) {
	i, err := ParseInterval("60m,10m,8h")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1e9, 0)
	v := i.Plan(Visits{}, page.First, now)
	if v.Every != time.Hour || !v.Due.Equal(now.Add(time.Hour)) {
		t.Errorf("after the first visit: %+v", v)
	}
	for range 20 {
		v = i.Plan(v, page.Changed, now)
	}
	if v.Every != 10*time.Minute {
		t.Errorf("always changed: every %v", v.Every)
	}
	for range 20 {
		v = i.Plan(v, page.Unchanged, now)
	}
	if v.Every != 8*time.Hour {
		t.Errorf("never changed: every %v", v.Every)
	}
	for range maxMissing {
		if v.Retired() {
			t.Errorf("retired after %d visits", v.Missing)
		}
		v = i.Plan(v, page.Gone, now)
	}
	if !v.Retired() || !i.Due(v).Equal(Never) {
		t.Errorf("missing %d times in a row: %+v", maxMissing, v)
	}
	shorter := Interval{Every: time.Minute, Min: time.Minute, Max: time.Hour}
	if due := shorter.Due(Visits{Last: now, Due: now.Add(5 * time.Hour),
		Every: 5 * time.Hour}); !due.Equal(now.Add(time.Hour)) {
		t.Errorf("a shorter interval than was planned by: due %v", due.Sub(now))
	}
	for _, bad := range []string{"", "1x", "1h,2h", "1h,2h,3h", "0s", "(=1h", "200y"} {
		if _, err := ParseInterval(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
