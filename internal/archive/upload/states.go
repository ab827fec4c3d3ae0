package upload

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"kumo/internal/archive/away"
	"kumo/internal/base/stats"
	"kumo/internal/state/journal"
	"kumo/internal/state/store"
)

// minGain is how many bytes a checkpoint must let the log be cut by to be brought to the place.
const minGain = 1 << 20

// A StatesConfig says how checkpoints are brought to a place.
type StatesConfig struct {
	Log     journal.Shipped
	MinGain int64           // see States; default 1 MiB; negative: any, whatever it costs
	Warn    func(error)     // told that checkpoints do not come to the place, once until they do; may be nil
	OnTrim  func(TrimStats) // of what was done; may be nil
}

// A Cut is what was cut off a log, and what it has cost.
type TrimStats struct {
	Files  int   // of checkpoints, that were brought to the place by this process
	Bytes  int64 // in them
	Log    int64 // bytes that were cut off
	States int   // checkpoints
}

// States bring checkpoints of a node's state to its place, beside its record files, and cut the log short to which its
// journal is shipped: to what the newest checkpoint there lacks, and no further than the last one before which the
// records of all pages are in the place, so that who reads the log learns of all others that they are missing.
//
// A checkpoint is brought there if it costs no more than it saves: if the log could be cut by as many bytes as its
// files have that are not there, and by [StatesConfig].Least. Its files are given a second name while it is told of, so
// that they stay; then they are brought to the place, the log is waited for to have what the checkpoint relies on, and
// a file that names them is written. Only then goes what it needs no more: files of the checkpoint before, and the
// log's beginning.
type States struct {
	up  *Uploader
	cfg StatesConfig

	mu         sync.Mutex      // guards what follows
	loaded     bool            // it is known what is in the place
	listed     map[string]bool // record files that the place's manifest names; nil: it was not written yet
	uploaded   *away.State
	forceNext  bool          // what is there is not what the log was cut for: the next checkpoint is brought, whatever it costs
	points     []point       // checkpoints, the oldest first; of those whose records are all in the place, only the last
	pending    *pendingState // to be brought; nil: none
	trimmed    journal.Position
	stats      TrimStats
	lastUpload time.Time // when the newest checkpoint came; zero: not by this process
	missing    []string  // record files that are neither in the folder nor in the place

	warned map[string]bool // of these, those that were warned of

	wakeup chan struct{}
	// what belongs to other checkpoints than the newest is yet to be removed from the place; only Run's
	hasStale bool
	verified map[string]bool // files in the folder that were found to be those in the place
}

// A point is a checkpoint, and the record files in which pages before it may be, of those that are not in the place.
type point struct {
	at      journal.Position
	missing []string
}

// An offer is a checkpoint whose files have second names.
type pendingState struct {
	at, relies journal.Position
	files      []stateFile
	sent       map[string]away.StateFile
}

// States has checkpoints brought to the place. It is called before Run.
func (u *Uploader) States(cfg StatesConfig) *States {
	if cfg.MinGain == 0 {
		cfg.MinGain = minGain
	}
	if cfg.Warn == nil {
		cfg.Warn = func(error) {}
	}
	s := &States{up: u, cfg: cfg, wakeup: make(chan struct{}, 1), verified: map[string]bool{}, warned: map[string]bool{}}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.states = s
	return s
}

// Checkpoint is told of a checkpoint in the folder, whose files stay as they are until it returns: up to where the
// journal is in it, up to where it is needed, and the lengths of record files.
func (s *States) Checkpoint(at, relies journal.Position, marks []store.Mark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := point{at: at}
	for _, m := range marks {
		if strings.HasPrefix(m.Name, "warc/") && m.Length > 0 {
			p.missing = append(p.missing, strings.TrimSuffix(m.Name, ".open"))
		}
	}
	s.points = append(s.points, p)
	s.prunePoints()
	if !s.loaded || s.pending != nil {
		return
	}
	safe, there := s.safePosition(), s.uploaded
	if there != nil && !s.forceNext && positionOf(there) >= min(safe, at) { // it can be cut as it is
		return
	}
	files, cost, err := s.listFiles()
	gain := s.cfg.Log.Trimmable(safe)
	worth := gain > 0 && (gain >= max(cost, s.cfg.MinGain) || s.cfg.MinGain < 0)
	if err == nil && (worth || s.forceNext) {
		if files, err = s.stage(files); err == nil {
			s.pending = &pendingState{at: at, relies: relies, files: files, sent: map[string]away.StateFile{}}
			s.wake()
		}
	}
	if err != nil {
		s.cfg.Warn(fmt.Errorf("prepare a checkpoint for the place %s: %w", s.up.cfg.Place.URL(), err))
	}
}

// maxPoints bounds how many are kept: beyond that every second one is forgotten, and the log is cut later.
const maxPoints = 256

// prunePoints takes out what is in the place, and named there, and points that say no more than others.
func (s *States) prunePoints() {
	last := -1
	for i := range s.points {
		p := &s.points[i]
		p.missing = slices.DeleteFunc(p.missing, func(name string) bool { return s.listed[name] })
		if len(p.missing) == 0 {
			last = i
		}
	}
	if last > 0 {
		s.points = slices.Delete(s.points, 0, last)
	}
	if len(s.points) < maxPoints {
		return
	}
	kept := s.points[:1]
	for i := 2; i < len(s.points); i += 2 {
		kept = append(kept, s.points[i])
	}
	s.points = kept
}

// safePosition is up to where the records of all pages are in the place, as far as it is known.
func (s *States) safePosition() journal.Position {
	if len(s.points) == 0 || len(s.points[0].missing) > 0 {
		return 0
	}
	return s.points[0].at
}

