package driver

import (
	"context"
	"time"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
)

// An Engine holds a node's part of the crawl. Its methods are safe for concurrent use.
type Engine interface {
	Links
	Holder
	Strategist
	Idle() bool      // nothing is pending, in progress, undecided, or bound for other nodes
	Received() int64 // number of times that it received something
}

// Links is the engine's side of the exchange of links. Batches and Answered are those of [member.Outbox].
type Links interface {
	TakeLinks(ctx context.Context, data []byte) (refused []int, err error)
	AdoptLinks(ctx context.Context, data []byte) error // adopts the links that a dead node had for other nodes
	Batches(now time.Time, owner func(host string) (strategy.Node, bool)) []member.Batch
	Answered(from strategy.Node, batch uint64, refused []int, now time.Time)
	Outbox() (links int, bytes int64)
}

// A Holder holds the state of hosts. Except for Import, its methods return when their effect is durable and shipped.
// Calls for one transfer are sequential.
type Holder interface {
	// Drain waits until no request is in flight to some hosts that are not this node's (nil: to any of those), and all
	// their state is shipped.
	Drain(ctx context.Context, of func(host string) bool) error
	// Export starts to read the state of hosts that have another owner. owner returns "" for a host that stays.
	Export(owner func(host string) strategy.Node) (Export, error)
	// Import receives a chunk. The function that it returns waits until the chunk is durable and shipped; it runs
	// concurrently with the next Import.
	Import(ctx context.Context, t member.Transfer, seq uint64, last bool,
		data []byte) (durable func(context.Context) error,
		err error)
	Drop(ctx context.Context, t member.Transfer) error
	// Forget forgets the hosts that have moved (nil: none), and records the transfers that are completed.
	Forget(ctx context.Context, gone member.Moved, whole []member.Transfer) error
	FinalizeEpoch(ctx context.Context, epoch uint64) error
}

// An Export is one pass over the state of hosts. It is not safe for concurrent use.
type Export interface {
	// Next returns the next chunk and the node it is for; "" at the end.
	Next() (to strategy.Node, data []byte, err error)
	Close() error
}

// FailedNodes gives access to the state of dead nodes.
type FailedNodes interface {
	// Recover seals a dead node's log, and reads it.
	Recover(ctx context.Context, dead strategy.Node) (FailedState, error)
	// DeleteLog deletes the log of a dead node whose state is transferred. It is called again after an error.
	DeleteLog(ctx context.Context, dead strategy.Node) error
}

// A FailedState is the state of a dead node.
type FailedState interface {
	Received() []member.Transfer  // complete transfers to the node since the last finalized epoch
	Forgotten() []member.Transfer // complete transfers from the node since then, whose hosts it has forgotten
	Forget(gone member.Moved)     // excludes hosts from later exports
	Export(owner func(host string) strategy.Node) (Export, error)
	// OutboxLinks calls f with the links that the node had for others, in batches for AdoptLinks.
	OutboxLinks(f func(data []byte) error) error
	Close() error // discards the state
}

// A Strategist is the engine's side of strategies that assign hosts one by one.
type Strategist interface {
	// Probe opens and closes a connection to a host. It returns how long that took, and the network of the host, if
	// known.
	Probe(ctx context.Context, host string, timeout time.Duration) (connect time.Duration, network string, err error)
	// Survey calls f with the hosts that the engine has state of and does not own, some at a time.
	Survey(ctx context.Context, f func(hosts []string) error) error
	// Queues returns the hosts with the longest queues, at most so many, the longest first.
	Queues(ctx context.Context, most int) ([]strategy.Queue, error)
	// Busy returns the hosts that have a request in flight, each with a function that waits until the request has
	// ended.
	Busy(hosts []string) map[string]func(context.Context) error
	// Unrouted returns the hosts of links that had no known owner, or were refused, since the last call, and how many
	// links are deferred for each.
	Unrouted() (hosts []string, links []int)
	RetryDeferred(hosts []string) // routes the deferred links to these hosts; nil: to all
}

// A Record is the node's handling of the crawl's record, as far as the crawl's end depends on it.
type Record interface {
	Seeded() (revision uint64, ok bool) // the record's revision, if the crawl runs and each seed was admitted by a node
	Idle() bool                         // the crawl runs, and this node has no seeds to admit
	Received() int64                    // number of times that it had seeds to admit
	Admitting() bool                    // seeds are being admitted; any goroutine may call it
	// Finish returns a function that marks the crawl as done in the record, unless the record has changed since the
	// given revision.
	Finish(revision uint64) (write func(context.Context))
}
