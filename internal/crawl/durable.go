package crawl

import (
	"context"
	"errors"

	"kumo/internal/journal"
)

// ErrEnded is what those are told who wait for something to be durable when nothing will be any more.
var ErrEnded = errors.New("the run has ended")

// A Shipper is a journal that also copies what it has to where it outlives this machine.
type Shipper interface {
	// Ship returns when all batches that end at or before a position are there. Many may call it at once, beside the one
	// who calls the journal's other methods.
	Ship(ctx context.Context, upTo journal.Position) error
}

// A commitProgress is how far the group commit has come. Many wait for one commit.
type commitProgress struct {
	cuts uint64           // batches that were cut off
	done uint64           // of these, those that are durable, or had nothing in them
	at   journal.Position // behind the last of them
	over error            // why no more will be
	news chan struct{}    // closed with the next change; nil if nobody waits
}

// sequence is for the batch that has what is put now: its number.
func (c *committer) sequence() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cuts + 1
}

// advance tells those who wait what became of the last batch. It is called by the one who commits.
func (c *committer) advance(err error) {
	at := c.journal.End()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.done, c.at = c.cuts, at
	} else if c.over == nil {
		c.over = err
	}
	c.tell()
}

// end lets nobody wait any more.
func (c *committer) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over == nil {
		c.over = ErrEnded
	}
	c.tell()
}

func (c *committer) tell() {
	if c.news != nil {
		close(c.news)
		c.news = nil
	}
}

// await waits until a batch is durable, and returns the journal's position behind it, or one further on.
func (c *committer) await(ctx context.Context, sequence uint64) (journal.Position, error) {
	for {
		at, news, err := c.durableUpTo(sequence)
		if news == nil {
			return at, err
		}
		select {
		case <-news:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// durableUpTo says whether a batch is durable; if it may be later, news is closed with the next change.
func (c *committer) durableUpTo(sequence uint64) (at journal.Position, news <-chan struct{}, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done >= sequence || c.over != nil {
		if c.done < sequence {
			err = c.over
		}
		return c.at, nil, err
	}
	if c.news == nil {
		c.news = make(chan struct{})
	}
	return 0, c.news, nil
}

// waitDurable waits until a batch is durable, and where the journal is shipped, until it is there.
func (e *Engine) waitDurable(ctx context.Context, sequence uint64) error {
	at, err := e.committer.await(ctx, sequence)
	if s, ships := e.committer.journal.(Shipper); err == nil && ships {
		err = s.Ship(ctx, at)
	}
	return err
}

// FlushDurable returns when all is durable, and where the journal is shipped, there, that was put before it was called.
// What was about to be put is, too. It needs a Run to commit.
func (e *Engine) FlushDurable(ctx context.Context) error {
	return e.waitDurable(ctx, e.committer.sequence())
}
