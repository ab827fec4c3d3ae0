package upload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/archive/away"
	"kumo/internal/archive/place"
	"kumo/internal/archive/place/placetest"
	"kumo/internal/base/vfs"
	"kumo/internal/state/store"
)

// list returns the content of a list for a reader of the location, and the number of its files.
func (b *bed) list(name string) (text string, parts int) {
	b.Helper()
	m, err := away.ReadManifest(b.Context(), b.at)
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	disk := away.NewRemote(b.Context(), vfs.OS, dir, b.at, m)
	name = filepath.Join(dir, name)
	size, err := disk.Size(name)
	if away.IsMissing(err) {
		return "", 0
	}
	in, openErr := disk.Open(name)
	at, atErr := disk.OpenAt(name)
	if err := errors.Join(err, openErr, atErr); err != nil {
		b.Fatal(err)
	}
	got, err := io.ReadAll(in)
	backwards := make([]byte, size)
	for i := size - 1; i >= 0 && err == nil; i -= 7 {
		_, err = at.ReadAt(backwards[max(i-6, 0):i+1], max(i-6, 0))
	}
	if err := errors.Join(err, in.Close(), at.Close()); err != nil {
		b.Fatal(err)
	}
	if int64(len(got)) != size || !bytes.Equal(got, backwards) {
		b.Errorf("%s has %d bytes, and is read as %q and %q", name, size, got, backwards)
	}
	return string(got), len(m.Parts(filepath.Base(name)))
}

// Whatever fails, and whenever a process dies, the location has the lines of all WARC files in its manifest, and no
// line that the folder may still lose. At the end of a run, lists are uploaded whole.
func TestListsAreThereAsFarAsRecordsAre(t *testing.T) {
	seed := rand.Uint64()
	synctest.Test(t, func(t *testing.T) {
		defer func() {
			if t.Failed() {
				t.Logf("seed %d", seed)
			}
		}()
		rnd := rand.New(rand.NewPCG(seed, 1))
		b := newBed(t)
		faulty := placetest.NewFaulty(b.at, rand.New(rand.NewPCG(seed, 2)), 60)
		b.cfg.Place = faulty
		lines, safe := "", 0
		cut := func() []store.Mark { return []store.Mark{{Name: "pages.jsonl", Length: int64(safe)}} }
		most, looks := 0, 0
		for life := range 8 {
			var u *Uploader
			for u == nil {
				u, _ = Open(t.Context(), b.cfg)
			}
			b.write("pages.jsonl", lines[:safe]) // lines that are not in the journal are cut off
			lines = lines[:safe]
			u.Durable(cut())
			done := make(chan error, 1)
			ctx, die := context.WithCancel(t.Context())
			defer die()
			go func() { done <- u.Run(ctx) }()
			for n := range 6 {
				name := fmt.Sprintf("%d-%d", life, n)
				lines += "line of " + name + "\n"
				b.write("pages.jsonl", lines)
				safe = len(lines)
				u.Durable(cut())
				b.close(10*life+n, name)
				u.FileClosed()
				lines += "torn"
				b.write("pages.jsonl", lines)
				lines = lines[:safe]
				time.Sleep(time.Duration(rnd.IntN(20)) * time.Second)
				synctest.Wait()
				m, err := away.ReadManifest(t.Context(), b.at)
				if err != nil { // missing or damaged by a fault: it will be written again
					continue
				}
				looks++
				text, parts := b.list("pages.jsonl")
				if most = max(most, parts); len(text) > safe || text != lines[:len(text)] {
					t.Errorf("the place has %q of %q", text, lines[:safe])
				}
				for _, e := range m.All() {
					var of, nth int
					if k, _ := fmt.Sscanf(e.Name, "warc/news-%05d-vm.warc.gz", &nth); k < 1 {
						continue
					}
					if _, err := b.cfg.Disk.Size(filepath.Join(b.cfg.Dir, e.Name)); err != nil {
						continue // the manifest was damaged by a fault
					}
					of, nth = nth/10, nth%10
					if !bytes.Contains([]byte(text), fmt.Appendf(nil, "line of %d-%d\n", of, nth)) {
						t.Errorf("the place has %s and not its line: %q", e.Name, text)
					}
				}
			}
			if life%4 != 3 {
				die()
				<-done
				continue
			}
			faulty.SetChance(0)
			b.write("pages.jsonl", lines)
			u.End(time.Hour)
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if text, parts := b.list("pages.jsonl"); text != lines || parts != 1 {
				t.Errorf("at the end the place has %q in %d parts", text, parts)
			}
			if left, err := b.at.List(t.Context(), away.PartsDir); err != nil || len(left) > 0 {
				t.Errorf("there stays %v (%v)", left, err)
			}
			b.wantAll()
			faulty.SetChance(60)
		}
		if most < 3 || looks < 10 {
			t.Errorf("lists came in %d parts at most, and were looked at %d times", most, looks)
		}
	})
}

