package frontier

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/base/vfs"
	"kumo/internal/base/vfs/vfstest"
)

func open(t *testing.T, cfg Config) *Frontier {
	t.Helper()
	f, _, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// drain hands out all items and counts the occurrences of each URL.
func drain(t *testing.T, f *Frontier) map[string]int {
	t.Helper()
	seen := map[string]int{}
	for {
		v, err := f.Next(t.Context())
		if errors.Is(err, ErrDrained) {
			return seen
		}
		if err != nil {
			t.Fatal(err)
		}
		seen[v.URL]++
		f.Done(v, Result{Outcome: Answered})
	}
}

func wantOnce(t *testing.T, seen map[string]int, n int) {
	t.Helper()
	if len(seen) != n {
		t.Errorf("%d URLs were handed out, want %d", len(seen), n)
	}
	for url, times := range seen {
		if times != 1 {
			t.Errorf("%s was handed out %d times", url, times)
		}
	}
}

func fill(f *Frontier, hosts, each int) {
	for i := range each {
		for h := range hosts {
			f.Push(fmt.Sprint("h", h), Item{URL: fmt.Sprintf("https://h%d/%d", h, i), Rank: 1})
			f.WaitForRoom(context.Background())
		}
	}
}

func TestAFullDiskLosesNothing(t *testing.T) {
	disk := vfstest.NewFaulty(vfs.OS)
	f := open(t, Config{Dir: t.TempDir(), Disk: disk, Memory: 64 << 10})
	disk.SetRoom(20 << 10)
	fill(f, 300, 20)
	if f.Err() == nil {
		t.Fatal("the disk is full, but nobody says so")
	}
	if _, err := f.Next(t.Context()); !vfs.IsFull(err) {
		t.Errorf("Next: %v, want that the disk is full", err)
	}
	if err := f.Checkpoint(nil); !vfs.IsFull(err) {
		t.Errorf("Checkpoint: %v, want that the disk is full", err)
	}
	disk.SetRoom(-1)
	if err := f.Checkpoint(nil); err != nil {
		t.Error(err)
	}
	wantOnce(t, drain(t, f), 300*20)
}

// badReads is a disk whose reads can fail on request.
type badReads struct {
	vfs.FS
	bad bool
}

type badSource struct {
	vfs.ReaderAt
	disk *badReads
}

func (d *badReads) OpenAt(name string) (vfs.ReaderAt, error) {
	src, err := d.FS.OpenAt(name)
	return &badSource{src, d}, err
}

func (s *badSource) ReadAt(b []byte, off int64) (int, error) {
	if s.disk.bad {
		return 0, syscall.EIO
	}
	return s.ReaderAt.ReadAt(b, off)
}

func TestADiskThatCannotBeReadLosesNothing(t *testing.T) {
	disk := &badReads{FS: vfs.OS}
	f := open(t, Config{Dir: t.TempDir(), Disk: disk, Memory: 64 << 10})
	fill(f, 300, 20)
	disk.bad = true
	got := map[string]int{}
	for {
		v, err := f.Next(t.Context())
		if err != nil {
			if !errors.Is(err, syscall.EIO) {
				t.Fatal(err)
			}
			break
		}
		got[v.URL]++
		f.Done(v, Result{Outcome: Answered})
	}
	disk.bad = false
	for url, n := range drain(t, f) {
		got[url] += n
	}
	wantOnce(t, got, 300*20)
}

func TestACheckpointThatCannotBeWrittenLeavesTheOneBefore(t *testing.T) {
	disk := vfstest.NewFaulty(vfs.OS)
	cfg := Config{Dir: t.TempDir(), Disk: disk, Memory: 64 << 10}
	f := open(t, cfg)
	fill(f, 100, 10)
	if err := f.Checkpoint([]byte("first")); err != nil {
		t.Fatal(err)
	}
	drain(t, f) // everything in the checkpoint is unused, and must stay
	fill(f, 100, 30)
	disk.SetRoom(100)
	if err := f.Checkpoint([]byte("second")); err == nil {
		t.Fatal("a checkpoint on a full disk")
	}
	disk.SetRoom(-1)
	f, note, err := Open(cfg)
	if err != nil || string(note) != "first" {
		t.Fatalf("opened %q, %v", note, err)
	}
	wantOnce(t, drain(t, f), 100*10)
}

func TestADamagedFolderIsRefused(t *testing.T) {
	cfg := Config{Dir: t.TempDir(), Memory: 32 << 10}
	f := open(t, cfg)
	fill(f, 100, 10)
	if err := errors.Join(f.Checkpoint(nil), f.Close()); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(cfg.Dir, checkpointName)
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	flipped := []byte(string(whole))
	flipped[len(flipped)/2] ^= 1
	mistaken := []byte(string(whole))
	mistaken[len(checkpointMagic)] = sectionSuppressed
	for say, c := range map[string]struct {
		content []byte
		want    error
	}{
		"another version": {append([]byte("kumo frontier 9\n"), whole[len(checkpointMagic):]...), ErrVersion},
		"an older kumo's": {append([]byte("kumo frontier 3\n"), whole[len(checkpointMagic):]...), ErrVersion},
		"none":            {[]byte("kumo frontier"), ErrVersion},
		"cut off":         {whole[:len(whole)-1], ErrDamaged},
		"a flipped bit":   {flipped, ErrDamaged},
		"another kind":    {mistaken, ErrDamaged},
	} {
		if err := os.WriteFile(name, c.content, 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err := Open(cfg)
		if !errors.Is(err, c.want) || strings.Contains(say, "older") != strings.Contains(err.Error(), "--fresh") {
			t.Errorf("%s: %v, want %v", say, err, c.want)
		}
	}
}

func TestTheDiskIsGivenBack(t *testing.T) {
	cfg := Config{Dir: t.TempDir(), Memory: 64 << 10}
	f := open(t, cfg)
	fill(f, 300, 10)
	for range 30 {
		for range 300 {
			v, err := f.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			f.Done(v, Result{Outcome: Answered})
			f.Push(v.Host, Item{URL: v.URL + "x", Rank: 1})
		}
		s := f.disk.segments
		if s.size > 3*s.live+(slackSegments+3)*s.full {
			t.Errorf("%d bytes on disk for %d in use", s.size, s.live)
		}
	}
	drain(t, f)
	if s := f.disk.segments; len(s.all) > 1 || s.live != 0 {
		t.Errorf("an empty frontier has %d segments, %d bytes in use", len(s.all), s.live)
	}
	names, _ := os.ReadDir(cfg.Dir)
	if len(names) > 1 {
		t.Errorf("%d files are left", len(names))
	}
}

func TestAHugeHostIsNoBurden(t *testing.T) {
	f := open(t, Config{Dir: t.TempDir(), Memory: 512 << 10})
	const n = 50_000
	for i := range n {
		f.Push("huge", Item{URL: fmt.Sprint("https://huge/", i), Rank: int32(i % 4)})
		f.WaitForRoom(t.Context())
	}
	fill(f, 100, 1)
	if f.disk.residents.bytes > 512<<10 {
		t.Errorf("%d bytes in memory", f.disk.residents.bytes)
	}
	first := map[string]bool{}
	for range 150 {
		v, err := f.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		first[v.Host] = true
		f.Done(v, Result{Outcome: Answered})
	}
	if len(first) < 101 {
		t.Errorf("%d of 101 hosts had a turn among 150", len(first))
	}
	last := int32(0)
	for v, err := f.Next(t.Context()); err == nil; v, err = f.Next(t.Context()) {
		if v.Rank < last {
			t.Fatalf("rank %d after %d", v.Rank, last)
		}
		last = v.Rank
		f.Done(v, Result{Outcome: Answered})
	}
}

func TestHostsOweTheirDelayAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := Config{Dir: t.TempDir(), Memory: 16 << 10, Delay: 10 * time.Second}
		f := open(t, cfg)
		fill(f, 50, 2)
		f.SetDelay("h7", 20*time.Second)
		v, _ := next(t, f)
		f.Done(v, Result{Outcome: Throttled, RetryAfter: time.Minute, Requeue: []Item{v.Item}})
		time.Sleep(time.Hour)
		if err := f.Checkpoint(nil); err != nil {
			t.Fatal(err)
		}
		f.Close()
		f = open(t, cfg)
		defer f.Close()
		start := time.Now()
		for range 50 {
			v, _ := next(t, f)
			want := 10 * time.Second
			if v.Host == "h7" {
				want = 20 * time.Second
			}
			if waited := time.Since(start); waited < want {
				t.Errorf("%s: %v after the start", v.Host, waited)
			}
		}
	})
}

