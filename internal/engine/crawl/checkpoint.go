package crawl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"kumo/internal/base/stats"
	"kumo/internal/content/cookies"
	"kumo/internal/engine/exchange"
	"kumo/internal/state/frontier"
	"kumo/internal/state/journal"
	"kumo/internal/state/ledger"
	"kumo/internal/state/recovery"
	"kumo/internal/state/seen"
	"kumo/internal/state/store"
	"kumo/internal/state/transfer"
)

// Checkpoints makes checkpoints and snapshots, one at a time.
type Checkpoints struct {
	busy   sync.Mutex    // held while a checkpoint or a snapshot is made
	ending chan struct{} // closed before the run's last checkpoint
	marks  []store.Mark  // record files at the start of the run, those of closed stores included
	// called with each durable checkpoint; may be nil
	checkpointed func(at, relies journal.Position, marks []store.Mark)

	cfg      *Config
	hosts    *hosts
	known    *known
	outbox   *exchange.Outbox
	claims   *claims
	ranks    *ranking
	traps    *trapGuard
	cookies  *cookies.Jar
	ends     *visitEnds
	feed     *seedFeed
	deferred *deferredURLs
	abandons *abandoner
	transfer *transfer.Endpoint
	frontier *frontier.Frontier
	ledger   *ledger.Ledger
	stats    *stats.Counter
}

