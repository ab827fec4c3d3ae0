package upload

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"kumo/internal/away"
	"kumo/internal/journal"
	"kumo/internal/stats"
	"kumo/internal/store"
	"kumo/internal/vfs"
)

// leastGain is how many bytes a checkpoint must let the log be cut by to be brought to the place.
const leastGain = 1 << 20

// A StatesConfig says how checkpoints are brought to a place.
type StatesConfig struct {
	Log   journal.Shipped
	Least int64       // see States; default 1 MiB; negative: any, whatever it costs
	Warn  func(error) // told that checkpoints do not come to the place, once until they do; may be nil
	Told  func(Cut)   // of what was done; may be nil
}

// A Cut is what was cut off a log, and what it has cost.
type Cut struct {
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

	mu      sync.Mutex      // guards what follows
	begun   bool            // it is known what is in the place
	named   map[string]bool // record files that the place's manifest names; nil: it was not written yet
	there   *away.State
	must    bool    // what is there is not what the log was cut for: the next checkpoint is brought, whatever it costs
	points  []point // checkpoints, the oldest first; of those whose records are all in the place, only the last
	offered *offer  // to be brought; nil: none
	trimmed journal.Position
	cut     Cut
	came    time.Time // when the newest checkpoint came; zero: not by this process
	lacks   []string  // record files that are neither in the folder nor in the place

	told map[string]bool // of these, those that were warned of

	poke chan struct{}
	// what belongs to other checkpoints than the newest is yet to be removed from the place; only Run's
	untidy bool
	sound  map[string]bool // files in the folder that were found to be those in the place
}

// A point is a checkpoint, and the record files in which pages before it may be, of those that are not in the place.
type point struct {
	at    journal.Position
	wants []string
}

// An offer is a checkpoint whose files have second names.
type offer struct {
	at, relies journal.Position
	files      []stateFile
	sent       map[string]away.StateFile
}

type stateFile struct {
	name string // "seen/00000001.run"
	size int64
}

// stagingName is where files of a checkpoint that is brought to the place have second names.
var stagingName = filepath.Join("state", "leaving")

// States has checkpoints brought to the place. It is called before Run.
func (u *Uploader) States(cfg StatesConfig) *States {
	if cfg.Least == 0 {
		cfg.Least = leastGain
	}
	if cfg.Warn == nil {
		cfg.Warn = func(error) {}
	}
	s := &States{up: u, cfg: cfg, poke: make(chan struct{}, 1), sound: map[string]bool{}}
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
			p.wants = append(p.wants, strings.TrimSuffix(m.Name, ".open"))
		}
	}
	s.points = append(s.points, p)
	s.sift()
	if !s.begun || s.offered != nil {
		return
	}
	safe, there := s.safe(), s.there
	if there != nil && !s.must && upTo(there) >= min(safe, at) { // it can be cut as it is
		return
	}
	files, cost, err := s.list()
	gain := s.cfg.Log.Kept(safe)
	worth := gain > 0 && (gain >= max(cost, s.cfg.Least) || s.cfg.Least < 0)
	if err == nil && (worth || s.must) {
		if files, err = s.stage(files); err == nil {
			s.offered = &offer{at: at, relies: relies, files: files, sent: map[string]away.StateFile{}}
			s.wake()
		}
	}
	if err != nil {
		s.cfg.Warn(fmt.Errorf("prepare a checkpoint for the place %s: %w", s.up.cfg.Place.URL(), err))
	}
}

// mostPoints bounds how many are kept: beyond that every second one is forgotten, and the log is cut later.
const mostPoints = 256

// sift takes out what is in the place, and named there, and points that say no more than others.
func (s *States) sift() {
	last := -1
	for i := range s.points {
		p := &s.points[i]
		p.wants = slices.DeleteFunc(p.wants, func(name string) bool { return s.named[name] })
		if len(p.wants) == 0 {
			last = i
		}
	}
	if last > 0 {
		s.points = slices.Delete(s.points, 0, last)
	}
	if len(s.points) < mostPoints {
		return
	}
	kept := s.points[:1]
	for i := 2; i < len(s.points); i += 2 {
		kept = append(kept, s.points[i])
	}
	s.points = kept
}

