package nodes

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kumo/internal/app/job"
	"kumo/internal/app/session"
	"kumo/internal/archive/away"
	"kumo/internal/archive/place"
	"kumo/internal/archive/place/file"
	"kumo/internal/base/vfs"
	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/strategy"
	"kumo/internal/lab/jobtest"
	"kumo/internal/lab/synthweb"
	"kumo/internal/state/frontier"
	"kumo/internal/state/journal"
	"kumo/internal/state/journal/stream"
)

// A history is all data that a node has written outside its machine, in order. After a kill, a beginning of it remains.
type history struct {
	mu    sync.Mutex
	steps []deed
}

// A deed is a write or a removal of an uploaded file, an entry of the node's log, or a truncation of the log.
type deed struct {
	file   string
	data   []byte // nil: removed
	number uint64 // of the log entry; 0: none
	cut    uint64
}

// A toldPlace records writes.
type toldPlace struct {
	place.Place
	h *history
}

type toldWriter struct {
	place.Writer
	p    *toldPlace
	name string
	data bytes.Buffer
}

func (p *toldPlace) Create(ctx context.Context, name string) (place.Writer, error) {
	w, err := p.Place.Create(ctx, name)
	return &toldWriter{Writer: w, p: p, name: name}, err
}

func (w *toldWriter) Write(b []byte) (int, error) {
	w.data.Write(b)
	return w.Writer.Write(b)
}

func (w *toldWriter) Close() error {
	w.p.h.mu.Lock()
	defer w.p.h.mu.Unlock()
	w.p.h.steps = append(w.p.h.steps, deed{file: w.name, data: append([]byte{}, w.data.Bytes()...)})
	return w.Writer.Close()
}

func (p *toldPlace) Remove(ctx context.Context, name string) error {
	p.h.mu.Lock()
	defer p.h.mu.Unlock()
	p.h.steps = append(p.h.steps, deed{file: name})
	return p.Place.Remove(ctx, name)
}

// A toldBus records writes to logs of journals.
type toldBus struct {
	bus.Bus
	h *history
}

func (b *toldBus) Append(ctx context.Context, log string, data []byte, after uint64) (uint64, error) {
	if !strings.HasPrefix(log, "journal/") {
		return b.Bus.Append(ctx, log, data, after)
	}
	b.h.mu.Lock()
	defer b.h.mu.Unlock()
	n, err := b.Bus.Append(ctx, log, data, after)
	if err == nil {
		b.h.steps = append(b.h.steps, deed{data: bytes.Clone(data), number: n})
	}
	return n, err
}

func (b *toldBus) Trim(ctx context.Context, log string, before uint64) error {
	b.h.mu.Lock()
	defer b.h.mu.Unlock()
	if strings.HasPrefix(log, "journal/") {
		b.h.steps = append(b.h.steps, deed{cut: before})
	}
	return b.Bus.Trim(ctx, log, before)
}

type toldConnection struct {
	connection
	h *history
}

func (c toldConnection) Join(n strategy.Node) (bus.Bus, error) {
	b, err := c.connection.Join(n)
	return &toldBus{b, c.h}, err
}

// A deadBus has a dead node's log, and the registry's entry on its storage location.
type deadBus struct {
	bus.Bus
	all   []deed
	seals []deed
	cut   uint64
	short int // missing entries at the end
}

func (b *deadBus) Get(context.Context, string) (bus.Entry, error) {
	return bus.Entry{Value: []byte("place"), Revision: 1}, nil
}

func (b *deadBus) Put(context.Context, string, []byte, uint64) (uint64, error) { return 2, nil }

func (b *deadBus) Append(_ context.Context, _ string, data []byte, after uint64) (uint64, error) {
	b.seals = append(b.seals, deed{data: bytes.Clone(data), number: after + 1})
	return after + 1, nil
}

