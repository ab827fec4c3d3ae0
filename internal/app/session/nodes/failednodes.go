package nodes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"kumo/internal/app/job"
	"kumo/internal/app/node"
	"kumo/internal/app/session"
	"kumo/internal/base/stats"
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

// failedNodes recovers the state of dead nodes, each in a folder of its own, with the code by which a node recovers its
// own state.
type failedNodes struct {
	disk   vfs.FS
	dir    string
	bus    bus.Bus
	job    *job.Job
	sender session.Sender // of this node; nil: the crawl has no sinks
	places failedPlaces
}

// A failedState is the recovered state of a dead node.
type failedState struct {
	dir           string
	state         *recovery.State
	holding       *transfer.Holding
	hasCheckpoint bool                    // it is based on a checkpoint
	uploaded      func([]store.Mark) bool // reports whether records are uploaded; nil: not checked
	sent          func([]store.Mark) bool // reports whether the sinks have records; nil: there are none
	lost          *recovery.LostRecords   // nil: not checked
	close         func() error
}

// stateDir returns the folder with the checkpoint's files, laid out like a crawl's state folder.
func (e *failedState) stateDir() string { return filepath.Join(e.dir, "state") }

// partialDir returns the folder of an incomplete copy of the checkpoint, which the next attempt completes.
func (e *failedState) partialDir() string { return e.dir + ".coming" }

// Recover seals and reads a dead node's log. An attempt after an interruption starts again from the beginning.
func (s *failedNodes) Recover(ctx context.Context, dead strategy.Node) (_ driver.FailedState, err error) {
	e := &failedState{dir: filepath.Join(s.dir, string(dead)), close: func() error { return nil }}
	defer func() {
		if err != nil {
			err = fmt.Errorf("recover the state of %s: %w", dead, errors.Join(err, e.Close()))
		}
		gone := func() { _ = os.RemoveAll(e.partialDir()) } // otherwise the next process deletes it
		if err == nil || ctx.Err() != nil {
			gone()
		} else { // this node retries until another one takes over
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
	if e.sent, err = s.sentBefore(ctx, dead); err != nil {
		return nil, err
	}
	unread, err := s.findPlace(ctx, e, dead)
	if err != nil {
		return nil, err
	}
	if err = s.recover(ctx, log, e); err != nil && e.hasCheckpoint && ctx.Err() == nil {
		s.places.Log.Warn("the checkpoint of a dead node was copied, but cannot be "+
			"used: its journal is read from the beginning, if the servers still have it", "node", dead, "why", err)
		unread = fmt.Errorf("its checkpoint: %w", err)
		_ = e.Close() // of the damaged checkpoint
		if err = os.RemoveAll(e.dir); err == nil {
			err = s.recover(ctx, log, e)
		}
	}
	if errors.Is(err, journal.ErrDropped) || unread != nil && errors.Is(err, stream.ErrDamaged) {
		err = fmt.Errorf("the queues of the dead node cannot be recovered, so its hosts wait: the "+
			"servers only have the part of its journal after its checkpoint, and no matching checkpoint can be read from its "+
			"storage location: %w",
			errors.Join(unread, err))
	}
	if err != nil {
		return nil, err
	}
	s.places.add(ctx, dead, e.lost)
	s.recordPages(ctx, dead, e.state.Stats)
	return e, nil
}

// recordPages records the page count of a dead node: its last report may be some seconds older than its journal.
func (s *failedNodes) recordPages(ctx context.Context, dead strategy.Node, counts *stats.Counter) {
	totals := node.Totals{Registry: s.bus}
	_, err := totals.AddDeparted(ctx, node.Pages{dead: counts.Pages()})
	_, failed := totals.AddDepartedBytes(ctx, node.Pages{dead: counts.Totals().Bytes})
	err = errors.Join(err, failed, node.Control{Registry: s.bus}.SetFinalPages(ctx, dead, counts.NewPages()))
	r := stats.Report{Stopped: time.Now()}
	r.Started = r.Stopped // the time of its run is not known
	r.Fill(counts.DurableSnapshot(), counts.Pages(), counts.Totals().Bytes)
	r.WithoutState()
	err = errors.Join(err, node.Control{Registry: s.bus}.PutResults(ctx, dead, r))
	if err != nil && ctx.Err() == nil {
		s.places.Log.Debug("cannot record the page count of a dead node", "node", dead, "err", err)
	}
}

// recover rebuilds the dead node's state from its copied checkpoint, if there is one, and the log.
func (s *failedNodes) recover(ctx context.Context, log *replicatedLog, e *failedState) error {
	if e.uploaded != nil || e.sent != nil {
		isSafe := func(grown []store.Mark) bool {
			return (e.uploaded == nil || e.uploaded(grown)) && (e.sent == nil || e.sent(grown))
		}
		e.lost = &recovery.LostRecords{Disk: s.disk, File: filepath.Join(e.dir, "again"), Safe: isSafe}
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

// views opens the views of the copied checkpoint, or empty ones. Digests are not kept, because this node cannot refer
// to the dead node's records.
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

// memory returns the additional memory for a recovery: half is for the URL database, a quarter each for the frontier
// and for URLs on their way to it.
func (s *failedNodes) memory() int64 { return s.job.MemoryBudget() / 4 }

// DeleteLog deletes the log and the uploaded state of a node whose recovery is complete.
func (s *failedNodes) DeleteLog(ctx context.Context, dead strategy.Node) error {
	if err := s.bus.Drop(ctx, logOf(dead)); err != nil {
		return err
	}
	if err := s.places.dropState(ctx, dead); err != nil {
		return err
	}
	return errors.Join(deleteKey(ctx, s.bus, node.SentKey(dead)),
		deleteKey(ctx, s.bus, node.PlaceKey(dead))) // last, because it has the location
}

func (e *failedState) Received() []member.Transfer  { return e.state.Arrived() }
func (e *failedState) Forgotten() []member.Transfer { return e.state.Went() }

func (e *failedState) Forget(gone member.Moved) { e.holding.Forget(gone) }

func (e *failedState) Export(owner func(host string) strategy.Node) (driver.Export, error) {
	return asExport(e.holding.Export(owner))
}

func (e *failedState) OutboxLinks(f func(data []byte) error) error { return e.state.Links.Batches(f) }

// Close deletes the files on disk.
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

// A replicatedLog is a read-only journal in a log of the bus.
type replicatedLog struct {
	ctx context.Context
	bus bus.Bus
	log string
	end journal.Position
}

var _ journal.Journal = (*replicatedLog)(nil)

var errReadOnlyLog = errors.New("the journal of a dead node is read-only")

func (s *replicatedLog) Append([]byte) error         { return errReadOnlyLog }
func (s *replicatedLog) End() journal.Position       { return s.end }
func (s *replicatedLog) Drop(journal.Position) error { return errReadOnlyLog }
func (s *replicatedLog) Close() error                { return nil }

// Replay calls f with all batches after from, and with earlier ones that are still in the log.
func (s *replicatedLog) Replay(from journal.Position, f func([]byte, journal.Position) error) error {
	at := from
	err := stream.Replay(s.ctx, s.bus, s.log, from, func(data []byte, end journal.Position) error {
		at = max(at, end)
		return f(data, end)
	})
	if err == nil && at < s.end {
		err = fmt.Errorf("%w: it was sealed at %x, but ends at %x", stream.ErrDamaged, uint64(s.end), uint64(at))
	}
	return err
}