// safe is up to where the records of all pages are in the place, as far as it is known.
func (s *States) safe() journal.Position {
	if len(s.points) == 0 || len(s.points[0].wants) > 0 {
		return 0
	}
	return s.points[0].at
}

// upTo is up to where the journal is in a checkpoint; in none, 0.
func upTo(there *away.State) journal.Position {
	if there == nil {
		return 0
	}
	return journal.Position(there.Position)
}

// look is called when the place's manifest names all that is there, with what is new of it.
func (s *States) look(fresh []string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.named == nil {
		s.named = map[string]bool{}
		for _, e := range s.up.there.All() {
			s.named[e.Name] = true
		}
	}
	for _, name := range fresh {
		s.named[name] = true
	}
	s.sift()
	s.wake()
}

func (s *States) wake() {
	select {
	case s.poke <- struct{}{}:
	default:
	}
}

// list finds the files of the checkpoint at hand, and how many bytes of them are not in the place.
func (s *States) list() (files []stateFile, cost int64, err error) {
	there := map[string]int64{}
	if s.there != nil {
		for _, f := range s.there.Files {
			there[f.Name] = f.Size
		}
	}
	for _, room := range away.StateRooms {
		names, err := s.up.cfg.Disk.List(s.up.path("state/" + room))
		if err != nil {
			return nil, 0, err
		}
		for _, name := range names {
			if strings.HasSuffix(name, ".new") || strings.HasSuffix(name, ".tmp") {
				continue
			}
			f := stateFile{name: room + "/" + name}
			f.size, err = s.up.cfg.Disk.Size(s.up.path("state/" + f.name))
			if errors.Is(err, fs.ErrNotExist) { // no checkpoint names it
				continue
			}
			if err != nil {
				return nil, 0, err
			}
			files = append(files, f)
			if size, is := there[f.name]; !is || size != f.size || !f.lasts() {
				cost += f.size
			}
		}
	}
	return files, cost, nil
}

// lasts reports whether a file with its name and its length is always the same.
func (f *stateFile) lasts() bool {
	return strings.HasSuffix(f.name, ".run") || strings.HasPrefix(f.name, "frontier/queue-")
}

func (f *stateFile) staged() string {
	return filepath.Join(stagingName, strings.ReplaceAll(f.name, "/", "."))
}

// stage gives files a second name. Those that have gone meanwhile no checkpoint names.
func (s *States) stage(files []stateFile) (staged []stateFile, err error) {
	if err := s.clear(); err != nil {
		return nil, err
	}
	u := s.up
	if err := u.cfg.Disk.MkdirAll(filepath.Join(u.cfg.Dir, stagingName)); err != nil {
		return nil, err
	}
	for _, f := range files {
		from, to := u.path("state/"+f.name), filepath.Join(u.cfg.Dir, f.staged())
		if !vfs.Link(u.cfg.Disk, from, to) {
			err = copyFile(u.cfg.Disk, from, to, f.size)
		}
		if err == nil {
			staged = append(staged, f)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		err = nil
	}
	return staged, nil
}

func copyFile(disk vfs.FS, from, to string, size int64) (err error) {
	src, err := disk.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	dst, err := disk.Append(to)
	if err != nil {
		return err
	}
	_, err = io.CopyN(dst, src, size)
	return errors.Join(err, dst.Close())
}

// clear takes the second names away.
func (s *States) clear() error {
	disk, dir := s.up.cfg.Disk, filepath.Join(s.up.cfg.Dir, stagingName)
	names, err := disk.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, name := range names {
		if err == nil {
			err = disk.Remove(filepath.Join(dir, name))
		}
	}
	return err
}

// Run brings checkpoints to the place until ctx ends.
func (s *States) Run(ctx context.Context) {
	defer func() { _ = s.clear() }() // or the next process does it
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
		case <-s.poke:
		case <-again:
		}
	}
}

