package upload

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/archive/away"
	"kumo/internal/archive/place"
	"kumo/internal/archive/place/file"
	"kumo/internal/archive/place/placetest"
	"kumo/internal/base/advice"
	"kumo/internal/base/stats"
	"kumo/internal/base/vfs"
)

// A lateBed has a location that is unreachable, and records errors.
type lateBed struct {
	*bed
	p    *placetest.Faulty
	said []string
}

func newLateBed(t *testing.T) *lateBed {
	b := &lateBed{bed: newBed(t)}
	b.p = placetest.NewFaulty(b.at, rand.New(rand.NewPCG(1, 1)), 0)
	b.p.SetDown(placetest.ErrFault)
	b.cfg.Place = b.p
	b.cfg.Failed = func(s stats.Uploads) { b.said = append(b.said, s.Summary()) }
	b.cfg.Recovered = func(stats.Uploads) { b.said = append(b.said, "works") }
	return b
}

// link reads the folder's link.
func (b *lateBed) link() *away.Link {
	b.Helper()
	l, err := away.ReadLink(b.dir)
	if err != nil {
		b.Fatal(err)
	}
	return l
}

// wantNothing checks that nothing was uploaded except the named files.
func (b *lateBed) wantNothing(but ...string) {
	b.Helper()
	var there []string
	err := place.Walk(b.Context(), b.at, "", func(name string, _ place.Info) error {
		there = append(there, name)
		return nil
	})
	if err != nil || fmt.Sprint(there) != fmt.Sprint(but) {
		b.Errorf("the place has %q (%v), want %q", there, err, but)
	}
}

func TestAPlaceThatComesUpLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newLateBed(t)
		b.close(0, "first")
		u := b.open()
		if l := b.link(); l == nil || !l.Pending {
			t.Fatalf("the folder says %+v", l)
		}
		ran := make(chan error, 1)
		go func() { ran <- u.Run(t.Context()) }()
		time.Sleep(2500 * time.Millisecond)
		synctest.Wait()
		if got := u.Status(); got.Waiting != 2 || !strings.Contains(got.Summary(), "503 slow down; next try in 1 s") {
			t.Errorf("it says %q", got.Summary())
		}
		b.p.SetDown(nil)
		time.Sleep(time.Second)
		synctest.Wait()
		if got := u.Status(); got.Files != 2 || got.Why != "" || fmt.Sprint(b.said) != "[works]" || u.NotReady() != nil {
			t.Errorf("%+v, late by %v; it has said %q", got, u.NotReady(), b.said)
		}
		if l := b.link(); l.Pending {
			t.Errorf("the folder says %+v", l)
		}
		b.write("pages.jsonl", "{}\n")
		u.End(0)
		if err := <-ran; err != nil {
			t.Fatal(err)
		}
		b.wantAll()
	})
}

// A location that turns out to be another crawl's is not changed. Pending files stay, and can be uploaded elsewhere.
func TestAPlaceThatTurnsOutToBeAnothers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, drop := range []bool{false, true} {
			b := newLateBed(t)
			b.cfg.RemoveUploaded = drop
			b.close(0, "first")
			u := b.open()
			m := &away.Mark{Crawl: "other", ID: "x", Machine: "m", Folder: "/f"}
			if err := m.Write(t.Context(), b.at); err != nil {
				t.Fatal(err)
			}
			ran := make(chan error, 1)
			go func() { ran <- u.Run(t.Context()) }()
			b.p.SetDown(nil)
			time.Sleep(time.Hour)
			b.close(1, "second")
			u.FileClosed()
			synctest.Wait()
			if got := u.Status(); got.Waiting != 4 || got.Next != 0 || len(b.said) != 1 ||
				!strings.Contains(b.said[0], `is used by the crawl "other" of the folder /f on m: name another; nothing is `+
					`uploaded`) {
				t.Errorf("%+v; it has said %q", got, b.said)
			}
			u.End(time.Hour)
			err := <-ran
			if !errors.Is(err, ErrIncomplete) || !errors.Is(err, ErrRefused) || !errors.Is(err, ErrRelocatable) ||
				advice.IsUsage(err) || !strings.Contains(err.Error(), "4 files (") {
				t.Errorf("it ends with %v", err)
			}
			b.wantNothing(away.MarkName)
			b.at, err = file.Open(filepath.Join(t.TempDir(), "else"), vfs.OS)
			if err != nil {
				t.Fatal(err)
			}
			b.cfg.Place = b.at
			if err := b.run(); err != nil {
				t.Fatal(err)
			}
			b.wantAll()
		}
	})
}

