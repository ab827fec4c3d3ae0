package policy

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
)

func overridesOf(t testing.TB, text string) *Overrides {
	t.Helper()
	all, err := ParseOverrides(text)
	if err != nil {
		t.Fatal(err)
	}
	return NewOverrides(all)
}

// TestWhichOverrideCounts: for each setting, the first override applies that matches and has it.
func TestWhichOverrideCounts(t *testing.T) {
	o := overridesOf(t, `
- match: {host: 'shop-*.example.com'}
  delay: 1s
- match: /\/archive\//
  depth: 1
- match: {domain: example.com, url: '\.pdf$'}
  max-body: 1MB
  depth: 2
- match: example.com
  delay: 2s
  depth: 3
  per-host: 4
- match: [other.test, {host: 'port.test:8080'}, "xn--bcher-kva.test"]
  delay: 3s
`)
	for _, c := range []struct {
		url   string
		delay time.Duration
		depth int
		body  int64
	}{
		{"https://example.com/", 2 * time.Second, 3, 0},
		{"https://www.example.com:8443/a", 2 * time.Second, 3, 0},
		{"https://shop-1.example.com/", time.Second, 3, 0},
		{"https://shop-1.example.com:99/archive/x.pdf", time.Second, 1, 1e6},
		{"https://example.com/x.pdf", 2 * time.Second, 2, 1e6},
		{"https://notexample.com/x.pdf", 0, -1, 0},
		{"https://com/archive/", 0, 1, 0},
		{"https://a.other.test./", 3 * time.Second, -1, 0},
		{"https://port.test/", 0, -1, 0},
		{"https://port.test:8080/", 3 * time.Second, -1, 0},
		{"https://a.port.test:8080/", 0, -1, 0},
		{"https://bücher.test/", 3 * time.Second, -1, 0},
	} {
		u := parseURL(t, c.url)
		host, own := o.ForHost(u.Host()), o.ForURL(u)
		if got := valueOr(host.Delay, 0); got != c.delay {
			t.Errorf("%s: delay %v, want %v", c.url, got, c.delay)
		}
		if got := valueOr(own.Depth, -1); got != c.depth {
			t.Errorf("%s: depth %d, want %d", c.url, got, c.depth)
		}
		if got := valueOr(own.MaxBody, 0); got != c.body {
			t.Errorf("%s: max-body %d, want %d", c.url, got, c.body)
		}
	}
	got := o.Explain(parseURL(t, "https://shop-1.example.com/x.pdf"))
	want := []Applied{{"delay", "1s", "host shop-*.example.com"},
		{"depth", "2", `domain example.com and url \.pdf$`}, {"max-body", "1000000", `domain example.com and url \.pdf$`},
		{"per-host", "4", "example.com"}}
	if !slices.Equal(got, want) {
		t.Errorf("explained as %v, want %v", got, want)
	}
}

func valueOr[T any](p *T, or T) T {
	if p == nil {
		return or
	}
	return *p
}

