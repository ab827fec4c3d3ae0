package frontier

import (
	"errors"
	"testing"
	"time"
)

// unfit returns items that cannot be fetched at the host h.
func unfit() []Item {
	return []Item{{URL: "mailto:a@h"}, {URL: "ftp://h/"}, {URL: "http://h"}, {URL: "http://hh/"}, {URL: "http://"},
		{URL: ""}, {URL: "/robots.txt"},
		{URL: "https://h.example/"}, {URL: "httpss://h/"}, {URL: "http:h/"}, {URL: "HTTP://h/"}}
}

func TestWhatCannotBeFetchedIsRefused(t *testing.T) {
	doors := map[string]func(f *Frontier, key string, it Item){
		"Push":    func(f *Frontier, key string, it Item) { f.Push(key, it) },
		"Restore": func(f *Frontier, key string, it Item) { f.Restore(key, it) },
		"Arrive":  func(f *Frontier, key string, it Item) { f.Import(key, 0, 0, it) },
		"Done": func(f *Frontier, key string, it Item) {
			f.Push("h", Item{URL: "http://h/"})
			v, err := f.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			f.Done(v, Result{Outcome: Answered, Requeue: []Item{it}})
		},
		"an earlier version": func(f *Frontier, key string, it Item) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.bench.push(f.bench.host(key), []Item{it})
		},
	}
	for name, enter := range doors {
		for _, dir := range []string{"", t.TempDir()} {
			for _, it := range unfit() {
				for _, key := range []string{"h", ""} {
					if name == "Done" && key == "" {
						continue
					}
					f := open(t, Config{Dir: dir, Memory: 16 << 10})
					enter(f, key, it)
					if v, err := f.Next(t.Context()); !errors.Is(err, ErrDrained) || f.Refused() != 1 || f.Counts().URLs != 0 {
						t.Errorf("%s of %q at %q: %v, %v; %d refused, %+v", name, it.URL, key, v, err, f.Refused(), f.Counts())
					}
					if err := f.Close(); err != nil {
						t.Error(err)
					}
				}
			}
		}
	}
	for _, url := range []string{"http://h/", "https://h/?q", "https://h/x"} {
		if !Belongs("h", url) || Belongs("H", url) || Belongs("", url) {
			t.Errorf("%s belongs elsewhere", url)
		}
	}
}

// TestAURLIsUnderWayOnce: a URL that was pushed twice is not handed out while a visit to it is under way.
func TestAURLIsUnderWayOnce(t *testing.T) {
	f := open(t, Config{Dir: t.TempDir(), PerHost: 2})
	f.Push("h", Item{URL: "http://h/1"}, Item{URL: "http://h/1"}, Item{URL: "http://h/2"})
	for _, want := range []string{"http://h/1", "http://h/2"} {
		if v, err := f.Next(t.Context()); err != nil || v.URL != want {
			t.Fatalf("%v, %v; want %s", v, err, want)
		}
	}
}

// TestStuck: parked items are stuck, and no others.
func TestStuck(t *testing.T) {
	for _, memory := range []int64{0, 1 << 20, 1} { // no folder; memory for the host; no memory
		cfg := Config{Memory: memory, RetryWait: time.Hour}
		if memory > 0 {
			cfg.Dir = t.TempDir()
		}
		f := open(t, cfg)
		want := func(when string, want bool) {
			t.Helper()
			if f.IsStuck() != want {
				t.Errorf("memory %d, %s: %v", memory, when, !want)
			}
		}
		want("empty", false)
		f.Push("h", Item{URL: "http://h/1"})
		want("something waits", false)
		f.Park("h", "http://h")
		want("it is parked", true)
		if p := f.Parked("h"); len(p) != 1 || p[0] != "http://h" || len(f.Parked("other")) > 0 {
			t.Errorf("parked for %v", p)
		}
		f.Push("h", Item{URL: "http://h/robots.txt", Robots: "http://h"})
		want("its rules wait", false)
		v, err := f.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want("they are under way", false)
		f.Done(v, Result{Outcome: Failed, Requeue: []Item{v.Item}})
		want("they come in an hour", false)
		f.TakeMatching("h", func(it *Item) bool { return it.Robots != "" })
		want("they are gone", true)
		f.Unpark("h", "http://h")
		want("it is not parked any more", false)
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}
