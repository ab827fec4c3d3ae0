package upload

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
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
	"kumo/internal/base/vfs/vfstest"
)

// A bed has a crawl's folder and a location.
type bed struct {
	*testing.T
	dir string
	at  place.Place // the location without faults
	p   place.Place
	cfg Config
}

func newBed(t *testing.T) *bed {
	t.Helper()
	at, err := file.Open(filepath.Join(t.TempDir(), "place"), vfs.OS)
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{T: t, dir: t.TempDir(), at: at, p: at}
	if err := os.MkdirAll(filepath.Join(b.dir, "state"), 0o755); err != nil {
		t.Fatal(err)
	}
	b.cfg = Config{Place: at, Dir: b.dir, Disk: vfs.OS, Crawl: "news", Grow: []string{"pages.jsonl", "report.json"}}
	return b
}

func (b *bed) write(name, text string) {
	b.Helper()
	name = filepath.Join(b.dir, filepath.FromSlash(name))
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)); err != nil {
		b.Fatal(err)
	}
}

// close writes a closed WARC file and its index.
func (b *bed) close(n int, text string) {
	b.Helper()
	b.write(fmt.Sprintf("warc/news-%05d-vm.cdxj", n), "index of "+text)
	b.write(fmt.Sprintf("warc/news-%05d-vm.warc.gz", n), text)
}

func (b *bed) open() *Uploader {
	b.Helper()
	u, err := Open(b.Context(), b.cfg)
	if err != nil {
		b.Fatal(err)
	}
	return u
}

// run uploads everything.
func (b *bed) run() error {
	b.Helper()
	u := b.open()
	u.End(time.Hour)
	return u.Run(b.Context())
}

// wantAll checks that the location has the folder's files, as listed in the manifest, and nothing else.
func (b *bed) wantAll() {
	b.Helper()
	m, err := away.ReadManifest(b.Context(), b.at)
	if err != nil {
		b.Fatal(err)
	}
	there := 0
	err = place.Walk(b.Context(), b.at, "", func(name string, info place.Info) error {
		if name == away.ManifestName || name == away.MarkName {
			return nil
		}
		there++
		data, err := place.ReadFile(b.Context(), b.at, name)
		sum := sha256.Sum256(data)
		if e, is := m.Get(name); !is || e.Size != info.Size || e.SHA256 != hex.EncodeToString(sum[:]) {
			b.Errorf("%s: the manifest has %+v", name, e)
		}
		here, hereErr := os.ReadFile(filepath.Join(b.dir, filepath.FromSlash(name)))
		if hereErr == nil && !bytes.Equal(data, here) {
			b.Errorf("%s is not what it is in the folder", name)
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	if all := m.All(); len(all) != there {
		b.Errorf("the manifest has %d files, the place %d", len(all), there)
	}
	log, _, err := away.ReadLog(vfs.OS, b.dir)
	if err != nil || !bytes.Equal(log.Encode(), m.Encode()) {
		b.Errorf("the folder's log says otherwise than the manifest: %v", err)
	}
}

func TestFilesComeAsTheyAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		b.close(0, "first")
		b.write("warc/news-00001-vm.warc.gz.open", "grows")
		b.write("warc/news-00001-vm.cdxj.open", "grows")
		u := b.open()
		ran := make(chan error, 1)
		go func() { ran <- u.Run(t.Context()) }()
		synctest.Wait()
		if s := u.Status(); s.Files != 2 || s.Waiting != 0 {
			t.Errorf("after the first: %+v", s)
		}
		b.close(2, "second")
		u.FileClosed()
		synctest.Wait()
		b.write("pages.jsonl", "{}\n")
		u.End(0)
		if err := <-ran; err != nil {
			t.Fatal(err)
		}
		if s := u.Status(); s.Files != 5 || s.Waiting != 0 || s.Summary() != "" {
			t.Errorf("at the end: %+v", s)
		}
		b.wantAll()
		b.write("pages.jsonl", "{}\n{}\n") // written in the next run
		if err := b.run(); err != nil {
			t.Fatal(err)
		}
		b.wantAll()
	})
}

func TestAPlaceThatIsDownIsTriedAgainWithGrowingPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		p := placetest.NewFaulty(b.at, rand.New(rand.NewPCG(1, 1)), 0)
		var said []string
		b.cfg.Place = p
		b.cfg.Failed = func(s stats.Uploads) { said = append(said, s.Summary()) }
		b.cfg.Recovered = func(stats.Uploads) { said = append(said, "works") }
		u := b.open()
		p.SetDown(errors.New("connection refused"))
		b.close(0, strings.Repeat("x", 1500))
		ran := make(chan error, 1)
		go func() { ran <- u.Run(t.Context()) }()
		time.Sleep(2500 * time.Millisecond)
		synctest.Wait()
		if got := u.Status().Summary(); got != "2 files (3.0 kB) wait: connection refused; next try in 1 s" {
			t.Errorf("it says %q", got)
		}
		b.close(1, "more")
		u.FileClosed()
		synctest.Wait()
		if got := u.Status(); got.Waiting != 4 {
			t.Errorf("of what came meanwhile it says %+v", got)
		}
		p.SetDown(nil)
		time.Sleep(time.Second)
		synctest.Wait()
		if got := u.Status(); got.Files != 4 || got.Why != "" || fmt.Sprint(said) !=
			"[2 files (3.0 kB) wait: connection refused; next try in 1 s works]" {
			t.Errorf("%+v; it has said %q", got, said)
		}
		p.SetDown(errors.New("connection refused"))
		b.close(2, "at the end")
		began := time.Now()
		u.End(10 * time.Minute)
		err := <-ran
		if took := time.Since(began); !errors.Is(err, ErrIncomplete) || took != 10*time.Minute {
			t.Errorf("after %v: %v", took, err)
		}
		p.SetDown(nil)
		if err := b.run(); err != nil {
			t.Fatal(err)
		}
		b.wantAll()
	})
}

