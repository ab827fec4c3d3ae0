package frontier

import (
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// remove removes some hosts, and an unknown one.
func (d *duel) remove(key string) {
	if d.rng.IntN(4) > 0 { // otherwise nothing would be left
		return
	}
	d.detach([]string{key, d.key(), "unknown.example"}[d.rng.IntN(2):]...)
	robots, err := d.f.FinishRemove()
	if err != nil {
		d.t.Fatal(err)
	}
	// after a restart there are none, but the model has those from before a checkpoint
	if len(robots) != d.orphans && !d.gone {
		d.t.Fatalf("%d fetches of robots.txt were removed, want %d", len(robots), d.orphans)
	}
	d.orphans = 0
}

func (d *duel) detach(keys ...string) {
	d.f.Remove(keys...)
	for _, key := range slices.Compact(keys) {
		h := d.m.host(key)
		h.away = true
		for i := range h.items {
			if h.items[i].robots {
				d.orphans++
			}
		}
		h.items, h.parked = nil, map[string]bool{}
		for i := range h.flying {
			if h.flying[i].robots && !h.flying[i].void {
				d.orphans++
			}
			h.flying[i].void = true
		}
	}
}

// tour iterates over some hosts while other hosts change.
func (d *duel) tour() {
	if d.spared != nil {
		return
	}
	salt := byte(d.rng.IntN(256))
	d.spared = func(key string) bool { return crc32.ChecksumIEEE(append([]byte(key), salt))%3 == 0 }
	defer func() { d.spared = nil }()
	want := map[string][]string{}
	for key, h := range d.m.hosts {
		if d.spared(key) {
			if urls := h.all(); len(urls) > 0 {
				want[key] = urls
			}
		}
	}
	t := d.f.Iterate(d.spared)
	defer t.Close()
	for {
		s, err := t.Next()
		if err != nil {
			d.t.Fatal(err)
		}
		if s == nil {
			break
		}
		got := d.stay(s)
		if d.ranker != nil { // a new generation takes effect when the host is visited
			slices.Sort(got)
			slices.Sort(want[s.Key])
		}
		if !slices.Equal(got, want[s.Key]) {
			d.t.Fatalf("a tour sees %d items of %s, want %d:\n%v\n%v", len(got), s.Key, len(want[s.Key]), got, want[s.Key])
		}
		if delete(want, s.Key); d.rng.IntN(3) == 0 {
			d.step()
		}
	}
	if len(want) > 0 {
		d.t.Fatalf("a tour does not see %v", want)
	}
}

// stay reads the queue of a host while other calls are made.
func (d *duel) stay(s *HostQueue) (urls []string) {
	h := d.m.hosts[s.Key]
	if s.RequestedDelay != h.delay || s.Wait < time.Until(h.next)-time.Millisecond && !d.loose {
		d.t.Fatalf("%s: a tour sees a delay of %v and a wait of %v, want %v and %v", s.Key, s.RequestedDelay, s.Wait, h.delay,
			time.Until(h.next))
	}
	for {
		it, err := s.Next()
		if err != nil {
			d.t.Fatal(err)
		}
		if it == nil {
			return urls
		}
		if urls = append(urls, it.URL); it.Rank != 0 || it.Seq != 0 {
			d.t.Fatalf("%+v has a place in the queue", it)
		}
		if d.rng.IntN(300) == 0 {
			d.step()
		}
	}
}

// all returns the URLs of a host in order, including those under way.
func (h *modelHost) all() (urls []string) {
	items := slices.Clone(h.items)
	for _, it := range h.flying {
		if !it.void {
			items = append(items, it)
		}
	}
	slices.SortFunc(items, func(a, b modelItem) int { return cmp.Or(a.rank-b.rank, a.seq-b.seq) })
	for _, it := range items {
		if !it.robots {
			urls = append(urls, it.url)
		}
	}
	return urls
}

// An iteration reads the rest of a host's queue even if the host is loaded and evicted, and its segments are emptied.
func TestAStayKeepsWhatItReads(t *testing.T) {
	f := open(t, Config{Dir: t.TempDir(), Memory: 64 << 10})
	const n = 5000
	for i := range n {
		f.Push("long", Item{URL: fmt.Sprint("https://long/", i)})
	}
	fill(f, 100, 20)
	tour := f.Iterate(func(key string) bool { return key == "long" })
	s, err := tour.Next()
	if err != nil || s == nil {
		t.Fatal(s, err)
	}
	for range n + 100*20 {
		v, err := f.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		f.Done(v, Result{Outcome: Answered})
	}
	if f.disk.segments.live != 0 || len(f.disk.segments.retained.dead) == 0 {
		t.Fatalf("%d bytes in use", f.disk.segments.live)
	}
	for i := range n {
		it, err := s.Next()
		if err != nil || it == nil || it.URL != fmt.Sprint("https://long/", i) {
			t.Fatalf("item %d: %v, %v", i, it, err)
		}
	}
	if it, err := s.Next(); it != nil || err != nil {
		t.Error(it, err)
	}
	tour.Close()
	tour.Close()
	if dead := len(f.disk.segments.retained.dead); dead > 0 {
		t.Errorf("%d dead segments stay", dead)
	}
}

// A QueueLast item keeps its mark, and one of two items of the same URL may be suppressed.
func TestWhatAStayTells(t *testing.T) {
	for _, dir := range []string{"", t.TempDir()} {
		f := open(t, Config{Dir: dir})
		f.Push("h", Item{URL: "https://h/deep", Rank: 3}, Item{URL: "https://h/late", QueueLast: true},
			Item{URL: "https://h/twice"},
			Item{URL: "https://h/robots.txt", Robots: "https://h"}, Item{URL: "https://h/twice", Recrawl: true})
		f.Suppress("https://h/twice")
		tour := f.Iterate(func(string) bool { return true })
		s, err := tour.Next()
		if err != nil {
			t.Fatal(err)
		}
		var got []Item
		for it, err := s.Next(); it != nil || err != nil; it, err = s.Next() {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, *it)
		}
		want := []Item{{URL: "https://h/twice", Recrawl: true}, {URL: "https://h/deep"},
			{URL: "https://h/late", QueueLast: true}}
		if !slices.Equal(got, want) {
			t.Errorf("%+v", got)
		}
		if s, err := tour.Next(); s != nil || err != nil {
			t.Error(s, err)
		}
		tour.Close()
		f.Remove("h", "unknown")
		robots, err := f.FinishRemove()
		if err != nil || len(robots) != 1 || robots[0].Robots != "https://h" {
			t.Errorf("%v, %v", robots, err)
		}
		if c := f.Counts(); c.URLs != 0 || c.Hosts != 2 || f.suppressed.total != 0 {
			t.Errorf("%+v, and %d are gone", c, f.suppressed.total)
		}
		f.Suppress("https://h/deep")
		f.Import("h", 0, 0, want...) // the URLs are new there
		wantOnce(t, drain(t, f), 3)
	}
}