func (b *deadBus) Last(context.Context, string) (uint64, []byte, error) {
	all := slices.Concat(b.all, b.seals)
	if len(all) == 0 {
		return 0, nil, nil
	}
	last := all[len(all)-1]
	return last.number, last.data, nil
}

func (b *deadBus) Read(_ context.Context, _ string, after uint64, f func(uint64, []byte) error) error {
	all := slices.Concat(b.all, b.seals)
	for i, d := range all {
		if d.number <= after || i >= len(all)-b.short || d.number < b.cut && i < len(all)-1 {
			continue
		}
		if err := f(d.number, d.data); err != nil {
			return err
		}
	}
	return nil
}

// A readPlace records which files were read.
type readPlace struct {
	place.Place
	opened []string
}

func (p *readPlace) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	p.opened = append(p.opened, name)
	return p.Place.Open(ctx, name, offset, length)
}

// A remains is a dead node's storage location and log at some time of its life.
type remains struct {
	t   *testing.T
	cfg Config // of the recovering node
	job *job.Job
	at  *readPlace
	dir string // of the storage location
	log []deed
	cut uint64
}

func (r *remains) take(d *deed) {
	r.t.Helper()
	name := filepath.Join(r.dir, filepath.FromSlash(d.file))
	var err error
	switch {
	case d.number > 0:
		r.log = append(r.log, *d)
	case d.cut > 0:
		r.cut = max(r.cut, d.cut)
	case d.data == nil:
		err = os.RemoveAll(name)
	default:
		err = errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, d.data, 0o600))
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// folder returns the recovering node's failedNodes: with the whole log and no checkpoint, or with the actual ones.
func (r *remains) folder(whole bool) *failedNodes {
	b, n := &deadBus{all: r.log, cut: r.cut}, &Node{Config: r.cfg}
	n.Log = slog.New(slog.DiscardHandler)
	if whole {
		b.cut, n.CopyState = 0, nil
	}
	return &failedNodes{disk: vfs.OS, dir: filepath.Join(r.t.TempDir(), "estates"), bus: b, job: r.job,
		places: failedPlaces{Node: n, bus: b}}
}

// fold recovers the node's data from its checkpoint and the rest of its log or, for comparison, from its whole log.
func (r *remains) fold(whole bool) (waits, known []string) {
	r.t.Helper()
	return r.foldBy(r.folder(whole))
}

func (r *remains) foldBy(s *failedNodes) (waits, known []string) {
	r.t.Helper()
	one, err := s.Recover(r.t.Context(), "a~dead")
	if err != nil {
		r.t.Fatalf("after %d entries of the log, cut before %d: %v", len(r.log), r.cut, err)
	}
	e := one.(*failedState)
	err = e.holding.Frontier.Inspector().Walk(frontier.Walker{Damaged: func(err error) { r.t.Error(err) },
		Item: func(_ string, it *frontier.Item) error {
			waits = append(waits, it.URL)
			return nil
		}})
	for one, scanErr := range e.holding.DB.Scan("") {
		err = errors.Join(err, scanErr)
		known = append(known, one.URL)
	}
	if err := errors.Join(err, e.Close()); err != nil {
		r.t.Fatal(err)
	}
	slices.Sort(waits)
	return waits, known
}

