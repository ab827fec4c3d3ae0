package robots

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"kumo/internal/base/cputime"
)

// matchesSlowly implements the definition of matches by trying everything.
func matchesSlowly(pattern, target string) bool {
	switch {
	case pattern == "":
		return true
	case pattern == "$":
		return target == ""
	case pattern[0] == '*':
		return matchesSlowly(pattern[1:], target) || target != "" && matchesSlowly(pattern, target[1:])
	}
	return target != "" && pattern[0] == target[0] && matchesSlowly(pattern[1:], target[1:])
}

func TestMatchesAsDefined(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	word := func(letters string, n int) string {
		b := make([]byte, r.IntN(n))
		for i := range b {
			b[i] = letters[r.IntN(len(letters))]
		}
		return string(b)
	}
	hits := 0
	for range 100_000 {
		pattern, target := word("ab*", 8)+[]string{"", "$"}[r.IntN(2)], word("ab", 12)
		want := matchesSlowly(pattern, target)
		if got := matches(pattern, target); got != want {
			t.Fatalf("seed %d: %q on %q: %v, want %v", seed, pattern, target, got, want)
		}
		if want {
			hits++
		}
	}
	if hits < 10_000 {
		t.Errorf("seed %d: only %d matches: the patterns test nothing", seed, hits)
	}
}

// TestHostilePatterns would take forever with backtracking. The limit is a hundred times the time needed.
func TestHostilePatterns(t *testing.T) {
	path := "/" + strings.Repeat("a", 8<<10)
	for why, pattern := range map[string]string{
		"many stars":       "/" + strings.Repeat("a*", 4000) + "b",
		"stars only":       "/" + strings.Repeat("*", 16000) + "b$",
		"almost, anchored": "/" + strings.Repeat("*aa", 4000) + "b$",
	} {
		body := []byte("User-agent: *\n" + strings.Repeat("Disallow: "+pattern+"\n", maxBody/len(pattern)))
		var ok bool
		took := cputime.Of(func() { ok, _ = Parse(body, "kumo").Allowed(path) })
		if !ok || took > 5*time.Second {
			t.Errorf("%s: allowed %v, took %v", why, ok, took)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("\xEF\xBB\xBFUser-agent: *\r\nDisallow: /a*b$ # c\rCrawl-delay: 1,5\nAllow /%c3%7e/index.html"), "/a%c3")
	f.Add([]byte("user agent: kumo\ndisalow: *é$x\nRequest-rate: 1/5m\nSitemap: x\nallow:/$$"), "?q=$*")
	f.Fuzz(func(t *testing.T, body []byte, path string) {
		r := Parse(body, "kumo")
		ok, rule := r.Match(path)
		if rule == "" && !ok {
			t.Error("forbidden by nothing")
		}
		if !bytes.Contains(body, []byte(rule)) {
			t.Errorf("rule %q is not in the file", rule)
		}
		if again, same := r.Match(normalTarget(path)); len(path) > 0 && !strings.ContainsAny(path, "*$") &&
			(again != ok || same != rule) {
			t.Errorf("normal form changes the verdict on %q from %q to %q", path, rule, same)
		}
		if d, _ := r.Delay(); d < 0 || d > maxDelay {
			t.Errorf("delay %v", d)
		}
		if r.size() > 1<<10+16*int64(len(body)) {
			t.Errorf("%d bytes became %d", len(body), r.size())
		}
	})
}

// benchFile is like a shop's robots.txt: many agents, and for "*" a hundred rules, some with wildcards.
func benchFile() []byte {
	var b bytes.Buffer
	for _, agent := range []string{"Googlebot", "bingbot", "AhrefsBot", "*"} {
		b.WriteString("User-agent: " + agent + "\n")
		for i := range 100 {
			path := "/" + strings.Repeat(string(rune('a'+i%26)), 3+i%7) + "/"
			if i%10 == 0 {
				path = "/*" + path + "*?sort="
			}
			b.WriteString("Disallow: " + path + "\n")
		}
		b.WriteString("Allow: /aaa/public/\n\n")
	}
	return b.Bytes()
}

func BenchmarkParse(b *testing.B) {
	body := benchFile()
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		Parse(body, "kumo")
	}
}

func BenchmarkAllowed(b *testing.B) {
	r := Parse(benchFile(), "kumo")
	b.ReportAllocs()
	for b.Loop() {
		r.Allowed("/products/garden-tools/%E3%83%84/spade-120cm.html?colour=green&page=2")
	}
}

func TestAllowedAllocatesNothing(t *testing.T) {
	r := Parse(benchFile(), "kumo")
	if n := testing.AllocsPerRun(100, func() { r.Allowed("/products/%E3%83%84/?page=2") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// The table of RFC 9309, 2.2.2, whose last row Google's parser interprets differently, and similar cases.
func TestEscapesThatNeedNone(t *testing.T) {
	for _, c := range []struct {
		rule, path     string
		allowed, match bool // by the RFC, by Google's reading
	}{
		{"/foo/bar?baz=quz", "/foo/bar?baz=quz", false, false},
		{"/foo/bar?baz=https://foo.bar", "/foo/bar?baz=https://foo.bar", false, false},
		{"/foo/bar/ツ", "/foo/bar/%E3%83%84", false, false},
		{"/foo/bar/%E3%83%84", "/foo/bar/%e3%83%84", false, false},
		{"/foo/bar/%62%61%7A", "/foo/bar/baz", false, true},
		{"/foo/bar/%62%61%7A", "/foo/bar/%62%61%7a", false, false},
		{"/foo/bar/baz", "/foo/bar/%62az", false, true},
		{"/a%2Fb", "/a/b", true, true},
		{"/%2A", "/x", true, true},
	} {
		r := Parse([]byte("User-agent: *\nDisallow: "+c.rule+"\n"), "kumo")
		if got, _ := r.Allowed(c.path); got != c.allowed {
			t.Errorf("%s, %s: allowed %v", c.rule, c.path, got)
		}
		if got, _ := r.Match(c.path); got != c.match {
			t.Errorf("%s, %s: matched as %v", c.rule, c.path, got)
		}
	}
}
