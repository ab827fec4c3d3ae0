// Package bus defines the interfaces for communication between the nodes of a crawl.
//
// A [Messenger] sends messages, which may be lost. A [Bus] also has a registry of small values that change by
// compare-and-set, and logs that survive the node that wrote them. Only nodes that share servers have a Bus.
package bus

import (
	"context"
	"errors"

	"kumo/internal/cluster/strategy"
)

var (
	// ErrStale is a write that expected another state than there is: somebody else has written.
	ErrStale = errors.New("somebody else has changed it")
	// ErrUnavailable is a write or read of which nobody knows whether it was done: no quorum could be reached in time.
	ErrUnavailable = errors.New("the cluster's registry cannot be reached")
	// ErrTooLarge is a message, value or entry beyond MaxData.
	ErrTooLarge = errors.New("too large for the bus")
	// ErrClosed is a call to a bus after its Close, or what ends a call that waits.
	ErrClosed = errors.New("the bus is closed")
)

// MaxData is how many bytes a message, a value or a log's entry may have.
const MaxData = 4 << 20

// A Bus is all that the nodes of a crawl with servers need. Its methods may be called by many goroutines at once.
type Bus interface {
	Messenger
	Registry
	Logs
}

// A Messenger carries messages from one node to the others of its crawl, and back. Its methods may be called by many
// goroutines at once.
type Messenger interface {
	// Send sends a message to a node. It does not wait for it to arrive; messages may be lost, come twice, or in another
	// order. data is not kept.
	Send(to strategy.Node, data []byte) error
	// Receive calls f with each message that comes for this node, one at a time, until ctx ends or the bus is closed, and
	// returns ctx's error or ErrClosed. f must not keep data. It is called once.
	Receive(ctx context.Context, f func(from strategy.Node, data []byte)) error
	// Close ends what waits; what is called afterwards returns ErrClosed. It may be called again.
	Close() error
}

// An Entry is a value of the registry. Revisions grow with each write to the registry, and are never 0.
type Entry struct {
	Key      string
	Value    []byte // nil: deleted
	Revision uint64
}

// A Registry keeps small values by key. Writes are linearizable; what a watcher sees may be old, but for each key it
// sees the states in their order, the latest of them in the end. CheckKey says what a key may be.
type Registry interface {
	// Put writes a value if the key's revision is still rev; 0: if there is none, or it was deleted. It returns the new
	// revision. After ErrUnavailable the value may have been written, or may yet be. value is not kept.
	Put(ctx context.Context, key string, value []byte, rev uint64) (uint64, error)
	// Delete removes a key in the same way.
	Delete(ctx context.Context, key string, rev uint64) error
	// Get returns the latest value that a quorum has; a zero Entry if there is none.
	Get(ctx context.Context, key string) (Entry, error)
	// Watch calls f with the present values of all keys that begin with prefix, perhaps after earlier states of some,
	// then with a zero Entry, then with each change, until ctx ends or the bus is closed, and returns ctx's error or
	// ErrClosed. Where the connection was lost in between, it goes on once there is one again, and values may be told
	// again. f must not block for long, nor change a value.
	Watch(ctx context.Context, prefix string, f func(Entry)) error
}

// Logs are append-only sequences of entries by name, durable on a quorum of servers when Append returns. Numbers of
// entries grow within a log, from more than 0, and not always by one. Names of logs are as keys are.
type Logs interface {
	// Append adds an entry if the log's last one is still number after (0: it is empty), and returns the new entry's
	// number. After ErrUnavailable the entry may be there, or may yet come: who tries again asks Last first, and gets
	// ErrStale where the first try won after all.
	Append(ctx context.Context, log string, data []byte, after uint64) (uint64, error)
	// Last returns the number of the log's last entry and the entry; 0 and nil if it is empty.
	Last(ctx context.Context, log string) (uint64, []byte, error)
	// Read calls f with the entries of a log whose numbers are greater than after, in order, up to the one that is last
	// when it begins. f must not keep data. An error of f ends it and is returned. Of what Trim was asked to drop it may
	// tell any part.
	Read(ctx context.Context, log string, after uint64, f func(number uint64, data []byte) error) error
	// Trim drops entries of a log whose numbers are less than before: as many as it likes, but never the last one, so that
	// for Append and Last nothing is changed. After ErrUnavailable they may have been dropped, or may yet be. It can be
	// done again.
	Trim(ctx context.Context, log string, before uint64) error
	// Drop removes a log.
	Drop(ctx context.Context, log string) error
}