// Whichever part of a node's checkpoints is uploaded when the node is killed, the recovery restores all pending and
// known URLs, and fetches pages without a record again, just as from an untruncated journal.
func TestAKillAtAnyMomentOfACheckpointThatGoesToThePlace(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 1))
	web := jobtest.Serve(t, synthweb.Clean(25, 25, 700))
	c := newCluster(t, web)
	c.tune = func(j *job.Job) {
		j.Frontier.Delay, j.WARCSize, j.Formats = time.Millisecond, 30_000, []string{job.WARC}
		j.Crawl.Checkpoint = 15_000 + int64(dice.IntN(15_000))
		j.Crawl.Commit = 20 * time.Millisecond
	}
	p := newSharedPlace(t, seed)
	p.odds, p.least = 0, -1
	h := &history{}
	var never atomic.Bool
	a := c.startWith("a", func(cfg *Config) {
		p.give(cfg, &never)
		carry := cfg.NewUploader
		cfg.NewUploader = func(ctx context.Context, j *job.Job, life string) (session.Uploader, error) {
			b, err := carry(ctx, j, life)
			one := b.(*bearer)
			one.cfg.Place = &toldPlace{one.cfg.Place, h}
			return one, err
		}
		cfg.Connect = func(context.Context) (Connection, error) { return toldConnection{connection{c.hub}, h}, nil }
	})
	c.members(1)
	c.begin()
	c.ends(nil, a)
	jobtest.WantPerfect(t, web)

	r := &remains{t: t, cfg: Config{Log: c.config("f").Log}, job: c.job("folder"), dir: t.TempDir()}
	c.tune(r.job)
	folder, err := file.Open(r.dir, vfs.OS)
	if err != nil {
		t.Fatal(err)
	}
	at := &readPlace{Place: folder}
	r.at = at
	taken := 0
	r.cfg.ReadManifest = func(ctx context.Context, _ string) (*away.Manifest, error) {
		m, err := away.ReadManifest(ctx, at)
		if away.IsMissing(err) {
			return away.NewManifest(), nil
		}
		return m, err
	}
	r.cfg.CopyState = func(ctx context.Context, _ string, disk vfs.FS, dir string) (*away.State, error) {
		s, err := away.ReadState(ctx, at)
		if s == nil || err != nil {
			return nil, err
		}
		taken++
		return s, s.Copy(ctx, at, disk, dir)
	}
	moments, again := 0, 0
	for i := range h.steps {
		d := &h.steps[i]
		r.take(d)
		of := strings.HasPrefix(d.file, away.StateDir+"/") || d.cut > 0
		if !of && dice.IntN(60) > 0 {
			continue
		}
		moments++
		waits, known := r.fold(false)
		wantWaits, wantKnown := r.fold(true)
		if !slices.Equal(waits, wantWaits) {
			t.Errorf("after step %d of %d, %s %d: %d URLs wait, want %d: %v, %v", i, len(h.steps), d.file, d.cut, len(waits),
				len(wantWaits), missing(waits, wantWaits), missing(wantWaits, waits))
		}
		if !slices.Equal(known, wantKnown) {
			t.Errorf("after step %d of %d, %s %d: %d URLs are known, want %d: %v, %v", i, len(h.steps), d.file, d.cut,
				len(known),
				len(wantKnown), missing(known, wantKnown), missing(wantKnown, known))
		}
		again += len(waits)
	}
	r.tooShort()
	r.unreadable()
	r.spoilt()
	p.mu.Lock()
	cut := p.cuts[a.dir]
	p.mu.Unlock()
	t.Logf("%d moments of %d, %d times with a checkpoint; %+v", moments, len(h.steps), taken, cut)
	if cut.States < 2 || taken == 0 || r.cut == 0 || again == 0 {
		t.Errorf("%+v: want some checkpoints, and something that waits at some moments (%d)", cut, again)
	}
	logged := 0
	for _, d := range r.log {
		logged += len(d.data)
	}
	if left := int64(logged) - cut.Log; left > int64(logged)/2 {
		t.Errorf("of a log of %d bytes %d are left", logged, left)
	}
}

// tooShort omits the last batches of the log, as a lagging server does. The recovery must detect this.
func (r *remains) tooShort() {
	r.t.Helper()
	s := r.folder(true)
	s.bus.(*deadBus).short = 3
	if _, err := s.Recover(r.t.Context(), "a~dead"); !errors.Is(err, stream.ErrDamaged) {
		r.t.Errorf("of a log whose last entries are not told: %v", err)
	}
}

