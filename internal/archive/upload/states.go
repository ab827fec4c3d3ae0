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

// minGain is the default for the bytes of log that a checkpoint must free to be uploaded.
const minGain = 1 << 20

// A StatesConfig configures the upload of checkpoints.
type StatesConfig struct {
	Log     journal.Shipped
	MinGain int64           // see States; default 1 MiB; negative: any checkpoint that frees log bytes, at any cost
	Warn    func(error)     // called with warnings, once per series of failures; may be nil
	OnTrim  func(TrimStats) // called after the log was trimmed; may be nil
	// Sent reports whether the crawl's sinks have the records up to some lengths; nil: there are no sinks.
	Sent func([]store.Mark) bool
}

// TrimStats has the figures of checkpoint uploads and log trimming.
type TrimStats struct {
	Files  int   // checkpoint files uploaded by this process
	Bytes  int64 // bytes of these files
	Log    int64 // bytes trimmed from the log
	States int   // checkpoints
}

// States uploads checkpoints of a node's state to its location, and trims the log to which the node's journal is
// shipped. The log is trimmed up to the newest uploaded checkpoint, but not beyond the last one whose pages all have
// uploaded records, which the crawl's sinks have, too. Readers of the log thus learn of all pages whose records are
// missing.
//
// A checkpoint is uploaded if the log bytes that it frees are at least the bytes of its files that are not uploaded
// yet, and at least [StatesConfig].MinGain. Order of steps: Checkpoint links its files under second names, so that they
// are kept. The files are uploaded. The log is shipped up to the position that the checkpoint requires. The list of its
// files is written. Only then are the files of the previous checkpoint and the beginning of the log removed.
type States struct {
	up  *Uploader
	cfg StatesConfig

	mu       sync.Mutex      // guards the fields below
	loaded   bool            // the state of the location is known
	listed   map[string]bool // record files in the location's manifest; nil: not written yet
	uploaded *away.State
	// the uploaded checkpoint is not usable with the trimmed log: upload the next one at any cost
	forceNext  bool
	points     []point       // checkpoints, oldest first; of those without missing records, only the last
	pending    *pendingState // to be uploaded; nil: none
	trimmed    journal.Position
	stats      TrimStats
	lastUpload time.Time // when this process uploaded the newest checkpoint; zero: it has not
	missing    []string  // record files that are neither in the folder nor in the location

	warned map[string]bool // missing files that were warned about

	wakeup chan struct{}
	// The location has files of other checkpoints than the newest, to be removed. Used only by Run.
	hasStale bool
	verified map[string]bool // local files that were compared with the uploaded ones
}

// A point is a checkpoint, with the record files of earlier pages that are not uploaded yet.
type point struct {
	at      journal.Position
	missing []string
	unsent  []store.Mark // lengths of the record files, if records up to them may not be in the sinks
}

// A pendingState is a checkpoint whose files are staged under second names.
type pendingState struct {
	at, relies journal.Position
	files      []stateFile
	sent       map[string]away.StateFile
}

// States enables the upload of checkpoints. It is called before Run.
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

// Checkpoint reports a new checkpoint, whose files do not change until it returns. at is the journal position that it
// includes, relies the position that it requires, and marks has the lengths of record files.
func (s *States) Checkpoint(at, relies journal.Position, marks []store.Mark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := point{at: at}
	for _, m := range marks {
		if strings.HasPrefix(m.Name, "warc/") && m.Length > 0 {
			p.missing = append(p.missing, strings.TrimSuffix(m.Name, ".open"))
		}
	}
	if s.cfg.Sent != nil {
		p.unsent = marks
	}
	s.points = append(s.points, p)
	s.prunePoints()
	if !s.loaded || s.pending != nil {
		return
	}
	safe, there := s.safePosition(), s.uploaded
	if there != nil && !s.forceNext && positionOf(there) >= min(safe, at) { // trimming needs no newer checkpoint
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

// isSafe reports whether the records of all pages of a checkpoint are uploaded and in the sinks.
func (p *point) isSafe() bool { return len(p.missing)+len(p.unsent) == 0 }

// maxPoints limits the checkpoints in memory. Beyond it every second one is dropped, which delays trimming.
const maxPoints = 256

// prunePoints removes record files that are uploaded and listed, and redundant points.
func (s *States) prunePoints() {
	last := -1
	for i := range s.points {
		p := &s.points[i]
		p.missing = slices.DeleteFunc(p.missing, func(name string) bool { return s.listed[name] })
		if len(p.unsent) > 0 && s.cfg.Sent(p.unsent) {
			p.unsent = nil
		}
		if p.isSafe() {
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

// safePosition returns the position up to which the records of all pages are known to be uploaded.
func (s *States) safePosition() journal.Position {
	if len(s.points) == 0 || !s.points[0].isSafe() {
		return 0
	}
	return s.points[0].at
}

// positionOf returns the journal position of a checkpoint; 0 for nil.
func positionOf(there *away.State) journal.Position {
	if there == nil {
		return 0
	}
	return journal.Position(there.Position)
}

// manifestWritten is called after the location's manifest was written, with the new files in it.
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

// Run uploads checkpoints until ctx ends.
func (s *States) Run(ctx context.Context) {
	defer func() { _ = s.clearStaging() }() // otherwise the next process does it
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
				s.cfg.Warn(fmt.Errorf("the state of this node cannot be uploaded to the place %s, and the servers' log of its "+
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

// step does the pending work.
func (s *States) step(ctx context.Context) error {
	if !s.up.claim.established.Load() { // manifestWritten wakes Run later
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

// removeStale removes files of other checkpoints than the newest. It must not run during an upload.
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

// trim trims the log as far as possible.
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

// findMissing finds record files that can no longer be uploaded because they are missing in the folder. The log is kept
// from the position of their pages.
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
	// a file was uploaded and removed from the folder in the meantime
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

// inFolder reports whether the folder has a record file. It checks both names, because the file may just be closed.
func (s *States) inFolder(name string) (bool, error) {
	for _, ending := range []string{".open", ""} {
		_, err := s.up.cfg.Disk.Size(s.up.cfg.path(name + ending))
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return true, err
		}
	}
	return false, nil
}

// maxMissingNames limits the missing record files that are named.
const maxMissingNames = 3

// status returns the figures.
func (s *States) status() *stats.UploadedState {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := &stats.UploadedState{Checkpoints: s.stats.States, Bytes: s.stats.Bytes, Last: s.lastUpload,
		Cut: uint64(s.trimmed), CutBytes: s.stats.Log, Kept: s.cfg.Log.Trimmable(math.MaxInt64),
		MissingCount: int64(len(s.missing)),
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

// TrimStats returns the current figures.
func (s *States) TrimStats() TrimStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats
}

// RemoveAll removes all checkpoints from the location when they are no longer needed. It must not be called before Run
// has ended.
func (s *States) RemoveAll(ctx context.Context) error {
	if late := s.up.NotReady(); late != nil { // an earlier process may have uploaded some
		return late
	}
	return s.up.cfg.Place.Remove(ctx, away.StateDir)
}