func TestHostsAreListed(t *testing.T) {
	for _, dir := range []string{"", t.TempDir()} {
		now := time.Now()
		f := open(t, Config{Dir: dir, Memory: 16 << 10, Delay: time.Minute, Now: func() time.Time { return now }})
		for h := range 50 {
			for i := range h + 1 {
				f.Push(fmt.Sprint("h", h), Item{URL: fmt.Sprintf("http://h%d/%d", h, i)})
			}
		}
		var got []string
		for i, err := range f.Inspector().Hosts(3, ByPending) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprint(i.Key, " ", i.Pending, " ", i.Why))
		}
		if want := "h49 50 a place,h48 49 a place,h47 48 a place"; strings.Join(got, ",") != want {
			t.Errorf("got %v", got)
		}
		if _, ok := f.Host("h50"); ok {
			t.Error("a host that was never met")
		}
	}
}

// Among many hosts with equally many items, those are listed whose names can be read together.
func TestEqualHostsAreListed(t *testing.T) {
	var reads atomic.Int64
	disk := vfstest.NewSlow(vfs.OS, func(call string) {
		if call == "read" {
			reads.Add(1)
		}
	})
	now := time.Now()
	f := open(t, Config{Disk: disk, Dir: t.TempDir(), Memory: 64 << 10, Delay: time.Minute, Now: func() time.Time {
		return now
	}})
	const hosts, n = 10_000, 100
	for h := range hosts {
		now = now.Add(time.Millisecond)
		for i := range 1 + h%3 {
			f.Push(fmt.Sprint("h", h), Item{URL: fmt.Sprintf("http://h%d/%d", h, i)})
		}
		f.WaitForRoom(t.Context())
	}
	for i := range 20 {
		f.Push("h7", Item{URL: fmt.Sprintf("http://h7/more/%d", i)})
	}
	reads.Store(0)
	met := map[string]bool{}
	for i, err := range f.Inspector().Hosts(n, ByPending) {
		if err != nil {
			t.Fatal(err)
		}
		var h int
		if _, err := fmt.Sscanf(i.Key, "h%d", &h); err != nil || met[i.Key] || i.Pending != 3 && i.Key != "h7" || h%3 != 2 &&
			i.Key != "h7" {
			t.Errorf("%s is among them, where %d wait", i.Key, i.Pending)
		}
		met[i.Key] = true
	}
	if n := reads.Load(); n > 60 || len(met) < 95 || !met["h7"] {
		t.Errorf("%d hosts, %d reads", len(met), n)
	}
	t.Log(len(met), "hosts,", reads.Load(), "reads,", len(f.disk.buckets.byID), "buckets")
}

