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
	// ErrStale is returned by a write that expected another state than the current one.
	ErrStale = errors.New("changed by another writer")
	// ErrUnavailable is returned if no quorum could be reached in time. A write may have succeeded or not.
	ErrUnavailable = errors.New("the cluster's registry cannot be reached")
	// ErrTooLarge is returned for a message, value or entry of more than MaxData bytes.
	ErrTooLarge = errors.New("too large for the bus")
	// ErrClosed is returned by calls after Close, and by calls that Close interrupts.
	ErrClosed = errors.New("the bus is closed")
)

// MaxData is the maximum size of a message, a value or a log entry, in bytes.
const MaxData = 4 << 20

// A Bus connects the nodes of a crawl that share servers. Its methods are safe for concurrent use.
type Bus interface {
	Messenger
	Registry
	Logs
}

// A Messenger exchanges messages with the other nodes of the crawl. Its methods are safe for concurrent use.
type Messenger interface {
	// Send sends a message to a node, without waiting for its arrival. Messages may be lost, duplicated or reordered.
	// Send does not keep data.
	Send(to strategy.Node, data []byte) error
	// Receive calls f with each message to this node, one at a time, until ctx ends or the bus is closed, and returns
	// ctx's error or ErrClosed. f must not keep data. Receive is called once.
	Receive(ctx context.Context, f func(from strategy.Node, data []byte)) error
	// Close interrupts blocked calls; later calls return ErrClosed. It may be called again.
	Close() error
}

// An Entry is a value of the registry. Revisions increase with each write to the registry, and are never 0.
type Entry struct {
	Key      string
	Value    []byte // nil: deleted
	Revision uint64
}

// A Registry stores small values by key. Writes are linearizable. A watcher may see old values, but it sees the states
// of a key in their order, and eventually the latest. CheckKey defines valid keys.
type Registry interface {
	// Put writes a value if the key's revision is still rev; 0: if the key does not exist or was deleted. It returns
	// the new revision. After ErrUnavailable the value may have been written, or may be written later. Put does not
	// keep value.
	Put(ctx context.Context, key string, value []byte, rev uint64) (uint64, error)
	// Delete deletes a key under the same condition.
	Delete(ctx context.Context, key string, rev uint64) error
	// Get returns the latest value that a quorum has; a zero Entry if there is none.
	Get(ctx context.Context, key string) (Entry, error)
	// Watch calls f with the current values of keys (see Covers), perhaps after earlier states of some, then with a zero
	// Entry, then with each change, until ctx ends or the bus is closed. It returns ctx's error or ErrClosed. After a
	// lost connection it continues once there is a new one, and may repeat values. f must not block for long or change a
	// value.
	Watch(ctx context.Context, keys string, f func(Entry)) error
}

// Logs are append-only sequences of entries by name. An entry is durable on a quorum of servers when Append returns.
// The numbers of entries increase within a log, from more than 0, but not always by one. Names of logs are valid keys.
type Logs interface {
	// Append adds an entry if the log's last one still has the number after (0: the log is empty), and returns the new
	// entry's number. After ErrUnavailable the entry may have been added, or may be added later. A caller that retries
	// calls Last first, and gets ErrStale if the first attempt succeeds after all.
	Append(ctx context.Context, log string, data []byte, after uint64) (uint64, error)
	// Last returns the number and the data of the log's last entry; 0 and nil if the log is empty.
	Last(ctx context.Context, log string) (uint64, []byte, error)
	// Read calls f with the entries of a log whose numbers are greater than after, in order, up to the entry that is
	// the last when Read begins. f must not keep data. Read stops at an error of f and returns it. It may pass on any
	// of the entries that Trim was asked to drop.
	Read(ctx context.Context, log string, after uint64, f func(number uint64, data []byte) error) error
	// Trim drops entries of a log whose numbers are less than before: any number of them, but never the last entry, so
	// Append and Last are not affected. After ErrUnavailable they may have been dropped, or may be dropped later. It
	// can be repeated.
	Trim(ctx context.Context, log string, before uint64) error
	// Drop deletes a log.
	Drop(ctx context.Context, log string) error
}
