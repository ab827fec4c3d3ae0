package node

import (
	"context"
	"time"

	"kumo/internal/member"
	"kumo/internal/strategy"
	"kumo/internal/weburl"
)

// An Engine is what a node needs of a crawl.Engine that runs. Its methods may be called by many goroutines at once.
type Engine interface {
	Links
	Holder
	Strategist
	// AddSeeds takes seeds in: all into scope, and those to be fetched of whose hosts take is true. It returns when that
	// is durable.
	AddSeeds(ctx context.Context, seeds []weburl.URL, take func(host string) bool) error
	AddRoot(u weburl.URL) error // takes in scope what a seed has redirected to
	Pause(on bool)
	Interrupt()      // breaks off all requests under way
	Share(n int)     // so many nodes crawl
	Finish()         // ends the run once nothing waits
	Idle() bool      // nothing waits, is under way, is undecided, or is bound for others
	Received() int64 // how often something was brought to it
}

// Links is the engine's part in the exchange of links. Batches and Answered are as a [member.Outbox] has them.
type Links interface {
	TakeLinks(ctx context.Context, data []byte) (refused []int, err error)
	Inherit(ctx context.Context, data []byte) error // takes over links that a dead node had for others
	Batches(now time.Time, owner func(host string) (strategy.Node, bool)) []member.Batch
	Answered(from strategy.Node, batch uint64, refused []int, now time.Time)
	Outbox() (links int, bytes int64)
}

// A Holder has what is known of hosts. What it is told it has for good, and shipped, when the method returns, but for
// Take. Calls for one transfer come one after the other.
type Holder interface {
	// Drain returns when no request is under way to some hosts that are not this node's (nil: to any of those), and all
	// that is known of them is shipped.
	Drain(ctx context.Context, of func(host string) bool) error
	// Export begins to read what it has of hosts that have another owner; "" where a host stays.
	Export(owner func(host string) strategy.Node) (Export, error)
	// Take takes a chunk in. What it returns waits until the chunk is durable and shipped, beside the next Take.
	Take(ctx context.Context, t member.Transfer, seq uint64, last bool, data []byte) (durable func(context.Context) error,
		err error)
	Drop(ctx context.Context, t member.Transfer) error
	// Forget forgets the hosts that are gone (nil: none), and notes which transfers are done with.
	Forget(ctx context.Context, gone func(host string) bool, whole []member.Transfer) error
	Settled(ctx context.Context, epoch uint64) error
}

// An Export is one reading of what is held. One goroutine uses it.
type Export interface {
	// Next returns the next piece, and whose it is; "" if there is no more.
	Next() (to strategy.Node, data []byte, err error)
	Close() error
}

// FailedNodes makes what dead nodes have left ready to be read.
type FailedNodes interface {
	// Fold seals a dead node's log, and reads it.
	Recover(ctx context.Context, dead strategy.Node) (FailedState, error)
	// Bury removes the log of a node whose estate is done with.
	DeleteLog(ctx context.Context, dead strategy.Node) error
}

// An FailedState is what a dead node held.
type FailedState interface {
	Arrived() []member.Transfer // that had come whole to it since the last settled epoch
	Forgot() []member.Transfer  // that it was done with since then
	Export(owner func(host string) strategy.Node) (Export, error)
	Bound(f func(data []byte) error) error // gives the links that it had for others, in batches that Inherit understands
	Close() error                          // removes it
}
