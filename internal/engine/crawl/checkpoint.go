package crawl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"kumo/internal/state/entry"
	"kumo/internal/state/frontier"
	"kumo/internal/state/journal"
	"kumo/internal/state/recovery"
	"kumo/internal/state/seen"
	"kumo/internal/state/store"
)

// checkpoint makes the journal's past unneeded: the views of it are brought to the disk as they are at one moment,
// while the crawl goes on. What seen was not sure of may be decided on the way.
func (e *Engine) checkpoint(ctx context.Context) error {
	if e.known.db == nil {
		return nil
	}
	e.control.checking.Lock()
	defer e.control.checking.Unlock()
	if err := e.merge(ctx); err != nil { // what an earlier one that was broken off has frozen
		return err
	}
	var cut *frontier.Cut
	var n recovery.Note
	var frozen int64 // URLs that the merge decides
	var bound []uint64
	if _, err := e.files.abandoned.Mark(); err != nil { // so that little of it is left to be made durable in the pause
		return fmt.Errorf("begin a checkpoint: %w", err)
	}
	err := e.ledger.Pause(func(at journal.Position, marks []store.Mark) error {
		shelf, err := e.files.abandoned.Mark()
		if err != nil {
			return err
		}
		e.known.db.Freeze(uint64(at))
		if d, ok := e.known.digests.(*seen.Digests); ok {
			d.Freeze(uint64(at))
		}
		frozen = e.known.undecided.Load()
		bound = e.peers.outbox.Numbers()
		n = e.note(at, e.ledger.WithClosed(marks))
		n.Shelved = shelf
		if cut, err = e.frontier.Cut(); err == nil { // a visit may have been given back since it was settled
			n.Settled = slices.DeleteFunc(n.Settled, func(url string) bool { return !cut.UnderWay(url) })
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("begin a checkpoint: %w", err)
	}
	if err := e.peers.outbox.Rewrite(bound); err != nil {
		return fmt.Errorf("begin a checkpoint: %w", err)
	}
	if err := e.ranks.sync(); err != nil {
		return fmt.Errorf("begin a checkpoint: %w", err)
	}
	n.Traps = e.traps.detector.State() // pages since the position count twice after a crash: harmless
	n.Traps.Vain = e.traps.vain.state()
	n.Cookies = e.cookies.AppendAll(nil) // what has changed since the position, the journal says again
	text, err := json.Marshal(n)
	if err = errors.Join(err, cut.Write(text)); err == nil {
		err = e.files.abandoned.Settle()
	}
	if err != nil {
		return fmt.Errorf("write a checkpoint: %w", err)
	}
	if err := e.merge(ctx); err != nil {
		return err
	}
	e.known.undecided.Add(-frozen) // only now, when what it has released is in the frontier, or waits on the disk
	if err := e.ledger.Drop(n.Position); err != nil {
		return err
	}
	return e.tellCheckpoint(&n)
}

// tellCheckpoint tells of a checkpoint that is durable, while no other is made.
func (e *Engine) tellCheckpoint(n *recovery.Note) error {
	if e.control.checkpointed == nil {
		return nil
	}
	relies, err := e.ledger.CommitTo()
	if err != nil {
		return err
	}
	e.control.checkpointed(min(n.Position, journal.Position(e.known.db.Position())), relies, n.Marks)
	return nil
}

// pendingDedup reports whether seen has yet to decide of some URLs whether they are news.
func (e *Engine) pendingDedup() bool { return e.Undecided() > 0 }

// Journalled is the position after the last batch that is in the journal, which may be written meanwhile.
func (e *Engine) Journalled() journal.Position { return e.ledger.Position() }

// Undecided is the number of URLs that may have been met before, as far as seen has yet to decide.
func (e *Engine) Undecided() int {
	n := e.known.undecided.Load()
	if e.known.db != nil {
		n += e.known.db.Waiting()
	}
	return int(n)
}

// decide is a checkpoint in which seen decides all that it was not sure of.
func (e *Engine) decide(ctx context.Context) error {
	if err := e.checkpoint(ctx); err != nil || e.known.db == nil {
		return err
	}
	e.control.checking.Lock()
	defer e.control.checking.Unlock()
	return e.known.db.Settle(ctx, e.release)
}

// await waits while seen, or the digests, have had their share of memory and no checkpoint has set it aside, and while
// the frontier's disk does not keep up. Who asks looks at the context.
func (e *Engine) await(ctx context.Context) {
	e.frontier.Room(ctx)
	if e.known.db != nil {
		_ = e.known.db.Room(ctx)
	}
	if d, ok := e.known.digests.(*seen.Digests); ok {
		_ = d.Room(ctx)
	}
}

func (e *Engine) full() bool {
	d, ok := e.known.digests.(*seen.Digests)
	return e.known.db.Full() || ok && d.Full()
}

// merge brings what is frozen of seen and the digests to the disk.
func (e *Engine) merge(ctx context.Context) error {
	if err := e.known.db.Merge(ctx, e.release); err != nil {
		return err
	}
	if err := seen.CompactAll(ctx, e.known.db); err != nil {
		return err
	}
	d, ok := e.known.digests.(*seen.Digests)
	if !ok {
		return nil
	}
	if err := d.Merge(ctx); err != nil {
		return err
	}
	return seen.CompactAll(ctx, d)
}

// note is called while nothing is put.
func (e *Engine) note(at journal.Position, marks []store.Mark) recovery.Note {
	n := recovery.Note{Version: recovery.NoteVersion, Position: at, Marks: e.allMarks(marks), Stats: e.stats.Lasting(),
		Sums:  e.stats.Sums(),
		Lists: e.roots.feed.marks(),
		Asked: e.files.deferredRead, Slices: recovery.NoteSlices(e.slices)}
	n.Settled, n.Told = e.ends.all()
	n.Arrivals = e.peers.transfer.NoteUnsettled()
	if e.claims != nil {
		n.Tenures = maps.Clone(e.claims.tenures)
	}
	return n
}

// release takes in what seen has found to be news in a merge. It is durable when it returns, as the merge's outcome
// will be.
func (e *Engine) release(decided []seen.Decided) error {
	var b batch
	err := e.ledger.Within(func() error {
		for i := range decided {
			d := entry.NewDecoder(decided[i].Payload)
			c := d.Candidate()
			if d.Bad {
				return fmt.Errorf("a decided URL: %w", d.Fault())
			}
			if decided[i].News == seen.Fresh {
				e.route(&b, &c)
			} else if c.Rule == "" {
				b.entries.Nearer(c.Item.URL, c.Item.Depth)
			}
		}
		return e.apply(&b)
	})
	if err != nil {
		return err
	}
	e.tellSkips(&b)
	if err := e.failAbandoned(b.found); err != nil {
		return err
	}
	at, err := e.ledger.CommitTo()
	if err == nil && e.known.db != nil {
		e.known.db.Rely(uint64(at))
	}
	return err
}

// keepUp makes checkpoints when they are due, until the context ends.
func (e *Engine) keepUp(ctx context.Context) error {
	if e.known.db == nil {
		return nil
	}
	tick := time.NewTicker(e.cfg.Commit)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if !e.full() && e.ledger.Written() < e.cfg.Checkpoint {
			continue
		}
		if err := e.checkpoint(ctx); err != nil && !canceled(err) {
			return err
		}
	}
}
