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
	busy   sync.Mutex    // held while a checkpoint, or a snapshot, is made
	ending chan struct{} // closed when the run comes to its last checkpoint
	marks  []store.Mark  // of all record files as the run found them, those of stores that are not open now among them
	// is told of checkpoints; may be nil
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

// checkpoint makes the journal's past unneeded: the views of it are brought to the disk as they are at one moment,
// while the crawl goes on. What seen was not sure of may be decided on the way.
func (c *Checkpoints) checkpoint(ctx context.Context) error {
	if c.known.db == nil {
		return nil
	}
	c.busy.Lock()
	defer c.busy.Unlock()
	if err := c.merge(ctx); err != nil { // what an earlier one that was broken off has frozen
		return err
	}
	var cut *frontier.Cut
	var n recovery.Note
	var frozen int64 // URLs that the merge decides
	var bound []uint64
	if _, err := c.abandons.abandoned.Mark(); err != nil { // so that little of it is left to be made durable in the pause
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
		if cut, err = c.frontier.Cut(); err == nil { // a visit may have been given back since it was settled
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
	n.Traps = c.traps.detector.State() // pages since the position count twice after a crash: harmless
	n.Traps.Vain = c.traps.vain.state()
	n.Cookies = c.cookies.AppendAll(nil) // what has changed since the position, the journal says again
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
	c.known.undecided.Add(-frozen) // only now, when what it has released is in the frontier, or waits on the disk
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

// Journalled is the position after the last batch that is in the journal, which may be written meanwhile.
func (c *Checkpoints) Journalled() journal.Position { return c.ledger.Position() }

// resolvePending is a checkpoint in which seen decides all that it was not sure of.
func (c *Checkpoints) resolvePending(ctx context.Context) error {
	if err := c.checkpoint(ctx); err != nil || c.known.db == nil {
		return err
	}
	c.busy.Lock()
	defer c.busy.Unlock()
	return c.known.db.DecideAll(ctx, c.abandons.admitDecided)
}

// merge brings what is frozen of seen and the digests to the disk.
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

// record is called while nothing is put.
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

// lastCheckpoint lets the next run begin soon. Who has stopped the run does not wait for it longer than for requests
// under way: what is not in a checkpoint is in the journal.
func (c *Checkpoints) lastCheckpoint(ctx context.Context) error {
	close(c.ending) // a snapshot does not keep it waiting
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

// resolveShare bounds how much of the time a run that stays may have seen decide, when nothing else is to be done.
const resolveShare = 10

// keepResolving has seen decide what it is not sure of whenever nothing else waits in a run that stays, until the
// context ends.
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
			return fmt.Errorf("decide what is news: %w", err)
		}
		next = time.Now().Add(resolveShare * time.Since(began))
		return nil
	})
}