// A list that does not continue the uploaded part is uploaded whole.
func TestAListThatWasRepairedComesWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		bring := func(text string) {
			u := b.open()
			b.write("pages.jsonl", text)
			u.Durable([]store.Mark{{Name: "pages.jsonl", Length: int64(len(text))}})
			ctx, die := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- u.Run(ctx) }()
			synctest.Wait()
			die()
			<-done
		}
		for _, c := range []struct {
			text  string
			parts int
		}{{"one\n", 1}, {"one\ntwo\n", 2}, {"one\nTWO\nthree\n", 1}, {"one\nTWO\nthree\nfour\n", 2}, {"one\n", 1}} {
			bring(c.text)
			if text, parts := b.list("pages.jsonl"); text != c.text || parts != c.parts {
				t.Errorf("of %q the place has %q in %d parts, not %d", c.text, text, parts, c.parts)
			}
		}
	})
}

// A refusing location rejects files a number of times.
type refusing struct {
	place.Place
	mu     sync.Mutex
	times  map[string]int // by file name
	marked func()         // called when the mark is read; may be nil
}

func (r *refusing) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	if name == away.MarkName && r.marked != nil {
		r.marked()
	}
	return r.Place.Open(ctx, name, offset, length)
}

func (r *refusing) Create(ctx context.Context, name string) (place.Writer, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.times[name] > 0 {
		r.times[name]--
		return nil, fmt.Errorf("%s: %w", name, placetest.ErrFault)
	}
	return r.Place.Create(ctx, name)
}

// The same holds if its upload or that of another list fails at first.
func TestAListThatWasRepairedComesWholeInTheEnd(t *testing.T) {
	for _, first := range []string{"pages.jsonl", away.PartName("report.json", 2)} {
		synctest.Test(t, func(t *testing.T) {
			b := newBed(t)
			r := &refusing{Place: b.at, times: map[string]int{}}
			b.cfg.Place = r
			for _, texts := range [][2]string{{"one\ntwo\n", "{}"}, {"One\ntwo\nthree\n", "{}[]"}} {
				u := b.open()
				b.write("pages.jsonl", texts[0])
				b.write("report.json", texts[1])
				u.Durable([]store.Mark{{Name: "pages.jsonl", Length: int64(len(texts[0]))},
					{Name: "report.json", Length: int64(len(texts[1]))}})
				ctx, die := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- u.Run(ctx) }()
				time.Sleep(time.Minute)
				synctest.Wait()
				die()
				<-done
				for i, name := range b.cfg.Grow {
					if text, _ := b.list(name); text != texts[i] {
						t.Errorf("%s is there as %q, not %q", name, text, texts[i])
					}
				}
				b.wantAll()
				if r.times[first] > 0 {
					t.Errorf("%s was not refused", first)
				}
				r.times[first] = 1
			}
		})
	}
}