// checkpoint writes the views of the journal to disk as they are at one moment, so that the journal before it can be
// dropped. The crawl continues meanwhile. On the way, seen may decide undecided URLs.
func (c *Checkpoints) checkpoint(ctx context.Context) error {
	if c.known.db == nil {
		return nil
	}
	c.busy.Lock()
	defer c.busy.Unlock()
	if err := c.merge(ctx); err != nil { // parts frozen by an earlier, interrupted checkpoint
		return err
	}
	var cut *frontier.Cut
	var n recovery.Note
	var frozen int64 // number of URLs that the merge decides
	var bound []uint64
	if _, err := c.abandons.abandoned.Mark(); err != nil { // before the pause, so that the pause has little left to sync
		return fmt.Errorf("begin a checkpoint: %w", err)
	}
	err := c.ledger.Pause(func(at journal.Position, marks []store.Mark) error {
		shelf, err := c.abandons.abandoned.Mark()
		if err != nil {
			return err
		}
		c.known.db.Freeze(uint64(at))
		if d, ok := c.known.digests.(*seen.Digests); ok {
			d.Freeze(uint64(at))
		}
		frozen = c.known.undecided.Load()
		bound = c.outbox.Numbers()
		n = c.note(at, c.ledger.WithClosedFiles(marks))
		n.Shelved = shelf
		if cut, err = c.frontier.Cut(); err == nil { // a visit may have been given back since it was finalized
			n.Settled = slices.DeleteFunc(n.Settled, func(url string) bool { return !cut.UnderWay(url) })
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("begin a checkpoint: %w", err)
	}
	if err := c.outbox.Rewrite(bound); err != nil {
		return fmt.Errorf("begin a checkpoint: %w", err)
	}
	if err := c.ranks.sync(); err != nil {
		return fmt.Errorf("begin a checkpoint: %w", err)
	}
	n.Traps = c.traps.detector.State() // after a crash, pages since the position count twice: harmless
	n.Traps.Vain = c.traps.vain.state()
	n.Cookies = c.cookies.AppendAll(nil) // the journal has cookie changes since the position
	text, err := json.Marshal(n)
	if err = errors.Join(err, cut.Write(text)); err == nil {
		err = c.abandons.abandoned.RemoveOld()
	}
	if err != nil {
		return fmt.Errorf("write a checkpoint: %w", err)
	}
	if err := c.merge(ctx); err != nil {
		return err
	}
	c.known.undecided.Add(-frozen) // only now that the decided URLs are in the frontier, or on disk
	if err := c.ledger.Drop(n.Position); err != nil {
		return err
	}
	return c.announceCheckpoint(&n)
}

// announceCheckpoint reports a durable checkpoint before the next one can begin.
func (c *Checkpoints) announceCheckpoint(n *recovery.Note) error {
	if c.checkpointed == nil {
		return nil
	}
	relies, err := c.ledger.CommitTo()
	if err != nil {
		return err
	}
	c.checkpointed(min(n.Position, journal.Position(c.known.db.Position())), relies, n.Marks)
	return nil
}

// Journalled returns the position after the last batch in the journal. Batches may be appended concurrently.
func (c *Checkpoints) Journalled() journal.Position { return c.ledger.Position() }

// resolvePending makes a checkpoint, and then has seen decide all undecided URLs.
func (c *Checkpoints) resolvePending(ctx context.Context) error {
	if err := c.checkpoint(ctx); err != nil || c.known.db == nil {
		return err
	}
	c.busy.Lock()
	defer c.busy.Unlock()
	return c.known.db.DecideAll(ctx, c.abandons.admitDecided)
}

// merge writes the frozen parts of seen and the digests to disk.
func (c *Checkpoints) merge(ctx context.Context) error {
	if err := c.known.db.Merge(ctx, c.abandons.admitDecided); err != nil {
		return err
	}
	if err := seen.CompactAll(ctx, c.known.db); err != nil {
		return err
	}
	d, ok := c.known.digests.(*seen.Digests)
	if !ok {
		return nil
	}
	if err := d.Merge(ctx); err != nil {
		return err
	}
	return seen.CompactAll(ctx, d)
}

// note builds the checkpoint's note. The caller holds the ledger's pause.
func (c *Checkpoints) note(at journal.Position, marks []store.Mark) recovery.Note {
	n := recovery.Note{
		Version:  recovery.NoteVersion,
		Position: at,
		Marks:    c.allMarks(marks),
		Stats:    c.stats.DurableSnapshot(),
		Sums:     c.stats.Sums(),
		Lists:    c.feed.marks(),
		Asked:    c.deferred.upTo,
		Slices:   recovery.NoteSlices(c.hosts.slices),
	}
	n.Settled, n.Told = c.ends.all()
	n.Arrivals = c.transfer.NoteUnsettled()
	if c.claims != nil {
		n.Tenures = maps.Clone(c.claims.tenures)
	}
	return n
}

// keepCheckpointing makes checkpoints when they are due, until the context ends.
func (c *Checkpoints) keepCheckpointing(ctx context.Context) error {
	if c.known.db == nil {
		return nil
	}
	return every(ctx, c.cfg.Commit, func() error {
		if !c.known.full() && c.ledger.Written() < c.cfg.Checkpoint {
			return nil
		}
		if err := c.checkpoint(ctx); !canceled(err) {
			return err
		}
		return nil
	})
}

// lastCheckpoint makes the run's last checkpoint, so that the next run starts fast. If the run was canceled, it takes
// at most Config.Grace: the journal has everything that no checkpoint has.
func (c *Checkpoints) lastCheckpoint(ctx context.Context) error {
	close(c.ending) // interrupts a snapshot
	if ctx.Err() != nil {
		patient, done := context.WithTimeout(context.WithoutCancel(ctx), c.cfg.Grace)
		defer done()
		ctx = patient
	}
	err := c.checkpoint(ctx)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// resolveShare bounds the load of resolvePending in an idle persistent run: to one part in resolveShare of the time.
const resolveShare = 10

// keepResolving has seen decide undecided URLs whenever the queues of a persistent run are empty, until the context
// ends.
func (c *Checkpoints) keepResolving(ctx context.Context) error {
	if c.known.db == nil || !c.cfg.KeepOpen {
		return nil
	}
	next := time.Now()
	return every(ctx, c.cfg.Commit, func() error {
		if dry, _ := c.frontier.IsDrained(); !dry || !c.known.pendingDedup() || time.Now().Before(next) {
			return nil
		}
		began := time.Now()
		if err := c.resolvePending(ctx); err != nil && !canceled(err) {
			return fmt.Errorf("decide pending URLs: %w", err)
		}
		next = time.Now().Add(resolveShare * time.Since(began))
		return nil
	})
}
