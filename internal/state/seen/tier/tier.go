// Package tier manages the runs of one folder and merges them in tiers.
//
// The manifest names the runs that late merges have written, the newest first. Besides, it names pending runs, which
// their owner stores for later and drops by DropWaiting. A new manifest replaces the old one atomically, so a process
// killed at any byte leaves either the old or the new state. The next Open removes files that no manifest names.
//
// A new run is in tier 0. As soon as a tier has Ratio runs, they are merged into one run of the next tier. So an entry
// is written about log(n)/log(Ratio) times, and a lookup queries at most Ratio-1 filters per tier.
package tier

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/time/rate"

	"kumo/internal/base/vfs"
	"kumo/internal/state/seen/run"
)

// Config configures a Set.
type Config struct {
	Merge run.MergeFunc // merges two values of a key
	Ratio int           // runs of one tier that are merged into one of the next; default 4
	Rate  int64         // bytes per second that merges may write; default unlimited
}

// A Set manages the runs of one folder. It is safe for concurrent use.
type Set struct {
	disk vfs.FS
	dir  string
	cfg  Config
	pace *rate.Limiter

	compact sync.Mutex // held while runs are merged
	commit  sync.Mutex // held while a manifest is written

	mu       sync.Mutex // guards the fields below, and the handles' refs
	next     uint64
	manifest Manifest
	view     *View
}

// Open opens the runs of dir, and creates dir if necessary.
func Open(disk vfs.FS, dir string, cfg Config) (*Set, error) {
	if cfg.Ratio < 2 {
		cfg.Ratio = 4
	}
	s := &Set{disk: disk, dir: dir, cfg: cfg, view: &View{}}
	if cfg.Rate > 0 {
		s.pace = rate.NewLimiter(rate.Limit(cfg.Rate), int(max(cfg.Rate/10, 1<<20)))
	}
	if err := disk.MkdirAll(dir); err != nil {
		return nil, err
	}
	m, err := readManifest(disk, s.path(manifestName))
	if err != nil {
		return nil, err
	}
	s.manifest = m
	if err := s.sweep(); err != nil {
		return nil, err
	}
	s.view.set, s.view.cuts = s, m.Cuts
	if err := errors.Join(s.openAll(&s.view.runs, m.Runs), s.openAll(&s.view.waiting, m.Waiting)); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Set) openAll(to *[]*handle, runs []Run) error {
	for _, r := range runs {
		h, err := s.open(r)
		if err != nil {
			return err
		}
		*to = append(*to, h)
	}
	return nil
}

// sweep removes files that no manifest names, and makes sure that no file name is used twice.
func (s *Set) sweep() error {
	names, err := s.disk.List(s.dir)
	if err != nil {
		return err
	}
	keep := map[string]bool{manifestName: true}
	for _, r := range append(slices.Clone(s.manifest.Runs), s.manifest.Waiting...) {
		keep[r.file()] = true
		s.next = max(s.next, r.ID)
	}
	lost := !slices.Contains(names, manifestName) // or it is new: to repair a lost manifest, the runs are needed
	for _, name := range names {
		digits, isRun := strings.CutSuffix(name, runSuffix)
		if id, err := strconv.ParseUint(digits, 10, 64); isRun && err == nil {
			s.next = max(s.next, id)
		}
		mine := isRun && !lost || strings.HasPrefix(name, manifestName+".") // the last: an unfinished manifest
		if mine && !keep[name] {
			err = errors.Join(err, s.disk.Remove(s.path(name)))
		}
	}
	return err
}

func (s *Set) path(name string) string { return filepath.Join(s.dir, name) }

func (s *Set) open(r Run) (*handle, error) {
	rd, err := run.Open(s.disk, s.path(r.file()))
	if err != nil {
		return nil, err
	}
	return &handle{Reader: rd, run: r, refs: 1}, nil
}

// Add writes src as the newest run and waiting, which may be nil, as a pending run; a run without entries is omitted.
// Then it writes a manifest, with change applied, which completes the checkpoint.
func (s *Set) Add(ctx context.Context, src, waiting run.Source, change func(*Manifest)) error {
	return s.add(ctx, src, waiting, nil, change)
}

// Replace is Add, but replaces all pending runs. It must not run concurrently with Add, DropWaiting or itself.
func (s *Set) Replace(ctx context.Context, src, waiting run.Source, change func(*Manifest)) error {
	return s.add(ctx, src, waiting, s.View().waiting, change)
}

