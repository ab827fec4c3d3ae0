package frontier

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/vfs"
)

func open(t *testing.T, cfg Config) *Frontier {
	t.Helper()
	f, _, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// drain hands out all and counts how often each URL came.
func drain(t *testing.T, f *Frontier) map[string]int {
	t.Helper()
	seen := map[string]int{}
	for {
		v, err := f.Next(t.Context())
		if errors.Is(err, ErrDry) {
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
			f.Push(fmt.Sprint("h", h), Item{URL: fmt.Sprintf("https://h%d/%d", h, i), Depth: 1})
		}
	}
}

func TestAFullDiskLosesNothing(t *testing.T) {
	disk := vfs.NewFaulty(vfs.OS)
	f := open(t, Config{Dir: t.TempDir(), Disk: disk, Memory: 64 << 10})
	disk.SetRoom(100 << 10)
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

// badReads is a disk whose reads can be made to fail.
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
	disk := vfs.NewFaulty(vfs.OS)
	cfg := Config{Dir: t.TempDir(), Disk: disk, Memory: 64 << 10}
	f := open(t, cfg)
	fill(f, 100, 10)
	if err := f.Checkpoint([]byte("first")); err != nil {
		t.Fatal(err)
	}
	drain(t, f) // all that the checkpoint names is out of use, and must stay
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
	for say, c := range map[string]struct {
		content []byte
		want    error
	}{
		"another version": {append([]byte("kumo frontier 2\n"), whole[len(checkpointMagic):]...), ErrVersion},
		"cut off":         {whole[:len(whole)-1], ErrDamaged},
		"a flipped bit":   {flipped, ErrDamaged},
	} {
		if err := os.WriteFile(name, c.content, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Open(cfg); !errors.Is(err, c.want) {
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
			f.Push(v.Host, Item{URL: v.URL + "x", Depth: 1})
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
		f.Push("huge", Item{URL: fmt.Sprint("https://huge/", i), Depth: int32(i % 4)})
	}
	fill(f, 100, 1)
	if f.disk.bytes > 512<<10 {
		t.Errorf("%d bytes in memory", f.disk.bytes)
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
		if v.Depth < last {
			t.Fatalf("depth %d after %d", v.Depth, last)
		}
		last = v.Depth
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
		f.Done(v, Result{Outcome: Throttled, RetryAfter: time.Minute, Again: []Item{v.Item}})
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
				f.Push(fmt.Sprint("h", h), Item{URL: fmt.Sprint(i)})
			}
		}
		var got []string
		for i, err := range f.Hosts(3, ByWaiting) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprint(i.Key, " ", i.Waiting, " ", i.Why))
		}
		if want := "h49 50 a place,h48 49 a place,h47 48 a place"; strings.Join(got, ",") != want {
			t.Errorf("got %v", got)
		}
		if _, ok := f.Host("h50"); ok {
			t.Error("a host that was never met")
		}
	}
}

func TestTheWheel(t *testing.T) {
	var tb table
	var w wheel
	const n = 5000
	for i := range n {
		w.add(&tb, tb.add(tb.identity(fmt.Sprint(i))), int64(i)*1000)
	}
	got := 0
	for tick := int64(0); got < n; tick += 100 {
		var due list
		w.advance(&tb, tick, &due)
		for due.n > 0 {
			id := due.pop(&tb)
			if at := int64(id-1) * 1000; at > tick+turnTicks { // its bucket came round before its time
				w.add(&tb, id, at)
			} else if got++; tick-at > turnTicks {
				t.Fatalf("%d is due at %d, came at %d", id, at, tick)
			}
		}
	}
	if w.n != 0 {
		t.Errorf("%d are left", w.n)
	}
}

func TestRecordsKeepWhatTheyAreTold(t *testing.T) {
	s := status{next: 1 << 39, failures: 7, throttles: 9, deepest: 300, flags: isDoubtful | hasTurn}
	if got := unpack(s.pack()); got != s {
		t.Errorf("%+v became %+v", s, got)
	}
	r := record{hi: 1, state: s.pack(), top: newLoc(1<<26-1, 1<<30-1).skipping(255), lo: 2, link: 3, count: 4, delay: 5}
	b := r.append(nil)
	var back record
	if back.parse(b); back != r || len(b) != recordLen {
		t.Errorf("%+v became %+v", r, back)
	}
}

func FuzzBlock(f *testing.F) {
	var w writer
	it := Item{URL: "https://h/a", From: "https://h/", Seed: "https://s/", Path: "L", Depth: 2, Tries: 1, Robots: "https://h", key: key{1, 5}}
	w.block(&block{run: 1, host: "h", links: []link{{at: 1, count: 2}}}, []*Item{&it, &it})
	f.Add(w.b)
	f.Fuzz(func(t *testing.T, body []byte) {
		var r reader
		b, err := r.parse(body)
		if err != nil {
			return
		}
		items := make([]*Item, len(b.items))
		for i := range b.items {
			items[i] = &b.items[i]
		}
		var w writer
		w.block(&b, items)
		again, err := r.parse(w.b)
		if err != nil || fmt.Sprint(again) != fmt.Sprint(b) {
			t.Errorf("%+v became %+v: %v", b, again, err)
		}
	})
}

// A host that never answers would else be waited for longer with each run, for hours soon.
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
				f.Done(v, Result{Outcome: Failed, Again: []Item{v.Item}})
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

// Two hosts after a crash: one that the checkpoint knows to owe more than its delay, and one that it does not know.
func TestAHostOwesItsDelayAfterACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := Config{Dir: t.TempDir(), Delay: time.Second}
		f := open(t, cfg)
		f.Push("a", Item{URL: "http://a/"})
		v, err := f.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		f.Done(v, Result{Outcome: Throttled, RetryAfter: time.Minute, Again: []Item{v.Item}})
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
