package ledger

import (
	"context"
	"errors"

	"kumo/internal/state/journal"
)

// ErrEnded is returned by methods that wait for durability when the run has ended.
var ErrEnded = errors.New("the run has ended")

// A Shipper is a journal that is also copied to a place that survives this machine.
type Shipper interface {
	// Ship returns when all batches that end at or before a position are copied. It may be called concurrently with
	// itself and the journal's other methods.
	Ship(ctx context.Context, upTo journal.Position) error
}

// A commitProgress is the progress of the group commit. Several goroutines may wait for one commit.
type commitProgress struct {
	last   uint64           // batch of the entries queued last
	cuts   uint64           // number of batches closed
	done   uint64           // number of these that are durable or empty
	at     journal.Position // journal position after the last durable batch
	endErr error            // error that ended commits
	wake   chan struct{}    // closed at the next change; nil if nobody waits
}

// Sequence returns the number of the batch that entries queued now go into.
func (l *Ledger) Sequence() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cuts + 1
}

// IsDurable reports whether all queued entries are durable.
func (l *Ledger) IsDurable() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.done >= l.last
}

// Position returns the journal position after the durable entries.
func (l *Ledger) Position() journal.Position {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.at
}

// advance records the result of the last commit and wakes the waiting goroutines. The caller holds commitMu.
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

// StopWaits ends all waits for durability, now and later.
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

// await waits until a batch is durable, and returns the journal position after it, or a later one.
func (l *Ledger) await(ctx context.Context, sequence uint64) (journal.Position, error) {
	for {
		at, wake, err := l.durableUpTo(sequence)
		if wake == nil {
			return at, err
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// durableUpTo reports whether a batch is durable: then wake is nil. Otherwise wake is closed at the next change.
func (l *Ledger) durableUpTo(sequence uint64) (at journal.Position, wake <-chan struct{}, err error) {
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

// WaitDurable waits until a batch is durable and, if the journal is shipped, shipped.
func (l *Ledger) WaitDurable(ctx context.Context, sequence uint64) error {
	at, err := l.await(ctx, sequence)
	if s, ships := l.cfg.Journal.(Shipper); err == nil && ships {
		err = s.Ship(ctx, at)
	}
	return err
}

// FlushDurable returns when everything queued before the call is durable and, if the journal is shipped, shipped. This
// includes puts that hold the gate at the time of the call. Run must be active.
func (l *Ledger) FlushDurable(ctx context.Context) error {
	return l.WaitDurable(ctx, l.Sequence())
}