// Pauses stay short after occasional failures, as long as other uploads succeed.
func TestAPlaceThatFailsNowAndThenIsNotWaitedForLonger(t *testing.T) {
	seed := rand.Uint64()
	synctest.Test(t, func(t *testing.T) {
		const files = 100
		b := newBed(t)
		b.cfg.Place = placetest.NewFaulty(b.at, rand.New(rand.NewPCG(seed, 2)), 10)
		for n := range files {
			b.close(n, fmt.Sprint("record ", n))
		}
		var u *Uploader
		for u == nil {
			u, _ = Open(t.Context(), b.cfg)
		}
		start := time.Now()
		u.End(time.Minute)
		if err := u.Run(t.Context()); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		d := time.Since(start)
		t.Log("all is there after ", d)
		if d > 2*time.Minute {
			t.Errorf("seed %d: it waits %s for a place of which a step in a hundred fails", seed, d)
		}
		b.wantAll()
	})
}

// A narrow location never accepts one of the files.
type narrow struct {
	place.Place
	name  string
	tries int
}

func (r *narrow) Create(ctx context.Context, name string) (place.Writer, error) {
	if name == r.name {
		r.tries++
		return nil, place.Transient(errors.New("413 too large"))
	}
	return r.Place.Create(ctx, name)
}

// A file that is always rejected is retried less and less often, although others succeed.
func TestAFileThatIsNeverTakenIsSeldomTried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		r := &narrow{Place: b.at, name: "warc/news-00000-vm.warc.gz"}
		b.cfg.Place = r
		u := b.open()
		ctx, stop := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- u.Run(ctx) }()
		for n := range 360 {
			b.close(n, fmt.Sprint("record ", n))
			u.FileClosed()
			time.Sleep(10 * time.Second)
		}
		stop()
		if err := <-ran; !errors.Is(err, ErrIncomplete) {
			t.Error(err)
		}
		if r.tries < 5 || r.tries > 100 { // three starts per try
			t.Errorf("it is tried %d times in an hour", r.tries)
		}
	})
}

// TestARunThatEndsBeforeTheWaitIsNotMissed ends a run between Run's check and its wait.
func TestARunThatEndsBeforeTheWaitIsNotMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &Uploader{wakeup: make(chan struct{}, 1), end: make(chan struct{})}
		u.End(0)
		u.wait(t.Context(), 0, false) // otherwise synctest reports that all goroutines are blocked
	})
}

func TestPausesHaveABound(t *testing.T) {
	for failures, want := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 9: 256 * time.Second,
		10: 5 * time.Minute, 1 << 40: 5 * time.Minute} {
		if got := pause(failures); got != want {
			t.Errorf("after %d failures %v, want %v", failures, got, want)
		}
	}
}

// TestKilledAtAnyByte kills the process at any byte that the uploader writes to disk, with random faults of the
// location.
func TestKilledAtAnyByte(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		dice := rand.New(rand.NewPCG(seed, 1))
		b := newBed(t)
		b.cfg.RemoveUploaded = dice.IntN(2) == 0
		p := placetest.NewFaulty(b.at, dice, 80)
		for n := range 20 {
			b.close(n, strings.Repeat(fmt.Sprint(n), 1+dice.IntN(2000)))
		}
		deaths := 0
		for life := 0; life < 200; life++ {
			disk := vfstest.NewFaulty(vfs.OS)
			disk.DieAfter(dice.Int64N(3000))
			b.cfg.Place, b.cfg.Disk = p, disk
			b.write("pages.jsonl", strings.Repeat("{}\n", life))
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			u, err := Open(ctx, b.cfg)
			if err == nil {
				u.End(0)
				err = u.Run(ctx)
			}
			cancel()
			if disk.Dead() {
				deaths++
			} else if err == nil {
				break
			}
		}
		b.cfg.Disk = vfs.OS
		p.SetChance(0)
		if err := b.run(); err != nil {
			t.Fatal(err)
		}
		b.wantAll()
		names, _ := vfs.OS.List(filepath.Join(b.dir, "warc"))
		if want := map[bool]int{true: 20, false: 40}[b.cfg.RemoveUploaded]; len(names) != want {
			t.Errorf("the folder has %d files, want %d", len(names), want)
		}
		t.Logf("%d deaths, %d faults", deaths, p.Faults())
	})
}