// Hosts with waits from zero to weeks come out of the calendar when they are due. Each bucket is split only a few
// times.
func TestTheCalendar(t *testing.T) {
	const n, step = 5000, 1000 * 1000 // hosts, and ticks between two
	var c calendar
	at := map[*bucket][]int64{}
	splits := 0
	put := func(tick, now int64) {
		s := c.at(tick, now)
		if tick < s.from || tick >= s.to || s.to-s.from > max(minSlotWidth, (tick-now)/slotDivisor*2) {
			t.Fatalf("%d is put into %d to %d at %d", tick, s.from, s.to, now)
		}
		if len(s.buckets) == 0 {
			s.buckets = append(s.buckets, &bucket{})
		}
		at[s.buckets[0]] = append(at[s.buckets[0]], tick)
	}
	for i := range int64(n) {
		put(i*step, 0)
	}
	got := 0
	for now := int64(0); got < n; {
		c.advance(now, 1000)
		for len(c.early) > 0 && c.nextSplit() <= now {
			b := c.early[0]
			c.early, c.last = c.early[1:], now
			for _, tick := range at[b.bucket] {
				splits++
				put(tick, now)
			}
		}
		for _, b := range c.due {
			for _, tick := range at[b] {
				if got++; tick > now+1000 || tick < now+1000-2*minSlotWidth && now > 0 {
					t.Fatalf("%d comes at %d", tick, now)
				}
			}
		}
		c.due = nil
		look := int64(1 << 62)
		if len(c.early) > 0 {
			look = c.nextSplit()
		}
		if len(c.slots) > 0 {
			look = min(look, c.trigger-1000)
		}
		now = max(now+1, look)
	}
	if len(c.slots) > 0 || splits > 6*n {
		t.Errorf("%d slots are left, hosts were put into finer ones %d times", len(c.slots), splits)
	}
}

func TestRecordsKeepWhatTheyAreTold(t *testing.T) {
	s := status{next: 1 << 37, failures: 7, throttles: 9, deepest: 4000, flags: isSuspect | hasTurn}
	if got := unpack(s.pack()); got != s {
		t.Errorf("%+v became %+v", s, got)
	}
	r := record{hi: 1, state: s.pack(), top: newLoc(1<<26-1, 1<<38-1), lo: 2, bucket: 3, count: 4, delay: 5}
	b := r.append(nil)
	var back record
	if back.parse(b); back != r || len(b) != recordLen {
		t.Errorf("%+v became %+v", r, back)
	}
}

