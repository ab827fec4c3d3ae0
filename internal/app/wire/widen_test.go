package wire

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"kumo/internal/app/folder"
	"kumo/internal/app/setting"
	"kumo/internal/base/settings"
	"kumo/internal/base/vfs"
)

func TestWidens(t *testing.T) {
	for _, c := range []struct {
		key, was, now string
		want          bool
	}{
		{"depth", "1", "2", true}, {"depth", "2", "1", false}, {"depth", "2", "2", false},
		{"depth", "2", "unlimited", true}, {"depth", "unlimited", "9", false}, {"depth", "2", "x", false},
		{"max-pages-per-host", "5", "6", true}, {"max-pages-per-host", "5", "0", true},
		{"max-pages-per-host", "0", "5", false}, {"embeds", "false", "true", true}, {"embeds", "true", "false", false},
		{"text", "false", "true", true}, {"scope", "host", "domain", false},
	} {
		if got := setting.Widens(c.key, []string{c.was}, []string{c.now}); got != c.want {
			t.Errorf("%s from %s to %s: %v", c.key, c.was, c.now, got)
		}
	}
}

// A run admits excluded URLs and ends before it has stored its settings. The next run admits them again, but they are
// fetched once.
func TestWhatIsLetInTwiceIsFetchedOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]http.HandlerFunc{
		"a.test/":  html(`<a href=/1>1</a><a href=/x>x</a><img src=/i.png><img src="http://cdn.test:PORT/j.png">`),
		"a.test/1": html(`<a href=/2>2</a>`), "a.test/x": html("x"), "a.test/2": html("2"), "a.test/i.png": html("i"),
		"cdn.test/j.png": html("j"),
	})
	j := s.job(t, "a.test/")
	j.Fetch.AllowPrivate = true
	set := func(depth int, most int64, embeds bool, all ...string) []settings.Setting {
		j.Crawl.Depth, j.Crawl.PagesPerHost, j.Crawl.Embeds = depth, most, embeds
		return []settings.Setting{{Key: "depth", Values: all[:1]}, {Key: "max-pages-per-host", Values: all[1:2]},
			{Key: "embeds", Values: all[2:3]}}
	}
	narrow := set(1, 2, false, "1", "2", "false")
	j.Settings = narrow
	mustRun(t, j)
	if got := len(lines(t, j.Dir, "pages.jsonl")); got != 2 {
		t.Fatalf("%d pages at first", got)
	}
	j.Settings = set(5, 0, true, "5", "0", "true")
	for range 2 {
		again := *j
		c, err := Open(t.Context(), &again)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if err := folder.At(j.Dir, vfs.OS).WriteSettings(narrow); err != nil {
			t.Fatal(err)
		}
	}
	again := *j
	mustRun(t, &again)
	s.wantAsked(t, "a.test/", "a.test/1", "a.test/x", "a.test/2", "a.test/i.png", "cdn.test/j.png")
}

// If a process ends while it moves a crawl aside, the next process completes the move.
func TestSettingAsideGoesOn(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]http.HandlerFunc{"a.test/": html("one")})
	j := s.job(t, "a.test/")
	mustRun(t, j)
	part := filepath.Join(j.Dir, "earlier-20260102-030405.part")
	for _, name := range []string{filepath.Join("state", "journal"), "crawl.log"} {
		if err := vfs.OS.MkdirAll(filepath.Dir(filepath.Join(part, name))); err != nil {
			t.Fatal(err)
		}
		if err := vfs.OS.Rename(filepath.Join(j.Dir, name), filepath.Join(part, name)); err != nil {
			t.Fatal(err)
		}
	}
	again := *j
	again.Fresh = true
	mustRun(t, &again)
	old := filepath.Join(j.Dir, "earlier-20260102-030405")
	for _, name := range []string{"crawl.log", "pages.jsonl", "index.cdxj", filepath.Join("state", "seen")} {
		if _, err := os.Stat(filepath.Join(old, name)); err != nil {
			t.Error(err)
		}
	}
	s.wantAsked(t, "a.test/", "a.test/")
}
