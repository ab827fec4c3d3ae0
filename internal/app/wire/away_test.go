package wire

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
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kumo/internal/app/folder"
	"kumo/internal/app/job"
	"kumo/internal/archive/away"
	"kumo/internal/archive/place"
	"kumo/internal/archive/place/file"
	"kumo/internal/archive/place/placetest"
	"kumo/internal/archive/upload"
	"kumo/internal/base/page"
	"kumo/internal/base/settings"
	"kumo/internal/base/stats"
	"kumo/internal/base/vfs"
	"kumo/internal/base/vfs/vfstest"
	"kumo/internal/lab/jobtest"
	"kumo/internal/lab/synthweb"
	"kumo/internal/state/store/storetest"
)

// A carrier runs a crawl with an upload.
type carrier struct {
	cfg upload.Config
	up  *upload.Uploader
}

// attach sets the job's storage location.
func (c *carrier) attach(j *job.Job) {
	c.cfg.Dir, c.cfg.Crawl, c.cfg.Grow = j.Dir, j.Name, append(slices.Clone(folder.Outputs), settings.Name)
	j.Upload = &job.Upload{Closed: func() { c.up.FileClosed() }, Status: func() stats.Uploads { return c.up.Status() },
		Overlay: func(disk vfs.FS) (vfs.FS, error) {
			c.cfg.Disk = disk
			up, err := upload.Open(context.Background(), c.cfg)
			if err != nil {
				return nil, err
			}
			c.up = up
			return away.NewOverlay(context.Background(), disk, j.Dir, c.cfg.Place, up.Manifest()), nil
		}}
}

// live runs the crawl once on a disk.
func (c *carrier) live(ctx context.Context, j *job.Job, disk vfs.FS, patience time.Duration) error {
	s, err := open(context.Background(), j, disk)
	if err != nil {
		return err
	}
	ran := make(chan error, 1)
	go func() { ran <- c.up.Run(context.Background()) }()
	_, err = s.Run(ctx)
	c.up.End(patience)
	return errors.Join(err, <-ran, s.Close())
}

// TestACrawlIntoAPlaceSurvivesCrashes kills a crawl repeatedly at random bytes, while its storage location fails
// randomly. At the end, all files of the crawl are uploaded, once, and match the manifest.
func TestACrawlIntoAPlaceSurvivesCrashes(t *testing.T) {
	t.Parallel()
	for _, drop := range []bool{false, true} {
		t.Run(fmt.Sprintf("drop=%v", drop), func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			dice := rand.New(rand.NewPCG(seed, 1))
			cfg := synthweb.Clean(seed, 8, 250)
			cfg.MedianSize = 1 << 10
			s := jobtest.Serve(t, cfg)
			j := jobtest.For(s, t.TempDir())
			j.WARCSize, j.Crawl.Commit = 32<<10, 5*time.Millisecond
			at, err := file.Open(t.TempDir(), vfs.OS)
			if err != nil {
				t.Fatal(err)
			}
			p := placetest.NewFaulty(at, dice, 30)
			c := &carrier{cfg: upload.Config{Place: p, RemoveUploaded: drop}}
			c.attach(j)
			deaths := c.livesUntilDone(t, j, dice)
			if p.SetChance(0); true {
				if err := c.live(t.Context(), j, vfs.OS, time.Minute); err != nil { // the same command again
					t.Fatal(err)
				}
			}
			score := s.Score()
			t.Logf("%d deaths, %d faults, %d repeats", deaths, p.Faults(), score.Repeats)
			if score.Missing != 0 || score.Forbidden != 0 {
				t.Errorf("the servers saw:\n%s", score)
			}
			if drop {
				wantDropped(t, j.Dir)
			}
			wantPlace(t, at, score.Truth)
		})
	}
}

func (c *carrier) livesUntilDone(t *testing.T, j *job.Job, dice *rand.Rand) (deaths int) {
	t.Helper()
	for range maxRuns {
		disk := vfstest.NewFaulty(vfs.OS)
		ctx, cancel := context.WithCancel(t.Context())
		life := *j
		switch dice.IntN(5) {
		case 0: // complete
		case 1:
			var left atomic.Int64
			left.Store(dice.Int64N(80))
			life.Listener.Visited = func(*page.Record) {
				if left.Add(-1) < 0 {
					cancel()
				}
			}
		default:
			disk.DieAfter(dice.Int64N(300 << 10))
		}
		err := c.live(ctx, &life, disk, 0)
		cancel()
		switch {
		case disk.Dead():
			deaths++
		case err == nil:
			return deaths
		case errors.Is(err, context.Canceled), errors.Is(err, upload.ErrIncomplete), errors.Is(err, placetest.ErrFault),
			errors.Is(err, away.ErrReadBack):
		default:
			t.Fatal(err)
		}
	}
	t.Fatal("it does not get on")
	return deaths
}

