package nodes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"kumo/internal/bus"
	"kumo/internal/frontier"
	"kumo/internal/job"
	"kumo/internal/journal"
	"kumo/internal/journal/stream"
	"kumo/internal/member"
	"kumo/internal/member/driver"
	"kumo/internal/recovery"
	"kumo/internal/seen"
	"kumo/internal/strategy"
	"kumo/internal/transfer"
	"kumo/internal/vfs"
)

// failedNodes fold what dead nodes have left, each in a folder of its own, by the code with which a node recovers its
// own state.
type failedNodes struct {
	disk   vfs.FS
	dir    string
	bus    bus.Bus
	job    *job.Job
	places placesOfDead
}

// An failedState is what a dead node held.
type failedState struct {
	dir     string
	state   *recovery.State
	holding *transfer.Holding
	lost    *recovery.Lost // nil: nobody looks whether records are gone
	close   func() error
}

// Recover seals a dead node's log, and reads it. It begins anew where an earlier process was broken off.
func (s *failedNodes) Recover(ctx context.Context, dead strategy.Node) (_ driver.FailedState, err error) {
	e := &failedState{dir: filepath.Join(s.dir, string(dead)), close: func() error { return nil }}
	defer func() {
		if err != nil {
			err = fmt.Errorf("fold what %s held: %w", dead, errors.Join(err, e.Close()))
		}
	}()
	if err := stream.Seal(ctx, s.bus, logOf(dead)); err != nil {
		return nil, err
	}
	if err := os.RemoveAll(e.dir); err != nil {
		return nil, err
	}
	if err := s.findLost(ctx, e, dead); err != nil {
		return nil, err
	}
	views, err := s.views(e)
	if err != nil {
		return nil, err
	}
	log := &shipped{ctx: ctx, bus: s.bus, log: logOf(dead)}
	if e.state, err = recovery.RecoverFailed(ctx, log, views, s.memory()/4, e.lost); err != nil {
		return nil, err
	}
	if e.holding, err = e.state.Fold(ctx); err != nil {
		return nil, err
	}
	s.places.note(ctx, dead, e.lost)
	return e, nil
}

// views are empty ones. The dead node's records are not this one's to refer to, so digests are not kept.
func (s *failedNodes) views(e *failedState) (v recovery.Views, err error) {
	memory := s.memory()
	db, err := seen.Open(s.disk, filepath.Join(e.dir, "seen"), seen.Config{Memory: memory / 2,
		Depths: s.job.Crawl.BoundsDepth(), Now: s.job.Crawl.Now})
	if err != nil {
		return v, err
	}
	e.close = db.Close
	cfg := s.job.Frontier
	cfg.Disk, cfg.Dir, cfg.Memory = s.disk, filepath.Join(e.dir, "frontier"), memory/4
	f, _, err := frontier.Open(cfg)
	if err != nil {
		return v, err
	}
	e.close = func() error { return errors.Join(f.Close(), db.Close()) }
	return recovery.Views{Seen: db, Digests: noDigests{}, Frontier: f}, nil
}

// memory is what folding may take, beside what the node itself does: half of it for the URL database, a quarter each
// for the frontier and for what waits until it goes there.
func (s *failedNodes) memory() int64 { return s.job.MemoryBudget() / 4 }

// DeleteLog removes the log of a node whose estate is done with.
func (s *failedNodes) DeleteLog(ctx context.Context, dead strategy.Node) error {
	return errors.Join(s.bus.Drop(ctx, logOf(dead)), forgetPlace(ctx, s.bus, dead))
}

func (e *failedState) Arrived() []member.Transfer { return e.state.Arrived() }
func (e *failedState) Forgot() []member.Transfer  { return e.state.Went() }

func (e *failedState) Forget(gone member.Gone) { e.holding.Forget(gone) }

func (e *failedState) Export(owner func(host string) strategy.Node) (driver.Export, error) {
	return asExport(e.holding.Export(owner))
}

func (e *failedState) Bound(f func(data []byte) error) error { return e.state.Bound(f) }

// Close removes what is on the disk.
func (e *failedState) Close() error {
	err := errors.Join(e.close(), e.lost.Close())
	e.close, e.lost = func() error { return nil }, nil
	if gone := os.RemoveAll(e.dir); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	return err
}

// noDigests knows nothing.
type noDigests struct{}

func (noDigests) Put([20]byte, seen.Ref)               {}
func (noDigests) Get([20]byte) (seen.Ref, bool, error) { return seen.Ref{}, false, nil }

// shipped is a journal as a log has it: to be replayed, and for nothing else.
type shipped struct {
	ctx context.Context
	bus bus.Bus
	log string
	end journal.Position
}

var _ journal.Journal = (*shipped)(nil)

var errShipped = errors.New("a log is not a journal to write to")

func (s *shipped) Append([]byte) error         { return errShipped }
func (s *shipped) End() journal.Position       { return s.end }
func (s *shipped) Drop(journal.Position) error { return errShipped }
func (s *shipped) Close() error                { return nil }

// Replay calls f with all batches; from is 0 where nothing is known yet.
func (s *shipped) Replay(from journal.Position, f func([]byte, journal.Position) error) error {
	return stream.Replay(s.ctx, s.bus, s.log, func(batch []byte, end journal.Position) error {
		if s.end = end; end <= from {
			return nil
		}
		return f(batch, end)
	})
}
