package nodes

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
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

// A history is all that a node has written to where it outlives its machine, in one order: a kill leaves its beginning.
type history struct {
	mu    sync.Mutex
	steps []deed
}

// A deed is a file that was written into the place, or removed, or an entry of the node's log, or a cut of that.
type deed struct {
	file   string
	data   []byte // nil: it is removed
	number uint64 // of the entry; 0: none
	cut    uint64
}

// A toldPlace keeps what is written.
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

// A toldBus keeps what is written to logs of journals.
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

// A deadBus has a dead node's log, and the registry's word of its place.
type deadBus struct {
	bus.Bus
	all   []deed
	seals []deed
	cut   uint64
	short int // entries that are not told at the end
}

func (b *deadBus) Get(context.Context, string) (bus.Entry, error) {
	return bus.Entry{Value: []byte("place"), Revision: 1}, nil
}

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

// A readPlace keeps which files were read.
type readPlace struct {
	place.Place
	opened []string
}

func (p *readPlace) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	p.opened = append(p.opened, name)
	return p.Place.Open(ctx, name, offset, length)
}

// A dead node's place and log, at some moment of its life.
type remains struct {
	t   *testing.T
	cfg Config // of who folds them
	job *job.Job
	at  *readPlace
	dir string // of the place
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

// stateDir is who folds them: with a log that is whole and without a checkpoint, or as they are.
func (r *remains) folder(whole bool) *failedNodes {
	b, n := &deadBus{all: r.log, cut: r.cut}, &Node{Config: r.cfg}
	if whole {
		b.cut, n.CopyState = 0, nil
	}
	return &failedNodes{disk: vfs.OS, dir: filepath.Join(r.t.TempDir(), "estates"), bus: b, job: r.job,
		places: failedPlaces{Node: n, bus: b}}
}

// fold recovers what the node held, from its checkpoint and the rest of its log or, to compare, from all of its log.
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

// Whatever of a node's checkpoints has come to its place when it is killed, who folds it has all that waited there and
// was known, and fetches again what has no record: just as from a journal that nobody has cut.
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

// tooShort has the log be told without its last batches, as a server does that lags behind: that is not taken for all.
func (r *remains) tooShort() {
	r.t.Helper()
	s := r.folder(true)
	s.bus.(*deadBus).short = 3
	if _, err := s.Recover(r.t.Context(), "a~dead"); !errors.Is(err, stream.ErrDamaged) {
		r.t.Errorf("of a log whose last entries are not told: %v", err)
	}
}

// unreadable has the checkpoint be one that cannot be read, with a log that goes no further back: that is said, nothing
// is taken for all there was, and nothing is lost by it.
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
		!strings.Contains(err.Error(), "what waited there") || !strings.Contains(err.Error(), "frontier/checkpoint") {
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

// spoilt has the checkpoint be one that comes as it was brought, and cannot be opened: what the node held is taken from
// its log alone where that goes back to its beginning, and both are said where it does not.
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
		if err := place.WriteFile(r.t.Context(), r.at, f.At, text); err != nil {
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

// missing are up to three of want that got has not.
func missing(got, want []string) (some []string) {
	for _, s := range want {
		if _, is := slices.BinarySearch(got, s); !is && len(some) < 3 {
			some = append(some, s)
		}
	}
	return some
}
