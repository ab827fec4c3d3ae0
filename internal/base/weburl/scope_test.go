package weburl

import (
	"fmt"
	"sync"
	"testing"
)

func TestScope(t *testing.T) {
	seeds := []string{"https://www.example.com/docs/start.html#top", "http://192.0.2.1:8080/"}
	type verdict struct{ in, near bool }
	in, near, out := verdict{true, true}, verdict{false, true}, verdict{}
	for _, c := range []struct {
		url                             string
		page, prefix, host, domain, any verdict
	}{
		{"https://www.example.com/docs/start.html", in, in, in, in, in},
		{"http://www.example.com/docs/start.html", near, in, in, in, in},
		{"https://www.example.com/docs/", near, in, in, in, in},
		{"https://www.example.com/docs/a/b/?c=/d/", near, in, in, in, in},
		{"https://www.example.com/docs", near, near, in, in, in},
		{"https://www.example.com/docs2/", near, near, in, in, in},
		{"https://www.example.com/?/docs/", near, near, in, in, in},
		{"https://www.example.com:8443/docs/", out, out, out, in, in},
		{"https://shop.example.com/docs/", out, out, out, in, in},
		{"https://example.com./", out, out, out, in, in},
		{"https://example.org/docs/", out, out, out, out, in},
		{"https://badexample.com/docs/", out, out, out, out, in},
		{"http://192.0.2.1:8080/x", near, in, in, in, in},
		{"http://192.0.2.1/", out, out, out, in, in},
		{"http://193.0.2.1:8080/", out, out, out, out, in},
		{"ftp://www.example.com/docs/", out, out, out, out, out},
		{"mailto:me@www.example.com", out, out, out, out, out},
	} {
		for mode, want := range map[Mode]verdict{
			ScopePage: c.page, ScopePrefix: c.prefix, ScopeHost: c.host, ScopeDomain: c.domain, ScopeAny: c.any,
		} {
			s := NewScope(mode)
			for _, seed := range seeds {
				s.AddSeed(parse(t, seed))
			}
			got := s.Judge(parse(t, c.url))
			if got.In != want.in || got.OnSeedHost != want.near || got.Rule == "" {
				t.Errorf("scope %v: %q gives %+v, want %+v", mode, c.url, got, want)
			}
		}
	}
}

// Hosts below a public suffix are unrelated, even if a seed is the suffix itself.
func TestScopeDomainPublicSuffix(t *testing.T) {
	s := NewScope(ScopeDomain)
	s.AddSeed(parse(t, "https://github.io/"))
	s.AddSeed(parse(t, "https://me.github.io/"))
	for url, want := range map[string]bool{
		"https://github.io/x": true, "https://www.me.github.io/": true, "https://you.github.io/": false,
	} {
		if got := s.Judge(parse(t, url)); got.In != want {
			t.Errorf("%s gives %+v", url, got)
		}
	}
}

func TestScopeTakesSeedsWhileJudging(t *testing.T) {
	s := NewScope(ScopePrefix)
	var group sync.WaitGroup
	for i := range 8 {
		u := parse(t, fmt.Sprintf("http://host%d.example/a/b", i))
		group.Go(func() {
			s.AddSeed(u)
			if v := s.Judge(u); !v.In {
				t.Errorf("%v gives %+v once it is a seed", u, v)
			}
		})
	}
	group.Wait()
}

func TestJudgeAllocatesNothing(t *testing.T) {
	u, seed := parse(t, "https://www.example.com/a/b"), parse(t, "https://www.example.com/a/")
	other := parse(t, "https://www.example.org/a/b")
	for mode := ScopeHost; mode <= ScopeAny; mode++ {
		s := NewScope(mode)
		s.AddSeed(seed)
		if n := testing.AllocsPerRun(100, func() { s.Judge(u); s.Judge(other) }); n != 0 {
			t.Errorf("scope %v: Judge allocates %v times", mode, n)
		}
	}
}

func TestModeNames(t *testing.T) {
	for mode := ScopeHost; mode <= ScopeAny; mode++ {
		if got, err := ParseMode(mode.String()); got != mode || err != nil {
			t.Errorf("ParseMode(%q) = %v, %v", mode, got, err)
		}
	}
	if _, err := ParseMode("everything"); err == nil {
		t.Error("ParseMode takes any name")
	}
}
