package policy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kumo/internal/base/weburl"
)

func parseURL(t testing.TB, s string) weburl.URL {
	t.Helper()
	u, err := weburl.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestBlockList(t *testing.T) {
	name := filepath.Join(t.TempDir(), "block.txt")
	now := time.Unix(1e9, 0)
	var warned error
	write := func(text string, age time.Duration) {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(name, now, now.Add(age)); err != nil {
			t.Fatal(err)
		}
	}
	write("# hosts\nbad.example\n*.worse.example\n/\\.exe$/\n", 0)
	b, err := OpenBlockList(name, func() time.Time { return now }, func(err error) { warned = err })
	if err != nil {
		t.Fatal(err)
	}
	check := func(url, want string) {
		t.Helper()
		if got := b.Match(parseURL(t, url)); got != want {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}
	check("http://bad.example/x", "bad.example")
	check("http://www.bad.example:8080/", "bad.example")
	check("http://notbad.example/", "")
	check("http://a.worse.example/", "*.worse.example")
	check("http://good.example/setup.exe", `/\.exe$/`)

	write("good.example\n", time.Minute)
	check("http://good.example/", "")
	now = now.Add(2 * time.Second)
	check("http://good.example/", "good.example")
	check("http://bad.example/x", "")

	rules, err := ParseBlocks([]string{" own.example ", `/\?sort=/`})
	if err != nil || rules.HostsOnly() {
		t.Fatal(err)
	}
	b.SetExtra(rules) // in addition to the file's
	check("http://www.own.example/", "own.example")
	check("http://a.example/?sort=1", `/\?sort=/`)
	check("http://good.example/", "good.example")
	alone := NewBlockList()
	alone.SetExtra(rules)
	if got := alone.Match(parseURL(t, "http://own.example/")); got != "own.example" {
		t.Errorf("without a file: %q", got)
	}
	for rule, url := range map[string]string{"bücher.example": "https://www.bücher.example/",
		"Example.COM.": "http://example.com:8080/", "*.a.example": "http://b.a.example/",
		"example.com": "http://example.com./", "[::1]": "http://[::1]:80/", "127.1": "http://127.0.0.1/",
		"a_b.example": "http://a_b.example/"} {
		if rules, err := ParseBlocks([]string{rule}); err != nil || rules.Match(parseURL(t, url)) != rule {
			t.Errorf("%s does not match %s: %v", rule, url, err)
		}
	}
	for _, wrong := range []string{"", "a b", "/(/", "*", "example.com:8080", "example.com:443", "::1", "u@a.example",
		"a.example?", "a.example#x", `a\b`, "a.example\nb.example",
		"a.example\n", "a..%00", strings.Repeat("x", maxRule+1)} {
		if _, err := ParseBlocks([]string{wrong}); err == nil {
			t.Errorf("%.20q is a rule", wrong)
		}
	}

	write("/(/\n", 2*time.Minute)
	now = now.Add(2 * time.Second)
	check("http://good.example/", "good.example")
	if warned == nil {
		t.Error("a broken file: no warning")
	}
	if _, err := OpenBlockList(name, time.Now, nil); err == nil {
		t.Error("a broken file at the start: no error")
	}
}

func TestNoBlockListBlocksNothing(t *testing.T) {
	var b *BlockList
	if why := b.Match(parseURL(t, "http://a.example/")); why != "" {
		t.Errorf("blocked by %q", why)
	}
}