// An imported host keeps its wait, even if it was cold here.
func TestAHostThatArrivesOwesItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t, Config{Dir: t.TempDir(), Memory: 8 << 10, Delay: time.Second, MaxDelay: 20 * time.Second})
		const hosts = 100
		for range 2 { // the second time most are cold
			for i := range hosts {
				key := fmt.Sprint("h", i)
				f.Import(key, 10*time.Second, time.Minute, Item{URL: "https://" + key + "/", Rank: 1})
			}
		}
		start := time.Now()
		last := map[string]time.Time{}
		for range 2 * hosts {
			v, err := f.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if met, before := last[v.Host]; time.Since(start) < time.Minute || before && time.Since(met) < 10*time.Second {
				t.Fatalf("%s was visited after %v, and %v", v.URL, time.Since(start), time.Since(met))
			}
			last[v.Host] = time.Now()
			f.Done(v, Result{Outcome: Answered})
		}
		if _, err := f.Next(t.Context()); !errors.Is(err, ErrDrained) {
			t.Error(err)
		}
		f.Import("slow", time.Hour, 48*time.Hour, Item{URL: "https://slow/"})
		start = time.Now()
		if _, err := f.Next(t.Context()); err != nil || time.Since(start) > time.Hour {
			t.Errorf("a wait without bound: %v, %v", time.Since(start), err)
		}
		if i, _ := f.Host("slow"); i.Delay != 20*time.Second {
			t.Errorf("a delay of %v", i.Delay)
		}
	})
}

// A suppressed item may be dropped between the copy of a host's queue and its reading. The iteration omits it all the
// same, but returns a second item of its URL that is not suppressed.
func TestAStayLeavesOutWhatCameUpSince(t *testing.T) {
	for _, dir := range []string{"", t.TempDir()} {
		f := open(t, Config{Dir: dir})
		f.Push("h", Item{URL: "https://h/done"}, Item{URL: "https://h/twice"}, Item{URL: "https://h/waits"},
			Item{URL: "https://h/twice", Recrawl: true})
		f.Suppress("https://h/done")
		f.Suppress("https://h/twice")
		tour := f.Iterate(func(string) bool { return true })
		s, err := tour.Next() // this makes the copy
		if err != nil {
			t.Fatal(err)
		}
		v, err := f.Next(t.Context())
		if err != nil || v.URL != "https://h/waits" {
			t.Fatalf("%+v, %v", v, err)
		}
		f.Postpone(v, 0)
		var got []string
		for it, err := s.Next(); it != nil || err != nil; it, err = s.Next() {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprint(it.URL, " ", it.Recrawl))
		}
		if want := []string{"https://h/waits false", "https://h/twice true"}; !slices.Equal(got, want) {
			t.Errorf("a tour tells %q, want %q", got, want)
		}
		tour.Close()
		tour.Close()
		if f.suppressed.views != 0 || f.suppressed.ended != nil || f.suppressed.total != 0 {
			t.Errorf("after the tour: %d tours, %v, %d are gone", f.suppressed.views, f.suppressed.ended, f.suppressed.total)
		}
	}
}