// positionOf is up to where the journal is in a checkpoint; in none, 0.
func positionOf(there *away.State) journal.Position {
	if there == nil {
		return 0
	}
	return journal.Position(there.Position)
}

// look is called when the place's manifest names all that is there, with what is new of it.
func (s *States) manifestWritten(fresh []string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listed == nil {
		s.listed = map[string]bool{}
		for _, e := range s.up.ledger.manifest.All() {
			s.listed[e.Name] = true
		}
	}
	for _, name := range fresh {
		s.listed[name] = true
	}
	s.prunePoints()
	s.wake()
}

func (s *States) wake() {
	select {
	case s.wakeup <- struct{}{}:
	default:
	}
}

// Run brings checkpoints to the place until ctx ends.
func (s *States) Run(ctx context.Context) {
	defer func() { _ = s.clearStaging() }() // or the next process does it
	for failures, told := 0, false; ctx.Err() == nil; {
		err := s.step(ctx)
		if ctx.Err() != nil {
			return
		}
		var again <-chan time.Time
		if err == nil {
			failures, told = 0, false
		} else {
			failures++
			if !told && failures > 2 {
				told = true
				s.cfg.Warn(fmt.Errorf("the state of this node does not come to the place %s, and what the servers have of its "+
					"journal grows: %w", s.up.cfg.Place.URL(), err))
			}
			again = time.After(pause(failures))
		}
		select {
		case <-ctx.Done():
		case <-s.wakeup:
		case <-again:
		}
	}
}

// step does what there is to be done.
func (s *States) step(ctx context.Context) error {
	if !s.up.claim.established.Load() { // look tells when it is
		return nil
	}
	if err := s.load(ctx); err != nil {
		return err
	}
	if err := s.findMissing(); err != nil {
		return err
	}
	s.mu.Lock()
	o := s.pending
	s.mu.Unlock()
	if o != nil {
		err := s.uploadCheckpoint(ctx, o)
		if errors.Is(err, errStaged) {
			err = s.discardPending(err)
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(s.removeStale(ctx), s.trim(ctx))
}

// removeStale removes from the place what belongs to other checkpoints than the newest. Nothing is on its way there.
func (s *States) removeStale(ctx context.Context) error {
	if !s.hasStale {
		return nil
	}
	if err := s.uploaded.RemoveOtherCheckpoints(ctx, s.up.cfg.Place); err != nil {
		return err
	}
	s.hasStale = false
	return nil
}

// trim cuts the log as far as can be.
func (s *States) trim(ctx context.Context) error {
	s.mu.Lock()
	to := s.safePosition()
	if s.forceNext {
		to = 0
	}
	to = min(to, positionOf(s.uploaded))
	is := to > s.trimmed
	s.mu.Unlock()
	if !is {
		return nil
	}
	gone := s.cfg.Log.Trimmable(to)
	if err := s.cfg.Log.Trim(ctx, to); err != nil {
		return err
	}
	s.mu.Lock()
	s.trimmed = to
	s.stats.Log += gone
	cut := s.stats
	s.mu.Unlock()
	if s.cfg.OnTrim != nil && gone > 0 {
		s.cfg.OnTrim(cut)
	}
	return nil
}

// findMissing finds record files that nobody brings to the place any more, because they have gone from the folder: the log is
// kept from where their pages begin.
func (s *States) findMissing() error {
	s.mu.Lock()
	var wants []string
	for i := range s.points {
		if wants = slices.Clone(s.points[i].missing); len(wants) > 0 {
			break
		}
	}
	s.mu.Unlock()
	var lacks []string
	for _, name := range wants {
		is, err := s.inFolder(name)
		if err != nil {
			return err
		}
		if !is {
			lacks = append(lacks, name)
		}
	}
	s.mu.Lock()
	// it came meanwhile, and was removed here
	lacks = slices.DeleteFunc(lacks, func(name string) bool { return s.listed[name] })
	s.missing = lacks
	s.mu.Unlock()
	lacks = slices.DeleteFunc(slices.Clone(lacks), func(name string) bool { return s.warned[name] })
	if len(lacks) == 0 {
		return nil
	}
	for _, name := range lacks {
		s.warned[name] = true
	}
	s.cfg.Warn(fmt.Errorf("the place %s: %s", s.up.cfg.Place.URL(), s.status().MissingHint()))
	return nil
}

// inFolder reports whether the folder has a record file: it may get its final name just now.
func (s *States) inFolder(name string) (bool, error) {
	for _, ending := range []string{".open", ""} {
		_, err := s.up.cfg.Disk.Size(s.up.cfg.path(name + ending))
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return true, err
		}
	}
	return false, nil
}

// maxMissingNames is how many record files that have gone are named.
const maxMissingNames = 3

// status is how it stands.
func (s *States) status() *stats.UploadedState {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := &stats.UploadedState{Checkpoints: s.stats.States, Bytes: s.stats.Bytes, Last: s.lastUpload, Cut: uint64(s.trimmed),
		CutBytes: s.stats.Log, Kept: s.cfg.Log.Trimmable(math.MaxInt64), MissingCount: int64(len(s.missing)),
		MissingFiles: slices.Clone(s.missing[:min(len(s.missing), maxMissingNames)])}
	if s.uploaded != nil {
		x.Position = s.uploaded.Position
	}
	if s.pending != nil {
		for _, f := range s.pending.files {
			x.InTransit += f.size
		}
	}
	return x
}

// TrimStats is what was done so far.
func (s *States) TrimStats() TrimStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats
}

// RemoveAll removes all checkpoints from the place: nobody goes on from them. Run has ended.
func (s *States) RemoveAll(ctx context.Context) error {
	if late := s.up.NotReady(); late != nil { // an earlier process may have brought some
		return late
	}
	return s.up.cfg.Place.Remove(ctx, away.StateDir)
}