func FuzzBlock(f *testing.F) {
	var w writer
	items := []entry{{key{1, 7, 5}, []byte("a")}, {key{2, 0, 3}, nil}, {key{robotsRank, 0, 4}, nil}}
	w.block(&block{host: "h", links: []link{{at: 1, count: 2}}, items: items})
	f.Add(w.b)
	f.Fuzz(func(t *testing.T, body []byte) {
		var r reader
		b, err := r.block(body)
		if err != nil {
			return
		}
		var w writer
		w.block(&b)
		again, err := r.block(w.b)
		if err != nil || fmt.Sprint(again) != fmt.Sprint(b) {
			t.Errorf("%+v became %+v: %v", b, again, err)
		}
	})
}

func FuzzItem(f *testing.F) {
	for _, it := range []Item{
		{URL: "https://h/a", From: "https://h/", Seed: "https://s/", Path: "L", Depth: 2, Tries: 1, Robots: "https://h"},
		{URL: "http://h/a/b?c", From: "http://h/a/", Seed: "http://h/", ScopeSeed: true, Reported: true, Recrawl: true},
		{URL: "no URL"}, {},
	} {
		var w writer
		w.item("h", &it)
		got, err := (&entry{data: w.b}).item("h")
		if err != nil || got != it {
			f.Errorf("%+v became %+v: %v", it, got, err)
		}
		f.Add(w.b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		it, err := (&entry{data: data}).item("h")
		if err != nil {
			return
		}
		var w writer
		w.item("h", &it)
		again, err := (&entry{data: w.b}).item("h")
		if err != nil || again != it {
			t.Errorf("%+v became %+v: %v", it, again, err)
		}
	})
}

// Without this, a host that never answers would wait longer in each run, soon for hours.
func TestANewProcessBeginsWithShortWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := Config{Dir: t.TempDir(), RetryWait: time.Second}
		f := open(t, cfg)
		f.Push("a", Item{URL: "http://a/"})
		for run := range 4 {
			for range 4 {
				v, err := f.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				f.Done(v, Result{Outcome: Failed, Requeue: []Item{v.Item}})
			}
			if err := errors.Join(f.Checkpoint(nil), f.Close()); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			f = open(t, cfg)
			if _, err := f.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
			if waited := time.Since(began); waited > 8*time.Second {
				t.Errorf("run %d: it waits %v", run, waited)
			}
			f = open(t, cfg)
		}
	})
}

// Two hosts after a crash: the checkpoint contains a wait longer than the delay for one, and nothing about the other.
func TestAHostOwesItsDelayAfterACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := Config{Dir: t.TempDir(), Delay: time.Second}
		f := open(t, cfg)
		f.Push("a", Item{URL: "http://a/"})
		v, err := f.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		f.Done(v, Result{Outcome: Throttled, RetryAfter: time.Minute, Requeue: []Item{v.Item}})
		if err := errors.Join(f.Checkpoint(nil), f.Close()); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		f = open(t, cfg)
		f.Restore("a", Item{URL: "http://a/2"})
		f.Push("b", Item{URL: "http://b/"})
		for _, want := range []struct {
			host string
			wait time.Duration
		}{{"b", time.Second}, {"a", time.Minute}} {
			v, err := f.Next(t.Context())
			if err != nil || v.Host != want.host || time.Since(began) < want.wait {
				t.Errorf("%v after %v (%v), want %v", v, time.Since(began), err, want)
			}
		}
	})
}

// A caller that finds that a host's first item must be read does not sleep, because nobody else would wake it.
func TestWhatHasYetToBeReadIsNotSleptOver(t *testing.T) {
	f := open(t, Config{Dir: t.TempDir(), Memory: 64 << 10})
	const n = 20_000
	for i := range n {
		f.Push("huge", Item{URL: fmt.Sprint("https://huge/", i), Rank: int32(i % 4)})
		f.WaitForRoom(t.Context())
	}
	for got := 0; got < n; {
		select {
		case <-f.leader.wake: // as if it had woken the leader before
		default:
		}
		v, work, wait, err := f.poll()
		switch {
		case err != nil:
			t.Fatal(err)
		case work:
			if err := f.worker.work(); err != nil {
				t.Fatal(err)
			}
		case v != nil:
			f.Done(v, Result{Outcome: Answered})
			got++
		case wait > time.Second && len(f.leader.wake) == 0:
			t.Fatalf("%d of %d were handed out, nothing is under way, and it sleeps for %v", got, n, wait)
		}
	}
}