func TestWhatIsThereAndWasNotNotedIsNotSentAgain(t *testing.T) {
	b := newBed(t)
	b.close(0, "first")
	b.open()
	for _, name := range []string{"warc/news-00000-vm.cdxj", "warc/news-00000-vm.warc.gz"} {
		data, err := os.ReadFile(filepath.Join(b.dir, name))
		if err == nil {
			err = place.WriteFile(t.Context(), b.at, name, data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	p := placetest.NewFaulty(b.at, rand.New(rand.NewPCG(1, 1)), 0)
	b.cfg.Place = p
	u := b.open()
	p.SetRoom(600) // space for the manifest
	u.End(0)
	if err := u.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.wantAll()
}

func TestAPlaceWithoutRoom(t *testing.T) {
	b := newBed(t)
	p := placetest.NewFaulty(b.at, rand.New(rand.NewPCG(1, 1)), 0)
	b.cfg.Place, b.cfg.RemoveUploaded = p, true
	b.close(0, strings.Repeat("x", 10_000))
	u := b.open()
	p.SetRoom(5000)
	u.End(0)
	err := u.Run(t.Context())
	if !errors.Is(err, ErrIncomplete) || !strings.Contains(err.Error(), "insufficient storage") {
		t.Errorf("the error is %v", err)
	}
	if _, err := os.Stat(filepath.Join(b.dir, "warc/news-00000-vm.warc.gz")); err != nil {
		t.Error("a file is gone that the place does not have")
	}
	p.SetRoom(-1)
	if err := b.run(); err != nil {
		t.Fatal(err)
	}
	b.wantAll()
	if _, err := os.Stat(filepath.Join(b.dir, "warc/news-00000-vm.warc.gz")); err == nil {
		t.Error("the file stays that is in the place")
	}
}

func TestAPlaceThatIsAnothers(t *testing.T) {
	b := newBed(t)
	b.open()
	other := b.cfg
	other.Dir = t.TempDir()
	if err := os.MkdirAll(filepath.Join(other.Dir, "state"), 0o755); err != nil {
		t.Fatal(err)
	}
	refused := func(cfg Config, want string) {
		t.Helper()
		err := Check(t.Context(), cfg)
		if !advice.IsUsage(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q", err, want)
		}
		if _, err := Open(t.Context(), cfg); err == nil {
			t.Error("it is opened all the same")
		}
	}
	refused(other, `is used by the crawl "news" of the folder `+b.dir)
	fresh := b.cfg
	fresh.Fresh = true
	refused(fresh, "is used by the crawl")

	link, err := os.ReadFile(filepath.Join(b.dir, away.LinkName))
	if err == nil {
		err = os.WriteFile(filepath.Join(other.Dir, away.LinkName), link, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	refused(other, "is a copy")

	moved := newBed(t)
	moved.cfg.Dir = b.dir
	refused(moved.cfg, "name another folder with --work")

	full := newBed(t)
	if err := place.WriteFile(t.Context(), full.at, "pages.jsonl", []byte("mine")); err != nil {
		t.Fatal(err)
	}
	refused(full.cfg, "has a file pages.jsonl")
}

func TestAPlaceThatIsTakenOver(t *testing.T) {
	b := newBed(t)
	u := b.open()
	m := &away.Mark{Crawl: "other", ID: "x", Machine: "m", Folder: "/f"}
	if err := m.Write(t.Context(), b.at); err != nil {
		t.Fatal(err)
	}
	b.close(0, "first")
	u.End(time.Hour)
	if err := u.Run(t.Context()); !errors.Is(err, ErrInUse) {
		t.Errorf("the error is %v", err)
	}
	if _, err := b.at.Stat(t.Context(), "warc/news-00000-vm.warc.gz"); err == nil {
		t.Error("it goes on writing")
	}
}

// twoWays is a location with a separate fast-failing variant.
type twoWays struct {
	place.Place
	prompt place.Place
}

func (p twoWays) FailFast() place.Place { return p.prompt }

// Claiming and uploading use the fast-failing variant.
func TestAPlaceThatSoonSaysThatItFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		prompt := placetest.NewFaulty(b.at, rand.New(rand.NewPCG(1, 1)), 0)
		prompt.SetDown(placetest.ErrFault)
		b.cfg.Place = twoWays{b.at, prompt}
		b.close(1, "one")
		u := b.open()
		if !errors.Is(u.NotReady(), placetest.ErrFault) {
			t.Errorf("it is late by %v", u.NotReady())
		}
		u.End(time.Second)
		if err := u.Run(t.Context()); !errors.Is(err, ErrIncomplete) || !errors.Is(err, placetest.ErrFault) {
			t.Errorf("it ends with %v", err)
		}
		prompt.SetDown(nil)
		if err := b.run(); err != nil {
			t.Error(err)
		}
		b.wantAll()
	})
}
