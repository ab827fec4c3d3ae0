// Package journal defines the interface of journals, logs from which the state of a node can be rebuilt.
//
// The engine defines the content of a batch. A journal stores each batch whole and in order. Once Append has returned,
// a batch is durable until it is dropped because a checkpoint contains its effects.
package journal

import (
	"context"
	"errors"
)

// A Position is a place between two batches: how much was appended before it, in all runs together. 0 is the beginning.
type Position uint64

// ErrDropped is a replay from before what the journal still has.
var ErrDropped = errors.New("the journal no longer goes back so far")

// A Journal keeps batches. Its methods are called by one goroutine at a time.
type Journal interface {
	// Append adds one batch and returns when it is durable. After an error nothing more may be appended: the batch may be
	// there in part, and opening the journal again cuts that part off. An empty batch is none.
	Append(batch []byte) error
	// End is the position after the last batch.
	End() Position
	// Replay calls f with every batch behind from, oldest first, and the position after it; f must not keep the slice. It
	// is called before the first Append.
	Replay(from Position, f func(batch []byte, end Position) error) error
	// Drop lets go of batches that end at or before a position. It may keep some of them: where they share a file with
	// later ones.
	Drop(before Position) error
	Close() error
}

// A Shipped journal is also in a log that outlives this machine. These methods may be called by many goroutines at
// once, beside the others.
type Shipped interface {
	Journal
	// Ship returns when all batches that end at or before a position are in the log.
	Ship(ctx context.Context, upTo Position) error
	// Trim lets go of what the log has before a position; it may keep some. Kept is about how many bytes that are.
	Trim(ctx context.Context, before Position) error
	Trimmable(before Position) int64
	// CheckOwner returns nil if the log is still this one's: nobody has closed it for good, removed or taken it.
	CheckOwner(ctx context.Context) error
	// Start is where the log begins: more than 0 once it was trimmed, by whichever process.
	Start(ctx context.Context) (Position, error)
}

// Discard is the journal of a crawl that does not outlive its process.
var Discard Journal = discard{}

type discard struct{}

func (discard) Append([]byte) error                                 { return nil }
func (discard) End() Position                                       { return 0 }
func (discard) Replay(Position, func([]byte, Position) error) error { return nil }
func (discard) Drop(Position) error                                 { return nil }
func (discard) Close() error                                        { return nil }
