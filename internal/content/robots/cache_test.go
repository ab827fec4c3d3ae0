package robots

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
)

// clock is a time that changes only when it is set.
type clock struct{ t time.Time }

func (c *clock) now() time.Time { return c.t }

func TestCacheExpiry(t *testing.T) {
	at := &clock{time.Unix(1e9, 0)}
	c := NewCache(Config{Agent: "kumo", TTL: time.Hour, ErrorTTL: time.Minute, Now: at.now})
	const good, bad = "https://good.example", "https://bad.example"
	if _, ok := c.Get(good); ok {
		t.Error("an empty cache knows an origin")
	}
	c.Answer(good, 200, []byte("User-agent: kumo\nDisallow: /x\n"))
	c.Answer(bad, 503, nil)

	check := func(when, origin string, want bool) {
		t.Helper()
		if _, ok := c.Get(origin); ok != want {
			t.Errorf("%s: %s known: %v", when, origin, ok)
		}
	}
	at.t = at.t.Add(time.Minute - 1)
	check("just before a minute", bad, true)
	at.t = at.t.Add(1)
	check("after a minute", bad, false)
	check("after a minute", good, true)
	at.t = at.t.Add(time.Hour)
	check("after an hour", good, false)

	c.Answer(good, 404, nil)
	r, ok := c.Get(good)
	if !ok {
		t.Fatal("put again, but unknown")
	}
	if ok, _ := r.Allowed("/x"); !ok {
		t.Error("still the old rules")
	}
}

// TestCacheDefaults: rules are valid for a day. An unavailable robots.txt is requested again soon, and never taken for
// absent.
func TestCacheDefaults(t *testing.T) {
	at := &clock{time.Unix(1e9, 0)}
	c := NewCache(Config{Agent: "kumo", Now: at.now})
	const good, bad = "https://good.example", "https://bad.example"
	c.Answer(good, 200, nil)
	for at.t = at.t.Add(24*time.Hour - 1); at.t.Before(time.Unix(1e9,
		0).Add(31 * 24 * time.Hour)); at.t = at.t.Add(10 * time.Minute) {
		if _, ok := c.Get(bad); ok {
			t.Fatal("temporary rules hold for longer than ten minutes")
		}
		if ok, _ := c.Answer(bad, 503, nil).Allowed("/"); ok {
			t.Fatal("what could not be had allows something")
		}
		if _, ok := c.Get(good); ok != at.t.Before(time.Unix(1e9, 0).Add(24*time.Hour)) {
			t.Fatalf("after %v: rules known: %v", at.t.Sub(time.Unix(1e9, 0)), ok)
		}
	}
}

// Memory is limited by MaxBytes and the index, but no rules are dropped before they expire, with files or a temporary
// file.
func TestManyMoreOriginsThanMemoryHolds(t *testing.T) {
	const origins = 5_000
	body := func(i int) []byte {
		switch i % 5 {
		case 0:
			return nil
		case 1:
			return fmt.Appendf(nil, "User-agent: *\nCrawl-delay: %d\n", i)
		case 2: // longer than one read
			return fmt.Appendf(nil, "User-agent: *\n#%s\nDisallow: /%d\n", strings.Repeat("x", 3000), i)
		}
		return fmt.Appendf(nil, "User-agent: *\nDisallow: /%d\nSitemap: /s%d.xml\n", i, i)
	}
	status := func(i int) int { return []int{200, 404, 503}[i%7%3] }
	name := func(i int) string { return fmt.Sprint("https://", i, ".example") }
	at := &clock{time.Unix(1e9, 0)}
	cfg := Config{Agent: "kumo", Now: at.now, MaxBytes: 50 << 10}
	check := func(t *testing.T, c *Cache, i int) {
		t.Helper()
		r, ok := c.Get(name(i))
		if want := FromStatus(status(i), body(i), "kumo"); !ok || !reflect.DeepEqual(r, want) {
			t.Fatalf("%s (%d): %+v, %v, want %+v", name(i), status(i), r, ok, want)
		}
	}
	for _, kind := range []string{"folder", "temporary file"} {
		t.Run(kind, func(t *testing.T) {
			cfg := cfg
			c := NewCache(cfg)
			if kind == "folder" {
				cfg.Dir = t.TempDir()
				c = openKept(t, cfg)
			}
			c.segments.max = 64 << 10
			delays := map[string]time.Duration{}
			for i := range origins {
				c.Answer(name(i), status(i), body(i))
				if status(i) == 200 && i%5 == 1 {
					delays[name(i)] = min(time.Duration(i)*time.Second, maxDelay)
				}
				check(t, c, i)
				check(t, c, i/2)
				if size := c.young.size + c.old.size; size > 60<<10 {
					t.Fatalf("%d bytes of rules in memory", size)
				}
			}
			for i := range origins {
				check(t, c, i)
			}
			checkSizes(t, c)
			if kind == "folder" {
				c = openKept(t, cfg)
				for i := range origins {
					if status(i) != 503 {
						check(t, c, i)
					}
				}
			}
			got := map[string]time.Duration{}
			c.EachDelay(func(origin string, delay time.Duration) { got[origin] = delay })
			if !maps.Equal(got, delays) {
				t.Errorf("%d delays, want %d", len(got), len(delays))
			}
			at.t = at.t.Add(24 * time.Hour)
			for i := range origins {
				if _, ok := c.Get(name(i)); ok {
					t.Fatalf("%s is known beyond its time", name(i))
				}
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			at.t = time.Unix(1e9, 0)
		})
	}
}

// checkSizes compares each generation's size with its entries'.
func checkSizes(t *testing.T, c *Cache) {
	t.Helper()
	for _, g := range []generation{c.young, c.old} {
		var sum int64
		for origin, e := range g.entries {
			sum += e.rules.size() + int64(len(origin))
		}
		if sum != g.size {
			t.Errorf("a generation counts %d bytes but holds %d", g.size, sum)
		}
	}
}

func TestCacheConcurrently(t *testing.T) {
	c := NewCache(Config{Agent: "kumo", MaxBytes: 2 << 10})
	c.segments.max = 1 << 10
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 2000 {
				origin := fmt.Sprint("https://", i%30, ".example")
				if r, ok := c.Get(origin); !ok {
					c.Answer(origin, 200, []byte("User-agent: *\nDisallow: /"+origin))
				} else if _, rule := r.Allowed("/" + origin); rule != "Disallow: /"+origin {
					t.Errorf("%s has the rules of %q", origin, rule)
				}
			}
		})
	}
	wg.Wait()
	checkSizes(t, c)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func BenchmarkCacheGet(b *testing.B) {
	c := NewCache(Config{Agent: "kumo"})
	for _, origin := range []string{"ruled", "free", "spilled"} {
		b.Run(origin, func(b *testing.B) {
			if origin != "free" {
				c.Answer(origin, 200, []byte("User-agent: *\nDisallow: /x"))
			} else {
				c.Answer(origin, 404, nil)
			}
			b.ReportAllocs()
			for b.Loop() {
				if c.Get(origin); origin == "spilled" {
					c.young.drop(origin)
				}
			}
		})
	}
}
