package crawl

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"kumo/internal/state/journal"
	"kumo/internal/state/store"
)

// ErrEnding means that no snapshot is possible because the crawl is ending.
var ErrEnding = errors.New("the crawl is just ending")

// Snapshot calls copy with the journal's position and the lengths of the record files at one moment of a running crawl.
// Until copy returns, no file that the last checkpoint names is removed or changed, the journal and the record files
// only grow, and record files keep their names. The crawl continues without checkpoints; if it ends, copy's context is
// canceled.
func (c *Checkpoints) Snapshot(ctx context.Context, copy func(ctx context.Context, at journal.Position,
	marks []store.Mark) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer stop(nil)
	watch.Go(func() {
		select {
		case <-c.ending:
			stop(ErrEnding)
		case <-ctx.Done():
		}
	})
	c.busy.Lock()
	defer c.busy.Unlock()
	select {
	case <-c.ending:
		return ErrEnding
	default:
	}
	var at journal.Position
	var marks []store.Mark
	err := c.ledger.Pause(func(end journal.Position, open []store.Mark) error {
		at, marks = end, c.allMarks(c.ledger.WithClosedFiles(open))
		c.ledger.KeepOpen()
		return nil
	})
	if err != nil {
		return fmt.Errorf("begin a snapshot: %w", err)
	}
	defer c.ledger.AllowClose()
	if err = copy(ctx, at, marks); err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return err
}

// allMarks adds the lengths of files that this run has not written to.
func (c *Checkpoints) allMarks(marks []store.Mark) []store.Mark {
	named := make(map[string]bool, len(marks))
	for _, m := range marks {
		named[m.Name] = true
	}
	for _, m := range c.marks {
		if !named[m.Name] {
			marks = append(marks, m)
		}
	}
	return marks
}
