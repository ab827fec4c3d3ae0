package nodes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"kumo/internal/app/job"
	"kumo/internal/base/vfs"
	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/member"
	"kumo/internal/cluster/member/driver"
	"kumo/internal/cluster/strategy"
	"kumo/internal/state/frontier"
	"kumo/internal/state/journal"
	"kumo/internal/state/journal/stream"
	"kumo/internal/state/recovery"
	"kumo/internal/state/seen"
	"kumo/internal/state/statefile"
	"kumo/internal/state/store"
	"kumo/internal/state/transfer"
)

// failedNodes fold what dead nodes have left, each in a folder of its own, by the code with which a node recovers its
// own state.
type failedNodes struct {
	disk   vfs.FS
	dir    string
	bus    bus.Bus
	job    *job.Job
	places failedPlaces
}

// An failedState is what a dead node held.
type failedState struct {
	dir           string
	state         *recovery.State
	holding       *transfer.Holding
	hasCheckpoint bool                    // of a checkpoint
	uploaded      func([]store.Mark) bool // whether records are in its place; nil: nobody looks whether they are gone
	lost          *recovery.LostRecords   // nil likewise
	close         func() error
}

// stateDir has the checkpoint's files as the folder of a crawl's state does.
func (e *failedState) stateDir() string { return filepath.Join(e.dir, "state") }

// partialDir has what has come of these: the next try goes on with it.
func (e *failedState) partialDir() string { return e.dir + ".coming" }

// Recover seals a dead node's log, and reads it. It begins anew where an earlier process was broken off.
func (s *failedNodes) Recover(ctx context.Context, dead strategy.Node) (_ driver.FailedState, err error) {
	e := &failedState{dir: filepath.Join(s.dir, string(dead)), close: func() error { return nil }}
	defer func() {
		if err != nil {
			err = fmt.Errorf("fold what %s held: %w", dead, errors.Join(err, e.Close()))
		}
		gone := func() { _ = os.RemoveAll(e.partialDir()) } // or the next process does it
		if err == nil || ctx.Err() != nil {
			gone()
		} else { // who folds it tries again, until another does
			context.AfterFunc(ctx, gone)
		}
	}()
	log := &replicatedLog{ctx: ctx, bus: s.bus, log: logOf(dead)}
	if log.end, err = stream.Seal(ctx, s.bus, log.log); err != nil {
		return nil, err
	}
	if err := os.RemoveAll(e.dir); err != nil {
		return nil, err
	}
	unread, err := s.findPlace(ctx, e, dead)
	if err != nil {
		return nil, err
	}
	if err = s.recover(ctx, log, e); err != nil && e.hasCheckpoint && ctx.Err() == nil {
		s.places.Log.Warn("the checkpoint in a dead node's place came as it was brought there, and cannot be gone on "+
			"from: its journal is read from the beginning, if the servers have that", "node", dead, "why", err)
		unread = fmt.Errorf("the checkpoint in its place: %w", err)
		_ = e.Close() // of what is damaged
		if err = os.RemoveAll(e.dir); err == nil {
			err = s.recover(ctx, log, e)
		}
	}
	if errors.Is(err, journal.ErrDropped) || unread != nil && errors.Is(err, stream.ErrDamaged) {
		err = fmt.Errorf("what waited there and what is known of its hosts cannot be had, and its hosts wait: the "+
			"servers have its journal only behind what its checkpoint has, and no checkpoint that fits can be read in its "+
			"place: %w",
			errors.Join(unread, err))
	}
	if err != nil {
		return nil, err
	}
	s.places.note(ctx, dead, e.lost)
	return e, nil
}

// recover makes of what was copied, if anything was, and of the log what the dead node held.
func (s *failedNodes) recover(ctx context.Context, log *replicatedLog, e *failedState) error {
	if e.uploaded != nil {
		e.lost = &recovery.LostRecords{Disk: s.disk, File: filepath.Join(e.dir, "again"), Safe: e.uploaded}
	}
	views, err := s.views(e)
	if err != nil {
		return err
	}
	if e.state, err = recovery.RecoverFailed(ctx, log, views, s.memory()/4, e.lost); err != nil {
		return err
	}
	e.holding, err = e.state.BuildHolding(ctx)
	return err
}