func TestWrongOverrides(t *testing.T) {
	for text, want := range map[string]string{
		`delay=2s`:                                     "a mapping such as",
		`{delay: 2s}`:                                  "match is missing",
		`{match: example.com}`:                         "no setting given",
		`{match: 'a b', delay: 2s}`:                    "neither a host nor",
		`{match: 'a.test/x', delay: 2s}`:               "neither a host nor",
		`{match: a.test, dely: 2s}`:                    "dely: unknown setting; settings: delay,",
		`{match: a.test, delay: 5}`:                    "a duration with a unit",
		`{match: a.test, delay: -5s}`:                  "a duration with a unit",
		`{match: a.test, delay: [1s, 2s]}`:             "a single value",
		`{match: '/[/', depth: 2}`:                     "error parsing regexp",
		`{match: /x/, delay: 2s}`:                      "delay applies to a host as a whole",
		`{match: {}, delay: 2s}`:                       "empty",
		`{match: {path: x}, delay: 2s}`:                "use host, domain or url",
		`{match: {collection: de}, depth: 1}`:          "kumo batch",
		`{match: {domain: 'a.test:80'}, depth: 1}`:     "neither", // the scheme's default port is removed
		`{match: {domain: 'a.test:8080'}, depth: 1}`:   "has a port",
		`{match: a.test, depth: deep}`:                 "a number of hops or unlimited",
		`{match: a.test, scope: near}`:                 "not one of page, prefix, host, domain, any",
		`{match: a.test, tries: 0}`:                    "a whole number, at least 1",
		`{match: a.test, per-host: 1.5}`:               "a whole number, at least 1",
		`{match: a.test, max-body: much}`:              "is not a size",
		`{match: a.test, recrawl: 'x=1h'}`:             "set the URLs by match",
		`{match: a.test, recrawl: soon}`:               "no interval",
		`{match: a.test, header: nothing}`:             "NAME: VALUE",
		`{match: a.test, proxy: [none, "http://p:1"]}`: "do not go together",
		`{match: a.test, delay: 1s, delay: 2s}`:        "", // rejected by YAML or by ParseOverrides
		"{match: a.test, user-agent: \"a\\nb\"}":       "control characters",
	} {
		_, err := ParseOverrides(text)
		if text == `{match: {domain: 'a.test:80'}, depth: 1}` {
			if err != nil {
				t.Errorf("%s: %v", text, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestOverridesHaveOneForm: the text of an override parses to the same override; the redacted text has no secrets.
func TestOverridesHaveOneForm(t *testing.T) {
	const text = `{header: {x-key: s3cret, accept-language: de}, depth: unlimited, match: [a.test, {host: "*.b.test", domain: b.test}],
proxy: ["http://u:pw@p.test:1", "socks5://q.test:2"], recrawl: "24h,1h,30d", scope: any, tries: 2, delay: 90s}`
	one := overridesOf(t, text).All()[0]
	again := overridesOf(t, one.Text).All()[0]
	if one.Text != again.Text || one.Name != again.Name {
		t.Errorf("%s\nis another one when it is read again:\n%s", one.Text, again.Text)
	}
	red := one.Redact(func(name string) bool { return name == "X-Key" }, "REDACTED")
	for _, secret := range []string{"s3cret", "pw", "u:"} {
		if strings.Contains(red, secret) {
			t.Errorf("%s has %s", red, secret)
		}
	}
	for _, kept := range []string{"Accept-Language: de", "REDACTED@p.test:1", "socks5://q.test:2", `"90s"`, "unlimited"} {
		if !strings.Contains(red, kept) {
			t.Errorf("%s lacks %s", red, kept)
		}
	}
	for _, a := range overridesOf(t, text).Explain(parseURL(t, "https://a.test/")) {
		if strings.Contains(a.Value, "s3cret") || strings.Contains(a.Value, "pw") {
			t.Errorf("%s is explained as %s", a.Setting, a.Value)
		}
	}
}

// TestOverridesAgreeWithEachInTurn compares the index with evaluating each override in order.
func TestOverridesAgreeWithEachInTurn(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	pick := func(of ...string) string { return of[rng.IntN(len(of))] }
	host := func() string { return pick("", "a.", "b.", "a.b.") + pick("x.test", "y.test", "test", "ax.test") }
	for range 300 {
		var all []string
		for range rng.IntN(8) {
			match := pick(host(), "{host: "+host()+"}", "{host: '*."+host()+"'}", "{domain: "+host()+", url: /p}", "/p/",
				"["+host()+", "+host()+"]", "{host: '"+host()+":81'}")
			all = append(all, "- {match: "+match+", depth: "+pick("1", "2", "3", "4", "5", "6", "7")+"}\n")
		}
		o := overridesOf(t, "[]")
		if len(all) > 0 {
			o = overridesOf(t, strings.Join(all, ""))
		}
		for range 20 {
			u := parseURL(t, "http://"+host()+pick("", ":81")+pick("/", "/p"))
			want := -1
			for _, one := range o.All() {
				if slices.ContainsFunc(one.conditions, func(m condition) bool { return m.holds(u.Hostname(), u.Host(), u.String()) }) {
					want = *one.Depth
					break
				}
			}
			if got := valueOr(o.ForURL(u).Depth, -1); got != want {
				t.Fatalf("seed %d: %s has depth %d, want %d, of\n%s", seed, u, got, want, strings.Join(all, ""))
			}
		}
	}
}

// TestRulesByOverrides: overrides change the scope and depth of some URLs.
func TestRulesByOverrides(t *testing.T) {
	o := overridesOf(t, `
- {match: cdn.test, scope: any, depth: 1}
- {match: a.test, scope: prefix}
- {match: {host: www.b.test}, scope: domain, depth: unlimited}`)
	scope := weburl.NewScope(weburl.ScopeHost, o.Scopes()...)
	scope.AddSeed(parseURL(t, "http://a.test/docs/"))
	scope.AddSeed(parseURL(t, "http://b.test/"))
	rules := &Rules{Scope: scope, MaxDepth: 2, MaxRedirects: 5, Overrides: o}
	for _, c := range []struct {
		url   string
		depth int32
		rule  string
	}{
		{"http://cdn.test/x", 1, ""}, {"http://cdn.test/x", 2, "depth"},
		{"http://a.test/docs/x", 2, ""}, {"http://a.test/docs/x", 3, "depth"}, {"http://a.test/blog", 1, "scope"},
		{"http://b.test/", 2, ""}, {"http://www.b.test/", 9, ""}, {"http://m.b.test/", 1, "scope"},
	} {
		if v := rules.Judge(parseURL(t, c.url), Link{Kind: page.Anchor, Depth: c.depth}); v.Rule != c.rule {
			t.Errorf("%s at depth %d: %+v, want %q", c.url, c.depth, v, c.rule)
		}
	}
}

func TestQuotaByOverrides(t *testing.T) {
	q := NewQuota(Limits{Overrides: overridesOf(t,
		`[{match: few.test, max-pages-per-host: 2}, {match: test, max-pages-per-host: 0}]`)}, 0)
	for i, c := range []struct {
		host string
		want Grant
	}{{"few.test", Granted}, {"few.test", Granted}, {"few.test", NotNow}, {"a.test", Granted}, {"a.few.test", Granted}} {
		if got := q.Acquire(c.host, ""); got != c.want {
			t.Errorf("%d: a page of %s: %v, want %v", i, c.host, got, c.want)
		}
	}
	q.Finish("few.test", "", true)
	q.Finish("few.test", "", true)
	if got := q.Acquire("few.test", ""); got != HostIsFull {
		t.Errorf("a third page: %v", got)
	}
	if !q.CountsPages() || NewQuota(Limits{Pages: 9}, 0).CountsPages() {
		t.Error("pages are counted by host where there is a limit, and only there")
	}
}

func TestRecrawlByOverrides(t *testing.T) {
	r := Recrawl{Intervals: []Interval{every(time.Hour)},
		Overrides: overridesOf(t, `[{match: never.test, recrawl: never}, {match: /news/, recrawl: 10m}]`)}
	for url, want := range map[string]time.Duration{"http://a.test/": time.Hour, "http://never.test/": 0,
		"http://a.test/news": 10 * time.Minute, "http://never.test/news": 0} {
		if got := r.IntervalFor(url).Every; got != want {
			t.Errorf("%s: every %v, want %v", url, got, want)
		}
	}
	if got, want := r.ShortestWait(), 10*time.Minute/boundsFactor; got != want {
		t.Errorf("shortest wait %v, want %v", got, want)
	}
}

func FuzzOverrides(f *testing.F) {
	f.Add(`{match: a.test, delay: 1s}`)
	f.Add(`[{match: {host: "*.x", url: "y"}, header: {a: b}}, {match: /z/, depth: unlimited, max-body: 1KiB}]`)
	f.Fuzz(func(t *testing.T, text string) {
		all, err := ParseOverrides(text)
		if err != nil {
			return
		}
		for _, o := range all {
			again, err := ParseOverrides(o.Text)
			if err != nil || len(again) != 1 || again[0].Text != o.Text {
				t.Fatalf("%q gives %q, which gives %v, %v", text, o.Text, again, err)
			}
			o.Redact(func(string) bool { return true }, "REDACTED")
		}
		o := NewOverrides(all)
		o.ForHost("a.test:80")
		o.Explain(parseURL(t, "http://a.test/x"))
	})
}

func BenchmarkOverridesOfURL(b *testing.B) {
	u := parseURL(b, "https://www.example.com/a/b?c=d")
	var many strings.Builder
	for i := range 1000 {
		many.WriteString("- {match: host" + number(i) + ".test, depth: 1}\n")
	}
	for name, text := range map[string]string{"none": "", "thousand others": many.String(),
		"one that matches": "- {match: example.com, depth: 1}"} {
		o := NewOverrides(nil)
		if text != "" {
			o = overridesOf(b, text)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				o.ForURL(u)
			}
		})
	}
}