// A list that is uploaded whole during a run, and grows before the manifest lists it, loses no part.
func TestAListGrowsBeforeItIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		r := &refusing{Place: b.at, times: map[string]int{}}
		b.cfg.Place = r
		for life, texts := range [][2]string{{"one\n", "one\ntwo\n"}, {"ONE\n", "ONE\ntwo\n"}} {
			u := b.open()
			ctx, die := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- u.Run(ctx) }()
			synctest.Wait()
			r.times[away.ManifestName] = life
			for i, text := range texts {
				b.write("pages.jsonl", text)
				u.Durable([]store.Mark{{Name: "pages.jsonl", Length: int64(len(text))}})
				b.close(2*life+i, text)
				u.FileClosed()
				time.Sleep(time.Second / 2)
				synctest.Wait()
			}
			time.Sleep(time.Minute)
			if text, _ := b.list("pages.jsonl"); text != texts[1] {
				t.Errorf("it is there as %q, not %q", text, texts[1])
			}
			die()
			<-done
		}
	})
}

// At the end of a run, too, no WARC file is listed before its lines, even if uploads of whole lists fail.
func TestLinesComeFirstAtTheEnd(t *testing.T) {
	for _, meanwhile := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := newBed(t)
			r := &refusing{Place: b.at, times: map[string]int{"pages.jsonl": 1 << 30}}
			b.cfg.Place = r
			u := b.open()
			ran := make(chan error, 1)
			go func() { ran <- u.Run(t.Context()) }()
			synctest.Wait()
			b.write("pages.jsonl", "one\n")
			u.Durable([]store.Mark{{Name: "pages.jsonl", Length: 4}})
			b.close(0, "first")
			end := sync.OnceFunc(func() { u.End(0) })
			r.marked = end
			if !meanwhile {
				end()
			}
			u.FileClosed()
			if err := <-ran; !errors.Is(err, ErrIncomplete) {
				t.Errorf("it ended with %v", err)
			}
			m, err := away.ReadManifest(t.Context(), b.at)
			if err != nil {
				t.Fatal(err)
			}
			if _, is := m.Get("warc/news-00000-vm.warc.gz"); !is {
				t.Errorf("the place has %v", m.All())
			}
			if text, _ := b.list("pages.jsonl"); text != "one\n" {
				t.Errorf("of the list the place has %q", text)
			}
		})
	}
}

// A file counts as present only when the manifest lists it.
func TestWhatIsThereIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		r := &refusing{Place: b.at, times: map[string]int{}}
		b.cfg.Place = r
		const warc, index = "warc/news-00000-vm.warc.gz", "warc/news-00000-vm.cdxj"
		for life := range 2 { // the second knows the file from the folder's log
			u := b.open()
			r.times[away.ManifestName] = 1
			ctx, die := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- u.Run(ctx) }()
			synctest.Wait()
			if life == 0 {
				time.Sleep(time.Minute)
				synctest.Wait()
				b.close(0, "first")
				r.times[away.ManifestName] = 1
				u.FileClosed()
				synctest.Wait()
			}
			if _, is := u.Manifest().Get(warc); !is || u.Has(warc) || u.Has(index) {
				t.Errorf("it is said to be there: %v, named: %v, %v", is, u.Has(warc), u.Has(index))
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			if !u.Has(warc) || !u.Has(index) || u.Has("warc/news-00001-vm.warc.gz") {
				t.Errorf("%v, %v", u.Has(warc), u.Has(index))
			}
			die()
			<-done
		}
	})
}

// If no WARC file is closed, lists are uploaded after enough growth.
func TestListsComeByThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		u := b.open()
		ctx, die := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- u.Run(ctx) }()
		synctest.Wait()
		name := filepath.Join(b.dir, "pages.jsonl")
		for _, size := range []int64{maxUnsent, maxUnsent + 1} {
			f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o600)
			if err = errors.Join(err, f.Truncate(size), f.Close()); err != nil {
				t.Fatal(err)
			}
			u.Durable([]store.Mark{{Name: "pages.jsonl", Length: size}, {Name: "warc/x.open", Length: 1 << 40}})
			synctest.Wait()
			info, err := b.at.Stat(t.Context(), away.PartName("pages.jsonl", 0))
			if size > maxUnsent && (err != nil || info.Size != size) || size == maxUnsent && !away.IsMissing(err) {
				t.Errorf("of %d bytes the place has %+v (%v)", size, info, err)
			}
		}
		die()
		<-done
	})
}
