package driver

import (
	"context"
	"time"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
)

// An Engine is what holds a node's part of the crawl. Its methods may be called by many goroutines at once.
type Engine interface {
	Links
	Holder
	Strategist
	Idle() bool      // nothing waits, is under way, is undecided, or is bound for others
	Received() int64 // how often something was brought to it
}

// Links is the engine's part in the exchange of links. Batches and Answered are as a [member.Outbox] has them.
type Links interface {
	TakeLinks(ctx context.Context, data []byte) (refused []int, err error)
	AdoptLinks(ctx context.Context, data []byte) error // takes over links that a dead node had for others
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
	// Import takes a chunk in. What it returns waits until the chunk is durable and shipped, beside the next Take.
	Import(
		ctx context.Context,
		t member.Transfer,
		seq uint64,
		last bool,
		data []byte,
	) (durable func(context.Context) error,
		err error)
	Drop(ctx context.Context, t member.Transfer) error
	// Forget forgets the hosts that are gone (nil: none), and notes which transfers are done with.
	Forget(ctx context.Context, gone member.Moved, whole []member.Transfer) error
	FinalizeEpoch(ctx context.Context, epoch uint64) error
}

// An Export is one reading of what is held. One goroutine uses it.
type Export interface {
	// Next returns the next piece, and whose it is; "" if there is no more.
	Next() (to strategy.Node, data []byte, err error)
	Close() error
}

// FailedNodes makes what dead nodes have left ready to be read.
type FailedNodes interface {
	// Recover seals a dead node's log, and reads it.
	Recover(ctx context.Context, dead strategy.Node) (FailedState, error)
	// DeleteLog removes the log of a node whose state is done with. After an error it is called again.
	DeleteLog(ctx context.Context, dead strategy.Node) error
}

// A FailedState is what a dead node held.
type FailedState interface {
	Received() []member.Transfer  // that had come whole to it since the last settled epoch
	Forgotten() []member.Transfer // that it was done with since then
	Forget(gone member.Moved)     // leaves hosts out of what is exported from now on
	Export(owner func(host string) strategy.Node) (Export, error)
	OutboxLinks(
		f func(data []byte) error,
	) error // gives the links that it had for others, in batches that Inherit understands
	Close() error // removes it
}

// A Strategist is the engine's part in strategies that decide host by host.
type Strategist interface {
	// Probe makes a connection to a host and closes it, and says how long that took, and in which network the host is, if
	// that is known.
	Probe(ctx context.Context, host string, timeout time.Duration) (connect time.Duration, network string, err error)
	// Survey calls f with hosts that the engine has something of and that are not its own, some at a time.
	Survey(ctx context.Context, f func(hosts []string) error) error
	// Queues are hosts where URLs wait, those with the longest queues first, so many at most.
	Queues(ctx context.Context, most int) ([]strategy.Queue, error)
	// Busy are those of some hosts to which a request is under way, each with what waits until it has ended.
	Busy(hosts []string) map[string]func(context.Context) error
	// Unrouted are hosts of links whose owners are not known, or refuse them, since it was called last, and how many links
	// wait for each.
	Unrouted() (hosts []string, links []int)
	RetryDeferred(hosts []string) // lets links be routed that rest; nil: all
}

// A Record is what a node does about the crawl's record, as far as the crawl's end depends on it.
type Record interface {
	Seeded() (revision uint64, ok bool) // the record's, if the crawl runs, and some node has taken each seed in
	Idle() bool                         // the crawl runs, and this node has nothing to take in of it
	Received() int64                    // how often it had
	Admitting() bool                    // seeds are being taken in; any goroutine may ask
	// Finish returns what says in the record that the crawl is done, unless it has changed since a revision.
	Finish(revision uint64) (write func(context.Context))
}
