package ledger

import (
	"context"
	"errors"

	"kumo/internal/state/journal"
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
	last   uint64           // the batch that has what was put last
	cuts   uint64           // batches that were cut off
	done   uint64           // of these, those that are durable, or had nothing in them
	at     journal.Position // behind the last of them
	endErr error            // why no more will be
	wake   chan struct{}    // closed with the next change; nil if nobody waits
}

// Sequence is for the batch that has what is put now: its number.
func (l *Ledger) Sequence() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cuts + 1
}

// IsDurable reports whether all is durable that was put.
func (l *Ledger) IsDurable() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.done >= l.last
}

// Position is the journal's behind what is durable.
func (l *Ledger) Position() journal.Position {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.at
}

// advance tells those who wait what became of the last batch. It is called by the one who commits.
func (l *Ledger) advance(err error) {
	at := l.cfg.Journal.End()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.done, l.at = l.cuts, at
	} else if l.endErr == nil {
		l.endErr = err
	}
	l.notify()
}

// StopWaits lets nobody wait any more.
func (l *Ledger) StopWaits() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.endErr == nil {
		l.endErr = ErrEnded
	}
	l.notify()
}

func (l *Ledger) notify() {
	if l.wake != nil {
		close(l.wake)
		l.wake = nil
	}
}

// await waits until a batch is durable, and returns the journal's position behind it, or one further on.
func (l *Ledger) await(ctx context.Context, sequence uint64) (journal.Position, error) {
	for {
		at, news, err := l.durableUpTo(sequence)
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
func (l *Ledger) durableUpTo(sequence uint64) (at journal.Position, news <-chan struct{}, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done >= sequence || l.endErr != nil {
		if l.done < sequence {
			err = l.endErr
		}
		return l.at, nil, err
	}
	if l.wake == nil {
		l.wake = make(chan struct{})
	}
	return 0, l.wake, nil
}

// WaitDurable waits until a batch is durable, and where the journal is shipped, until it is there.
func (l *Ledger) WaitDurable(ctx context.Context, sequence uint64) error {
	at, err := l.await(ctx, sequence)
	if s, ships := l.cfg.Journal.(Shipper); err == nil && ships {
		err = s.Ship(ctx, at)
	}
	return err
}

// FlushDurable returns when all is durable, and where the journal is shipped, there, that was put before it was called.
// What was about to be put is, too. It needs Run.
func (l *Ledger) FlushDurable(ctx context.Context) error {
	return l.WaitDurable(ctx, l.Sequence())
}
