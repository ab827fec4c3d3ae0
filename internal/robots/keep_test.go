package robots

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kumo/internal/vfs"
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
	c.Answer("http://broken", 503, nil) // is asked for again
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

// Whatever a crash leaves of the file: what is whole is there, what is not is none, and what is told then is kept
// behind it.
func TestATornFileOfRulesIsCutBack(t *testing.T) {
	dir := t.TempDir()
	c := openKept(t, Config{Dir: dir})
	c.Answer("http://a", 200, []byte("User-agent: *\nDisallow: /x"))
	c.Answer("http://b", 200, []byte("User-agent: *\nDisallow: /y"))
	name := filepath.Join(dir, keptName)
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(whole) {
		for _, tail := range []string{"", "\x00\x00\x00\x00\x00\x00\x00\x00\x00", strings.Repeat("\xff", 9)} {
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

func TestTheFileOfRulesStaysSmall(t *testing.T) {
	dir := t.TempDir()
	cfg := Config{Dir: dir, MaxBytes: 20 << 10}
	c := openKept(t, cfg)
	body := []byte("User-agent: *\nDisallow: /x\n#" + strings.Repeat("x", 1000))
	for i := range 200 {
		c.Answer("http://h"+strings.Repeat("i", i), 200, body)
	}
	names, err := os.ReadDir(dir)
	if err != nil || len(names) != 2 {
		t.Fatal(names, err)
	}
	for _, n := range names {
		if info, err := n.Info(); err != nil || info.Size() > 11<<10 {
			t.Errorf("%s: %d bytes, %v", n.Name(), info.Size(), err)
		}
	}
	if !forbids(openKept(t, cfg), "http://h"+strings.Repeat("i", 199), "/x") {
		t.Error("the last is not there")
	}
}

func TestAFullDiskForgetsRulesOnly(t *testing.T) {
	disk := vfs.NewFaulty(vfs.OS)
	dir := t.TempDir()
	c, err := Open(Config{Agent: "kumo", Dir: dir, Disk: disk})
	if err != nil {
		t.Fatal(err)
	}
	disk.SetRoom(30)
	for _, origin := range []string{"http://a", "http://b"} {
		c.Answer(origin, 200, []byte("User-agent: *\nDisallow: /x"))
		if !forbids(c, origin, "/x") {
			t.Error("the rules do not hold")
		}
		disk.SetRoom(-1)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if _, ok := openKept(t, Config{Dir: dir}).Get("http://b"); ok {
		t.Error("what follows a torn frame was kept")
	}
}