// unreadable has an unreadable checkpoint, and a log that begins after it. The recovery must report this, without
// taking the rest for complete or losing data.
func (r *remains) unreadable() {
	r.t.Helper()
	want, _ := r.fold(false)
	files, err := filepath.Glob(filepath.Join(r.dir, away.StateDir, "*", "frontier", "checkpoint"))
	if err != nil || len(files) == 0 || r.cut == 0 {
		r.t.Fatalf("%d checkpoints, and the log is cut before %d (%v)", len(files), r.cut, err)
	}
	whole := map[string][]byte{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if whole[name] = text; err == nil {
			err = os.WriteFile(name, text[:len(text)-1], 0o600)
		}
		if err != nil {
			r.t.Fatal(err)
		}
	}
	s := r.folder(false)
	if _, err := s.Recover(r.t.Context(), "a~dead"); !errors.Is(err, journal.ErrDropped) ||
		!strings.Contains(err.Error(), "the queues of the dead node cannot be recovered") ||
		!strings.Contains(err.Error(), "frontier/checkpoint") {
		r.t.Errorf("with a checkpoint that cannot be read: %v", err)
	}
	for name, text := range whole {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			r.t.Fatal(err)
		}
	}
	r.at.opened = nil
	if waits, _ := r.foldBy(s); !slices.Equal(waits, want) {
		r.t.Errorf("read again, %d URLs wait, want %d", len(waits), len(want))
	}
	before := slices.IndexFunc(r.at.opened, func(name string) bool {
		return strings.HasSuffix(name, "frontier/checkpoint")
	})
	if before < 0 || slices.ContainsFunc(r.at.opened[:before], isStateFile) {
		r.t.Errorf("what had come was copied again: %q", r.at.opened)
	}
	if left, _ := filepath.Glob(filepath.Join(s.dir, "*")); len(left) > 0 {
		r.t.Errorf("there stays %q", left)
	}
}

// spoilt has a checkpoint that is copied correctly, but cannot be opened. The recovery uses only the log if it is
// complete, and otherwise reports both problems.
func (r *remains) spoilt() {
	r.t.Helper()
	wantWaits, wantKnown := r.fold(true)
	state, err := away.ReadState(r.t.Context(), r.at)
	if err != nil || state == nil {
		r.t.Fatal(state, err)
	}
	for i := range state.Files {
		f := &state.Files[i]
		if f.Name != "seen/manifest" && f.Name != "frontier/checkpoint" {
			continue
		}
		text := []byte("spoilt before it was brought")
		sum := sha256.Sum256(text)
		f.Size, f.SHA256 = int64(len(text)), hex.EncodeToString(sum[:])
		if err := place.WriteFile(r.t.Context(), r.at, f.Path, text); err != nil {
			r.t.Fatal(err)
		}
	}
	if err := state.Write(r.t.Context(), r.at); err != nil {
		r.t.Fatal(err)
	}
	s := r.folder(false)
	s.bus.(*deadBus).cut = 0
	if waits, known := r.foldBy(s); !slices.Equal(waits, wantWaits) || !slices.Equal(known, wantKnown) {
		r.t.Errorf("%d wait and %d are known, want %d and %d", len(waits), len(known), len(wantWaits), len(wantKnown))
	}
	if _, err := r.folder(false).Recover(r.t.Context(), "a~dead"); !errors.Is(err, journal.ErrDropped) ||
		!strings.Contains(err.Error(), "its checkpoint: ") {
		r.t.Errorf("with a log that is cut: %v", err)
	}
}

func isStateFile(name string) bool {
	return strings.HasPrefix(name, away.StateDir+"/") && !strings.HasSuffix(name, ".json")
}

// missing returns up to three elements of want that are not in got.
func missing(got, want []string) (some []string) {
	for _, s := range want {
		if _, is := slices.BinarySearch(got, s); !is && len(some) < 3 {
			some = append(some, s)
		}
	}
	return some
}
