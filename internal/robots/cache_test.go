package robots

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// clock is a time that stands still until it is moved.
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

	c.Put(good, AllowAll("none"))
	r, ok := c.Get(good)
	if !ok {
		t.Fatal("put again, but unknown")
	}
	if ok, _ := r.Allowed("/x"); !ok {
		t.Error("still the old rules")
	}
}

// TestCacheDefaults: rules hold for a day. What cannot be had is asked for again soon, and never taken for absent.
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

// TestCacheBound puts far more origins than there is room for, one of them in constant use.
func TestCacheBound(t *testing.T) {
	const used = "https://used.example"
	for name, cfg := range map[string]Config{
		"entries": {Max: 100},
		"bytes":   {MaxBytes: 100 << 10},
		"one":     {Max: 1},
	} {
		c := NewCache(cfg)
		big := AllowAll(strings.Repeat("x", 1<<10))
		c.Put(used, big)
		for i := range 1000 {
			c.Put(fmt.Sprint("https://", i, ".example"), big)
			if _, ok := c.Get(used); !ok && cfg.Max != 1 {
				t.Fatalf("%s: what is in use was forgotten after %d", name, i)
			}
			if n := len(c.young.entries) + len(c.old.entries); n > max(100, 2) {
				t.Fatalf("%s: %d entries", name, n)
			}
		}
		if _, ok := c.Get("https://0.example"); ok {
			t.Errorf("%s: the first of a thousand is still there", name)
		}
		if _, ok := c.Get("https://999.example"); !ok {
			t.Errorf("%s: the last of a thousand is gone", name)
		}
		checkSizes(t, c)
	}
}

// checkSizes compares each generation's size with its entries'.
func checkSizes(t *testing.T, c *Cache) {
	t.Helper()
	for _, g := range []generation{c.young, c.old} {
		var sum int64
		for _, e := range g.entries {
			sum += e.rules.size()
		}
		if sum != g.size {
			t.Errorf("a generation counts %d bytes but holds %d", g.size, sum)
		}
	}
}

func TestCacheConcurrently(t *testing.T) {
	c := NewCache(Config{Max: 20})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 2000 {
				origin := fmt.Sprint("https://", i%30, ".example")
				if r, ok := c.Get(origin); !ok {
					c.Put(origin, AllowAll(origin))
				} else if _, rule := r.Allowed("/"); rule != origin {
					t.Errorf("%s has the rules of %s", origin, rule)
				}
			}
		})
	}
	wg.Wait()
	checkSizes(t, c)
}

func BenchmarkCacheGet(b *testing.B) {
	c := NewCache(Config{})
	c.Put("https://example.com", AllowAll(""))
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			c.Get("https://example.com")
		}
	})
}
