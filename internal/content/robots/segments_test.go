package robots

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kumo/internal/base/vfs"
	"kumo/internal/base/vfs/vfstest"
)

func openKept(t *testing.T, cfg Config) *Cache {
	t.Helper()
	cfg.Agent, cfg.Disk = "kumo", vfs.OS
	c, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func forbids(c *Cache, origin, path string) bool {
	r, ok := c.Get(origin)
	if !ok {
		return false
	}
	allowed, _ := r.Allowed(path)
	return !allowed
}

func TestRulesOutliveTheProcess(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	cfg := Config{Dir: t.TempDir(), TTL: time.Hour, Now: func() time.Time { return now }}
	c := openKept(t, cfg)
	c.Answer("http://a", 200, []byte("User-agent: *\nDisallow: /x"))
	c.Answer("http://gone", 404, nil)
	c.Answer("http://broken", 503, nil) // it is fetched again
	now = now.Add(59 * time.Minute)
	c.Answer("http://b", 200, []byte("User-agent: *\nDisallow: /y"))

	c = openKept(t, cfg)
	if !forbids(c, "http://a", "/x") || !forbids(c, "http://b", "/y") {
		t.Error("rules were forgotten")
	}
	if _, ok := c.Get("http://gone"); !ok {
		t.Error("that there is no robots.txt was forgotten")
	}
	if _, ok := c.Get("http://broken"); ok {
		t.Error("a server's trouble was kept")
	}
	now = now.Add(time.Minute)
	c = openKept(t, cfg)
	if _, ok := c.Get("http://a"); ok {
		t.Error("rules hold beyond their time")
	}
	if !forbids(c, "http://b", "/y") {
		t.Error("b's time has not come")
	}
	now = now.Add(-24 * time.Hour)
	if _, ok := openKept(t, cfg).Get("http://b"); ok {
		t.Error("the clock was set back, and rules hold for more than their time")
	}
}

// Whatever part of the file remains after a crash: complete frames are loaded, incomplete ones are not, and new ones
// are stored after them.
func TestATornFileOfRulesIsCutBack(t *testing.T) {
	dir := t.TempDir()
	c := openKept(t, Config{Dir: dir})
	c.Answer("http://a", 200, []byte("User-agent: *\nDisallow: /x"))
	c.Answer("http://b", 200, []byte("User-agent: *\nDisallow: /y"))
	name := filepath.Join(dir, "00000001"+segmentSuffix)
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(whole) {
		for _, tail := range []string{"", "\x00\x00\x00\x00\x00\x00\x00\x00\x00", strings.Repeat("\xff", 9)} {
			clearFolder(t, dir)
			if err := os.WriteFile(name, append(whole[:n:n], tail...), 0o644); err != nil {
				t.Fatal(err)
			}
			c := openKept(t, Config{Dir: dir})
			if _, ok := c.Get("http://b"); ok {
				t.Fatalf("cut at %d: b is there", n)
			}
			c.Answer("http://c", 200, []byte("User-agent: *\nDisallow: /z"))
			if c := openKept(t, Config{Dir: dir}); !forbids(c, "http://c", "/z") {
				t.Fatalf("cut at %d: what was told after it is not there", n)
			}
		}
	}
}

func clearFolder(t *testing.T, dir string) {
	t.Helper()
	names, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if err := os.Remove(filepath.Join(dir, n.Name())); err != nil {
			t.Fatal(err)
		}
	}
}

// The disk holds the responses of one lifetime and the rest of a segment, however long the crawl runs. Files of another
// format are removed.
func TestExpiredSegmentsAreRemoved(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "robots.old"), []byte("kumo robots 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	cfg := Config{Dir: dir, TTL: time.Hour, Now: func() time.Time { return now }}
	c := openKept(t, cfg)
	c.segments.max = 16 << 10
	body := []byte("User-agent: *\nDisallow: /x\n#" + strings.Repeat("x", 1000))
	names := func() int {
		t.Helper()
		names, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range names {
			if info, err := n.Info(); err != nil || info.Size() > 16<<10 || n.Name() == "robots.old" {
				t.Errorf("%s: %d bytes, %v", n.Name(), info.Size(), err)
			}
		}
		return len(names)
	}
	origin := func(i int) string { return fmt.Sprintf("http://h%d", i) }
	const perHour = 60 // 4 segments
	for i := range 10 * perHour {
		c.Answer(origin(i), 200, body)
		now = now.Add(time.Hour / perHour)
		for j := max(0, i-perHour+2); j <= i; j++ {
			if !forbids(c, origin(j), "/x") {
				t.Fatalf("after %d answers, that of %d is unknown before it expires", i+1, j)
			}
		}
		if n := names(); n > 6 {
			t.Fatalf("%d files after %d answers", n, i+1)
		}
	}
	now = now.Add(time.Hour)
	c = openKept(t, cfg)
	if n := names(); n > 1 {
		t.Errorf("%d files, all of them expired", n)
	}
	c.Answer("http://next", 200, body)
	if !forbids(openKept(t, cfg), "http://next", "/x") {
		t.Error("an answer behind expired ones was lost")
	}
}

func TestAFullDiskForgetsRulesOnly(t *testing.T) {
	disk := vfstest.NewFaulty(vfs.OS)
	dir := t.TempDir()
	c, err := Open(Config{Agent: "kumo", Dir: dir, Disk: disk})
	if err != nil {
		t.Fatal(err)
	}
	disk.SetRoom(30)
	for _, origin := range []string{"http://a", "http://b", "http://c"} {
		c.Answer(origin, 200, []byte("User-agent: *\nDisallow: /x"))
		if !forbids(c, origin, "/x") {
			t.Errorf("%s: the rules do not hold", origin)
		}
		if origin == "http://b" {
			disk.SetRoom(-1)
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	c = openKept(t, Config{Dir: dir})
	if _, ok := c.Get("http://b"); ok {
		t.Error("a torn answer is known")
	}
	if !forbids(c, "http://c", "/x") {
		t.Error("an answer after the disk had room again was lost")
	}
}

func FuzzSegment(f *testing.F) {
	f.Add([]byte(segmentMagic))
	answer := frame{expires: 1 << 31, status: 200, needsText: true, hasDelay: true, origin: []byte("http://a"),
		text: []byte("User-agent: *\nCrawl-delay: 3")}
	f.Add(answer.append([]byte(segmentMagic)))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		cfg := Config{Dir: dir, TTL: 20 * 365 * 24 * time.Hour} // so that the appended frames are valid
		if err := os.WriteFile(filepath.Join(dir, "00000001"+segmentSuffix), data, 0o644); err != nil {
			t.Fatal(err)
		}
		c := openKept(t, cfg)
		c.EachDelay(func(string, time.Duration) {})
		c.Answer("http://new", 200, []byte("User-agent: *\nDisallow: /x"))
		if c = openKept(t, cfg); !forbids(c, "http://new", "/x") {
			t.Error("an answer behind a damaged file was lost")
		}
	})
}