// views are those of the checkpoint that was copied, or empty. The dead node's records are not this one's to refer to,
// so digests are not kept.
func (s *failedNodes) views(e *failedState) (v recovery.Views, err error) {
	memory := s.memory()
	db, err := seen.Open(s.disk, filepath.Join(e.stateDir(), "seen"), seen.Config{Memory: memory / 2,
		Depths: s.job.Crawl.BoundsDepth(), Now: s.job.Crawl.Now})
	if err != nil {
		return v, err
	}
	e.close = db.Close
	cfg := s.job.Frontier
	cfg.Disk, cfg.Dir, cfg.Memory = s.disk, filepath.Join(e.stateDir(), "frontier"), memory/4
	f, note, err := frontier.Open(cfg)
	if err != nil {
		return v, err
	}
	abandoned := statefile.OpenAbandoned(s.disk, e.dir)
	e.close = func() error { return errors.Join(abandoned.Close(), f.Close(), db.Close()) }
	return recovery.Views{Seen: db, Digests: noDigests{}, Frontier: f, Abandoned: abandoned, Note: note}, nil
}

// memory is what folding may take, beside what the node itself does: half of it for the URL database, a quarter each
// for the frontier and for what waits until it goes there.
func (s *failedNodes) memory() int64 { return s.job.MemoryBudget() / 4 }

// DeleteLog removes the log of a node whose estate is done with, and what its place has of its state.
func (s *failedNodes) DeleteLog(ctx context.Context, dead strategy.Node) error {
	if err := s.bus.Drop(ctx, logOf(dead)); err != nil {
		return err
	}
	if err := s.places.dropState(ctx, dead); err != nil {
		return err
	}
	return deletePlace(ctx, s.bus, dead) // last: it says where to look
}

func (e *failedState) Received() []member.Transfer  { return e.state.Arrived() }
func (e *failedState) Forgotten() []member.Transfer { return e.state.Went() }

func (e *failedState) Forget(gone member.Moved) { e.holding.Forget(gone) }

func (e *failedState) Export(owner func(host string) strategy.Node) (driver.Export, error) {
	return asExport(e.holding.Export(owner))
}

func (e *failedState) OutboxLinks(f func(data []byte) error) error { return e.state.Links.Batches(f) }

// Close removes what is on the disk.
func (e *failedState) Close() error {
	err := errors.Join(e.close(), e.lost.Close())
	e.close, e.lost = func() error { return nil }, nil
	if gone := os.RemoveAll(e.dir); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	return err
}

type noDigests struct{}

func (noDigests) Put([20]byte, seen.Ref)               {}
func (noDigests) Get([20]byte) (seen.Ref, bool, error) { return seen.Ref{}, false, nil }

// replicatedLog is a journal as a log has it: to be replayed, and for nothing else.
type replicatedLog struct {
	ctx context.Context
	bus bus.Bus
	log string
	end journal.Position
}

var _ journal.Journal = (*replicatedLog)(nil)

var errReadOnlyLog = errors.New("a log is not a journal to write to")

func (s *replicatedLog) Append([]byte) error         { return errReadOnlyLog }
func (s *replicatedLog) End() journal.Position       { return s.end }
func (s *replicatedLog) Drop(journal.Position) error { return errReadOnlyLog }
func (s *replicatedLog) Close() error                { return nil }

// Replay calls f with all batches behind from, and with those before that the log still has.
func (s *replicatedLog) Replay(from journal.Position, f func([]byte, journal.Position) error) error {
	at := from
	err := stream.Replay(s.ctx, s.bus, s.log, from, func(data []byte, end journal.Position) error {
		at = max(at, end)
		return f(data, end)
	})
	if err == nil && at < s.end {
		err = fmt.Errorf("%w: it is closed at %x, and ends at %x", stream.ErrDamaged, uint64(s.end), uint64(at))
	}
	return err
}