func wantDropped(t *testing.T, dir string) {
	t.Helper()
	names, err := vfs.OS.List(filepath.Join(dir, "warc"))
	for _, name := range names {
		if strings.Contains(name, ".warc") {
			t.Errorf("the folder still has %s: %v", name, err)
		}
	}
}

// wantPlace checks that an uploaded crawl has the given number of pages and matches its manifest.
func wantPlace(t *testing.T, p place.Place, pages int) {
	t.Helper()
	m, err := away.ReadManifest(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	copied, there := t.TempDir(), 0
	err = place.Walk(t.Context(), p, "", func(name string, _ place.Info) error {
		data, err := place.ReadFile(t.Context(), p, name)
		if err != nil || name == away.ManifestName || name == away.MarkName {
			return err
		}
		there++
		sum := sha256.Sum256(data)
		if e, _ := m.Get(name); e.SHA256 != hex.EncodeToString(sum[:]) || e.Size != int64(len(data)) {
			t.Errorf("%s is not what the manifest says: %+v", name, e)
		}
		to := filepath.Join(copied, filepath.FromSlash(name))
		return errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, data, 0o600))
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(m.All()); n != there {
		t.Errorf("the manifest has %d files, the place %d", n, there)
	}
	lines, err := os.ReadFile(filepath.Join(copied, "pages.jsonl"))
	if n := bytes.Count(lines, []byte("\n")); err != nil || n != pages {
		t.Errorf("pages.jsonl has %d URLs, want %d: %v", n, pages, err)
	}
	storetest.CheckConsistent(t, copied)
}

// TestADiskThatIsShortWaitsForThePlace crawls onto a small disk while the storage location is down. The crawl pauses,
// and resumes by itself when files are uploaded and can be deleted locally.
func TestADiskThatIsShortWaitsForThePlace(t *testing.T) {
	t.Parallel()
	s := jobtest.Serve(t, synthweb.Clean(3, 8, 200))
	j := jobtest.For(s, t.TempDir())
	j.WARCSize, j.Crawl.Commit, j.Crawl.DiskCheckInterval = 32<<10, 5*time.Millisecond, time.Millisecond
	at, err := file.Open(t.TempDir(), vfs.OS)
	if err != nil {
		t.Fatal(err)
	}
	p := placetest.NewFaulty(at, rand.New(rand.NewPCG(1, 1)), 0)
	c := &carrier{cfg: upload.Config{Place: p, RemoveUploaded: true}}
	c.attach(j)
	disk := &shortDisk{FS: vfs.OS, dir: filepath.Join(j.Dir, "warc"), room: 300 << 10}
	j.Crawl.MinFree = 100 << 10
	var paused, resumed atomic.Bool
	j.Listener.Visited = func(*page.Record) {
		if !paused.Load() && !resumed.Load() {
			p.SetDown(errors.New("connection refused"))
		}
	}
	j.Listener.Paused = func(uint64) {
		if u := j.Upload.Status(); u.Waiting == 0 || u.Summary() == "" {
			t.Errorf("it pauses, and says of the place %q", u.Summary())
		}
		paused.Store(true)
		p.SetDown(nil)
	}
	j.Listener.Resumed = func(uint64) { resumed.Store(true) }
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := c.live(ctx, j, disk, time.Minute); err != nil {
		t.Fatal(err)
	}
	if !paused.Load() || !resumed.Load() {
		t.Errorf("paused %v, resumed %v", paused.Load(), resumed.Load())
	}
	wantPlace(t, at, jobtest.WantPerfect(t, s).Truth)
}

// A shortDisk has limited space for closed WARC files in a folder.
type shortDisk struct {
	vfs.FS
	dir  string
	room int64
}

func (d *shortDisk) Free(string) (uint64, error) {
	names, err := d.List(d.dir)
	free := d.room
	for _, name := range names {
		if strings.HasSuffix(name, ".warc.gz") {
			size, _ := d.Size(filepath.Join(d.dir, name)) // it may be deleted in between
			free -= size
		}
	}
	return uint64(max(free, 0)), err
}