// step does what there is to be done.
func (s *States) step(ctx context.Context) error {
	if !s.up.claimed.Load() { // look tells when it is
		return nil
	}
	if err := s.begin(ctx); err != nil {
		return err
	}
	if err := s.seek(); err != nil {
		return err
	}
	s.mu.Lock()
	o := s.offered
	s.mu.Unlock()
	if o != nil {
		err := s.bring(ctx, o)
		if errors.Is(err, errStaged) {
			err = s.giveUp(err)
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(s.tidy(ctx), s.trim(ctx))
}

// tidy removes from the place what belongs to other checkpoints than the newest. Nothing is on its way there.
func (s *States) tidy(ctx context.Context) error {
	if !s.untidy {
		return nil
	}
	if err := s.there.DropOthers(ctx, s.up.cfg.Place); err != nil {
		return err
	}
	s.untidy = false
	return nil
}

// begin finds out what an earlier process has brought. Where that cannot be read, all is brought again; and at once, if
// the log was cut for it: until then nobody could take over from a disk that is lost.
func (s *States) begin(ctx context.Context) error {
	s.mu.Lock()
	begun := s.begun
	s.mu.Unlock()
	if begun {
		return nil
	}
	if err := s.clear(); err != nil {
		return err
	}
	there, why := away.ReadState(ctx, s.up.cfg.Place)
	if why == nil {
		why = there.Lacks(ctx, s.up.cfg.Place)
	}
	if why != nil && !errors.Is(why, away.ErrState) {
		return why
	}
	begins, err := s.cfg.Log.Begins(ctx)
	if err != nil {
		return err
	}
	if why == nil && begins > upTo(there) {
		why = fmt.Errorf("there is none up to %x, where the servers' journal begins", uint64(begins))
	}
	if why != nil {
		s.cfg.Warn(fmt.Errorf("the place %s has no whole checkpoint of this node, and gets the next one: %w",
			s.up.cfg.Place.URL(), why))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun, s.there, s.must = true, there, why != nil
	s.untidy = there != nil && why == nil
	return nil
}

// errStaged is a file of a checkpoint that cannot be had here, however often it is tried.
var errStaged = errors.New("it is not what was kept for it")

// giveUp lets go of a checkpoint that cannot be brought: the next one can.
func (s *States) giveUp(why error) error {
	s.cfg.Warn(fmt.Errorf("a checkpoint does not come to the place %s, the next one may: %w", s.up.cfg.Place.URL(), why))
	s.mu.Lock()
	s.offered = nil
	s.mu.Unlock()
	s.untidy = s.untidy || s.there != nil && !s.must // files of it may be there
	return s.clear()
}

// bring brings a checkpoint to the place. What was brought before it failed is not brought again.
func (s *States) bring(ctx context.Context, o *offer) error {
	if err := errors.Join(s.up.stillOurs(ctx), s.cfg.Log.Held(ctx)); err != nil {
		return err
	}
	state := &away.State{Position: uint64(o.at), Relies: uint64(o.relies)}
	for _, f := range o.files {
		at, is := o.sent[f.name]
		if !is {
			var err error
			if at, err = s.send(ctx, o, &f); err != nil {
				return fmt.Errorf("%s: %w", f.name, err)
			}
			o.sent[f.name] = at
		}
		state.Files = append(state.Files, at)
	}
	if err := s.cfg.Log.Ship(ctx, o.relies); err != nil {
		return err
	}
	if err := s.cfg.Log.Held(ctx); err != nil { // who has folded this node has removed what the place had of it
		return err
	}
	if err := state.Write(ctx, s.up.cfg.Place); err != nil {
		return err
	}
	s.mu.Lock()
	s.there, s.offered, s.came = state, nil, time.Now()
	s.cut.States++
	s.must = false
	s.mu.Unlock()
	s.untidy = true
	return s.clear()
}

// send sees that a file is in the place.
func (s *States) send(ctx context.Context, o *offer, f *stateFile) (at away.StateFile, err error) {
	staged := filepath.Join(s.up.cfg.Dir, f.staged())
	src, err := s.up.cfg.Disk.OpenAt(staged)
	if err != nil {
		return at, fmt.Errorf("%w: %w", errStaged, err)
	}
	defer func() { _ = src.Close() }() // it is only read
	old, is := s.there.File(f.name)
	is = is && f.lasts() && old.Size == f.size
	if is {
		if is, err = old.IsThere(ctx, s.up.cfg.Place); err != nil {
			return at, err
		}
		if !is { // nor is what the log was cut for
			s.mu.Lock()
			s.must = true
			s.mu.Unlock()
		}
	}
	if is && s.sound[f.name] {
		return old, nil
	}
	sum, err := digestOf(io.NewSectionReader(src, 0, f.size))
	if size, sizeErr := s.up.cfg.Disk.Size(staged); err == nil && sizeErr == nil && size < f.size {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return at, fmt.Errorf("%w: %w", errStaged, err)
	}
	at = away.StateFile{Name: f.name, At: away.StateFolder(uint64(o.at)) + "/" + f.name, Size: f.size,
		SHA256: hex.EncodeToString(sum[:])}
	if is && old.SHA256 == at.SHA256 {
		s.sound[f.name] = true
		return old, nil
	}
	if err := s.up.put(ctx, at.At, src, f.size, sum); err != nil {
		return at, err
	}
	s.sound[f.name] = f.lasts()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut.Files, s.cut.Bytes = s.cut.Files+1, s.cut.Bytes+f.size
	return at, nil
}

// trim cuts the log as far as can be.
func (s *States) trim(ctx context.Context) error {
	s.mu.Lock()
	to := s.safe()
	if s.must {
		to = 0
	}
	to = min(to, upTo(s.there))
	is := to > s.trimmed
	s.mu.Unlock()
	if !is {
		return nil
	}
	gone := s.cfg.Log.Kept(to)
	if err := s.cfg.Log.Trim(ctx, to); err != nil {
		return err
	}
	s.mu.Lock()
	s.trimmed = to
	s.cut.Log += gone
	cut := s.cut
	s.mu.Unlock()
	if s.cfg.Told != nil && gone > 0 {
		s.cfg.Told(cut)
	}
	return nil
}

// seek finds record files that nobody brings to the place any more, because they have gone from the folder: the log is
// kept from where their pages begin.
func (s *States) seek() error {
	s.mu.Lock()
	var wants []string
	for i := range s.points {
		if wants = slices.Clone(s.points[i].wants); len(wants) > 0 {
			break
		}
	}
	s.mu.Unlock()
	var lacks []string
	for _, name := range wants {
		is, err := s.isHere(name)
		if err != nil {
			return err
		}
		if !is {
			lacks = append(lacks, name)
		}
	}
	s.mu.Lock()
	// it came meanwhile, and was removed here
	lacks = slices.DeleteFunc(lacks, func(name string) bool { return s.named[name] })
	s.lacks = lacks
	s.mu.Unlock()
	lacks = slices.DeleteFunc(slices.Clone(lacks), func(name string) bool { return s.told[name] })
	if len(lacks) == 0 {
		return nil
	}
	for _, name := range lacks {
		if s.told == nil {
			s.told = map[string]bool{}
		}
		s.told[name] = true
	}
	s.cfg.Warn(fmt.Errorf("the place %s: %s", s.up.cfg.Place.URL(), s.status().Lacking()))
	return nil
}

// isHere reports whether the folder has a record file: it may get its final name just now.
func (s *States) isHere(name string) (bool, error) {
	for _, ending := range []string{".open", ""} {
		_, err := s.up.cfg.Disk.Size(s.up.path(name + ending))
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return true, err
		}
	}
	return false, nil
}

// mostLacks is how many record files that have gone are named.
const mostLacks = 3

// status is how it stands.
func (s *States) status() *stats.UploadedState {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := &stats.UploadedState{Checkpoints: s.cut.States, Bytes: s.cut.Bytes, Last: s.came, Cut: uint64(s.trimmed),
		CutBytes: s.cut.Log, Kept: s.cfg.Log.Kept(math.MaxInt64), LackAll: int64(len(s.lacks)),
		Lacks: slices.Clone(s.lacks[:min(len(s.lacks), mostLacks)])}
	if s.there != nil {
		x.Position = s.there.Position
	}
	if s.offered != nil {
		for _, f := range s.offered.files {
			x.Coming += f.size
		}
	}
	return x
}

// Cut is what was done so far.
func (s *States) Cut() Cut {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cut
}

// Forget removes all checkpoints from the place: nobody goes on from them. Run has ended.
func (s *States) Forget(ctx context.Context) error {
	if late := s.up.Late(); late != nil { // an earlier process may have brought some
		return late
	}
	return s.up.cfg.Place.Remove(ctx, away.StateDir)
}