func (s *Set) add(ctx context.Context, src, waiting run.Source, old []*handle, change func(*Manifest)) error {
	h, err := s.write(ctx, src, 0, false) // uncompressed, as it is merged with others soon
	if err != nil {
		return err
	}
	var w *handle
	if waiting != nil {
		if w, err = s.write(ctx, waiting, 0, true); err != nil {
			return errors.Join(err, s.drop(h))
		}
	}
	return s.install(func(v *View) {
		if v.runs = replace(v.runs, nil, h); len(old) > 0 {
			v.waiting = nil
		}
		v.waiting = replace(v.waiting, nil, w)
	}, change, []*handle{h, w}, old)
}

// DropWaiting drops the pending runs. The owner's journal has their outcome up to relies.
func (s *Set) DropWaiting(relies uint64) error {
	waiting := s.View().waiting
	if len(waiting) == 0 {
		return nil
	}
	return s.install(func(v *View) { v.waiting = nil }, func(m *Manifest) { m.Relies = max(m.Relies, relies) }, nil,
		waiting)
}

// drop removes a run that no manifest names.
func (s *Set) drop(h *handle) error {
	if h == nil {
		return nil
	}
	return s.release(h, true)
}

// write writes a run and opens it; it returns nil if src is empty.
func (s *Set) write(ctx context.Context, src run.Source, tier int, compress bool) (h *handle, err error) {
	s.mu.Lock()
	s.next++
	r := Run{ID: s.next, Tier: tier}
	s.mu.Unlock()
	name := s.path(r.file())
	w, err := run.Create(s.disk, name, run.Options{
		Compress: compress,
		Pace:     func(n int) error { return s.wait(ctx, n) },
	})
	if err != nil {
		return nil, err
	}
	if err := fill(w, src); err != nil || w.Count() == 0 {
		return nil, errors.Join(wrap(name, err), w.Close(), s.disk.Remove(name))
	}
	return s.open(r)
}

func wrap(name string, err error) error {
	if err != nil {
		return fmt.Errorf("write run %s: %w", name, err)
	}
	return nil
}

func fill(w *run.Writer, src run.Source) error {
	for src.Next() {
		if err := w.Add(src.Key(), src.Value()); err != nil {
			return err
		}
	}
	if err := src.Err(); err != nil || w.Count() == 0 {
		return err
	}
	return w.Finish()
}

func (s *Set) wait(ctx context.Context, n int) error {
	if err := ctx.Err(); err != nil || s.pace == nil {
		return err
	}
	for ; n > 0; n -= s.pace.Burst() {
		if err := s.pace.WaitN(ctx, min(n, s.pace.Burst())); err != nil {
			return err
		}
	}
	return nil
}

// install applies edit to the runs, in the manifest and then in memory: fresh runs are added, old ones removed. If
// writing the manifest fails, it is unknown which one is on disk, so the fresh files are kept until the next Open.
func (s *Set) install(edit func(*View), change func(*Manifest), fresh, old []*handle) error {
	s.commit.Lock()
	defer s.commit.Unlock()
	return s.installAlone(edit, change, fresh, old)
}

func (s *Set) installAlone(edit func(*View), change func(*Manifest), fresh, old []*handle) error {
	v := *s.View()
	edit(&v)
	m := s.Manifest()
	m.Cuts = slices.Clone(m.Cuts)
	change(&m)
	m.Runs, m.Waiting = named(v.runs), named(v.waiting)
	m.Cuts = needed(m.Cuts, m.Runs)
	v.cuts = m.Cuts
	if err := writeManifest(s.disk, s.path(manifestName), m); err != nil {
		for _, h := range fresh {
			if h != nil {
				err = errors.Join(err, h.Close())
			}
		}
		return err
	}
	s.mu.Lock()
	s.manifest, s.view = m, &v
	s.mu.Unlock()
	var err error
	for _, h := range old {
		err = errors.Join(err, s.release(h, true))
	}
	return err
}

func named(handles []*handle) (runs []Run) {
	for _, h := range handles {
		runs = append(runs, h.run)
	}
	return runs
}

// Manifest returns the latest manifest. Its runs must not be modified.
func (s *Set) Manifest() Manifest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.manifest
}

// Close closes all runs. Pinned ones are closed when they are released.
func (s *Set) Close() error {
	s.commit.Lock()
	defer s.commit.Unlock()
	s.mu.Lock()
	v := s.view
	s.view = &View{set: s}
	s.mu.Unlock()
	var err error
	for _, h := range v.all() {
		err = errors.Join(err, s.release(h, false))
	}
	return err
}
