// Package journal defines the interface of journals, logs from which the state of a node can be rebuilt.
//
// The engine defines the content of a batch. A journal stores each batch whole and in order. Once Append has returned,
// a batch is durable until it is dropped because a checkpoint contains its effects.
package journal

import (
	"context"
	"errors"
)

// A Position is a position between two batches: the size of everything appended before it in all runs. 0 is the
// beginning.
type Position uint64

// ErrDropped is returned by a replay from a position that was dropped.
var ErrDropped = errors.New("the journal no longer goes back that far")

// A Journal stores batches. Its methods must not be called concurrently.
type Journal interface {
	// Append appends one batch and returns when it is durable. After an error nothing more may be appended: the batch
	// may be stored in part, and opening the journal again truncates that part. An empty batch is ignored.
	Append(batch []byte) error
	// End returns the position after the last batch.
	End() Position
	// Replay calls f with every batch after from, oldest first, and the position after the batch. f must not retain the
	// slice. Replay is called before the first Append.
	Replay(from Position, f func(batch []byte, end Position) error) error
	// Drop drops batches that end at or before a position. It may keep some of them, if they share a file with later
	// ones.
	Drop(before Position) error
	Close() error
}

// A Shipped journal is also stored in a log that survives this machine. These methods may be called concurrently with
// each other and with the others.
type Shipped interface {
	Journal
	// Ship returns when the log contains all batches that end at or before a position.
	Ship(ctx context.Context, upTo Position) error
	// Trim drops the log's data before a position. It may keep some. Trimmable returns about how many bytes it would
	// drop.
	Trim(ctx context.Context, before Position) error
	Trimmable(before Position) int64
	// CheckOwner returns nil if this journal still owns the log: nobody has sealed, removed or opened it since.
	CheckOwner(ctx context.Context) error
	// Start returns the position at which the log starts. It is more than 0 after a trim by any process.
	Start(ctx context.Context) (Position, error)
}

// Discard is the journal of a crawl without persistent state.
var Discard Journal = discard{}

type discard struct{}

func (discard) Append([]byte) error                                 { return nil }
func (discard) End() Position                                       { return 0 }
func (discard) Replay(Position, func([]byte, Position) error) error { return nil }
func (discard) Drop(Position) error                                 { return nil }
func (discard) Close() error                                        { return nil }