// A folder whose location now belongs to another crawl cannot use another one.
func TestAPlaceThatHasBecomeAnothers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newLateBed(t)
		b.p.SetDown(nil)
		b.close(0, "first")
		if err := b.run(); err != nil {
			t.Fatal(err)
		}
		b.p.SetDown(placetest.ErrFault)
		b.close(1, "second")
		u := b.open()
		m := &away.Mark{Crawl: "other", ID: "x", Machine: "m", Folder: "/f"}
		if err := m.Write(t.Context(), b.at); err != nil {
			t.Fatal(err)
		}
		b.p.SetDown(nil)
		u.End(time.Hour)
		if err := u.Run(t.Context()); !errors.Is(err, ErrRefused) || errors.Is(err, ErrRelocatable) {
			t.Errorf("it ends with %v", err)
		}
	})
}

// A linklessDisk rejects writes of the link a number of times.
type linklessDisk struct {
	vfs.FS
	times atomic.Int64
}

func (d *linklessDisk) Rename(from, to string) error {
	if filepath.Base(to) == filepath.Base(away.LinkName) && d.times.Add(-1) >= 0 {
		return errors.New("no space left on device")
	}
	return d.FS.Rename(from, to)
}

// A link that cannot be written is written later.
func TestAPlaceThatCannotBeNotedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newLateBed(t)
		b.close(0, "first")
		disk := &linklessDisk{FS: vfs.OS}
		b.cfg.Disk = disk
		u := b.open()
		disk.times.Store(2)
		b.p.SetDown(nil)
		ran := make(chan error, 1)
		go func() { ran <- u.Run(t.Context()) }()
		time.Sleep(time.Hour)
		u.End(0)
		if err := <-ran; err != nil || disk.times.Load() >= 0 {
			t.Fatal(err, disk.times.Load())
		}
		if l := b.link(); l.Pending {
			t.Errorf("the folder says %+v", l)
		}
		b.wantAll()
	})
}

// A location that denies access is retried from time to time, but not at the end of a run.
func TestAPlaceThatTurnsOutToBeDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newLateBed(t)
		b.close(0, "first")
		u := b.open()
		ran := make(chan error, 1)
		b.p.SetDown(fmt.Errorf("the store does not permit it: %w", os.ErrPermission))
		go func() { ran <- u.Run(t.Context()) }()
		synctest.Wait()
		if got := u.Status(); got.Next != maxPause || len(b.said) != 1 ||
			!strings.Contains(b.said[0], "does not permit it") {
			t.Errorf("%+v; it has said %q", got, b.said)
		}
		began := time.Now()
		u.End(time.Hour)
		if err := <-ran; !errors.Is(err, ErrIncomplete) || !errors.Is(err, os.ErrPermission) ||
			time.Since(began) > time.Second {
			t.Errorf("after %v it ends with %v", time.Since(began), err)
		}
		b.p.SetDown(nil)
		b.wantNothing()
		if err := b.run(); err != nil {
			t.Fatal(err)
		}
		b.wantAll()
	})
}

// Permanent errors are reported at once, whether the location is reachable or not.
func TestWhatIsWrongIsSaidThoughThePlaceIsDown(t *testing.T) {
	b := newLateBed(t)
	b.p.SetDown(nil)
	if err := b.run(); err != nil {
		t.Fatal(err)
	}
	b.p.SetDown(placetest.ErrFault)
	fresh := b.cfg
	fresh.Fresh = true
	if err := Check(t.Context(), fresh); !advice.IsUsage(err) || !strings.Contains(err.Error(), "--fresh sets aside") {
		t.Errorf("--fresh with the earlier crawl's place: %v", err)
	}
	at, err := file.Open(t.TempDir(), vfs.OS)
	if err != nil {
		t.Fatal(err)
	}
	other := b.cfg
	other.Place = placetest.NewFaulty(at, rand.New(rand.NewPCG(1, 1)), 1000)
	if err := Check(t.Context(), other); !advice.IsUsage(err) || !strings.Contains(err.Error(), "name another folder") {
		t.Errorf("another place: %v", err)
	}
	if err := Check(t.Context(), b.cfg); advice.IsUsage(err) || !place.IsTransient(err) {
		t.Errorf("its own: %v", err)
	}
}

// A crawl that is opened and does not start leaves no mark, and its folder can use another location.
func TestACrawlThatDoesNotBeginLeavesNoMark(t *testing.T) {
	b := newLateBed(t)
	b.p.SetDown(nil)
	if err := b.open().Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.wantNothing()
	if l := b.link(); l == nil || !l.Pending {
		t.Errorf("the folder says %+v", l)
	}
	if err := b.run(); err != nil {
		t.Fatal(err)
	}
	b.wantAll()
	if err := b.open().Release(t.Context()); err != nil { // the mark existed before
		t.Fatal(err)
	}
	if m, err := away.ReadMark(t.Context(), b.at); m == nil || err != nil {
		t.Errorf("the mark of an earlier run is gone: %v", err)
	}
}
