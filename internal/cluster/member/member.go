// Package member defines cluster membership: the interface, events and actions that all implementations share.
//
// Membership decides which nodes take part, which nodes have lost their membership, how hosts move between nodes, and
// how the state of a dead node is recovered. A [Member] is a pure state machine, like a strategy: it receives events
// and returns actions. Package quorum implements membership by a registry that changes by compare-and-set. Package
// driver executes the actions.
//
// The package also contains the outbox of links to other nodes' hosts, which needs no membership.
package member

import (
	"errors"
	"time"

	"kumo/internal/cluster/strategy"
)

// A Member is one node's membership state machine. It is deterministic: no clock, no I/O, randomness only from the seed
// in its Config. Its methods are called by one goroutine at a time.
type Member interface {
	// Start appends the first actions.
	Start(out []Action) []Action
	// Step processes the events since the last call, in order, and appends the resulting actions, in order, to out. It
	// keeps neither slice.
	Step(now time.Time, events []Event, out []Action) []Action
	// Members returns the members that this node knows, without moves; their epoch is 0 before the node knows any. The
	// caller must not change them.
	Members() strategy.Members
	// NewMembers returns the members to report to a strategy that is no Placer; false if an earlier call returned them.
	NewMembers() (strategy.Members, bool)
	// Exporting reports whether the set of hosts that this node holds is about to change: it is going to transfer hosts
	// and to forget them.
	Exporting() bool
}

// A View contains the owners of hosts as one node knows them at one moment. It is immutable and safe for concurrent
// use.
type View interface {
	Epoch() uint64    // last epoch that the node knows; 0 before it knows one
	IsMember() bool   // the node is a member, as far as it knows
	Until() time.Time // the node sends no requests after this time, unless its lease is renewed
	// Owner returns the owner of a host: the node to which links to it are sent.
	Owner(host string) (strategy.Node, strategy.State)
	// Ours reports whether this node owns a host and holds its whole state. The host may be parked.
	Ours(host string) bool
	// MayFetch reports whether this node may send a request to a host now.
	MayFetch(host string, now time.Time) bool
}

// ErrStale is the error of a Write that expected another revision than the current one.
var ErrStale = errors.New("changed by another writer")

// A Transfer is the transfer, under one epoch, of the hosts that one node holds and another owns.
type Transfer struct {
	From    strategy.Node // the node that held the hosts: the sender, or a dead node that the sender has recovered
	To      strategy.Node
	Epoch   uint64
	Attempt uint64 // increases with each restart of the transfer
}

// An Event is an input of a Member: one of the types below.
type Event interface{ event() }

// An Action is an output of a Member: one of the types below.
type Action interface{ action() }

// Entry is a registry value that a watch has read; Value is nil if the key was deleted.
type Entry struct {
	Key      string
	Value    []byte
	Revision uint64
}

// Synced reports that the watch has passed on all entries that the registry had when the watch began.
type Synced struct{}

// Wrote is the result of a Write.
type Wrote struct {
	Key      string
	Revision uint64 // the new revision
	Err      error  // nil, ErrStale, or another error: then the write may have succeeded or not
}

// Message is a message from another node. It may be duplicated or late.
type Message struct {
	From strategy.Node
	Data []byte
}

// Drained answers Drain.
type Drained struct{ Epoch uint64 }

// Chunk answers Read. It contains some hosts that To owns. An empty To marks the end.
type Chunk struct {
	From    strategy.Node
	Epoch   uint64
	Attempt uint64
	To      strategy.Node
	Data    []byte
}

// Imported answers Import: the chunk is in the journal, and the journal is shipped.
type Imported struct {
	Transfer Transfer
	Seq      uint64
}

// Dropped answers Drop.
type Dropped struct{ Transfer Transfer }

// Forgotten answers Forget.
type Forgotten struct {
	From  strategy.Node
	Epoch uint64
}

// Recovered answers Recover: the dead node's state is ready to be read. Received lists the complete transfers to the
// dead node since the last finalized epoch.
type Recovered struct {
	Node      strategy.Node
	Received  []Transfer
	Forgotten []Transfer // the Completed lists of all Forgets of the dead node
}

// Flushed answers Flush.
type Flushed struct{ Epoch uint64 }

// OutboxAdopted answers AdoptOutbox.
type OutboxAdopted struct{ Node strategy.Node }

// JoinRecorded answers RecordJoin.
type JoinRecorded struct{}

// Leave has the member hand over all its hosts and leave.
type Leave struct{}

// Report is this node's status for other nodes. It is written with the next renewal of the lease.
type Report struct{ Data []byte }

// Route sets the owners of hosts, if the strategy is no Placer.
type Route struct{ View strategy.View }

// Acknowledged answers AllReceived.
type Acknowledged struct{ Epoch uint64 }

// HandOver requests to move single hosts of this node to another one, under a later epoch. The hosts stay if the target
// is no longer a member by then.
type HandOver struct {
	Hosts []string
	To    strategy.Node
}

// Tick reports that the time of the last Wake has come.
type Tick struct{}

func (Entry) event()         {}
func (Synced) event()        {}
func (Wrote) event()         {}
func (Message) event()       {}
func (Drained) event()       {}
func (Chunk) event()         {}
func (Imported) event()      {}
func (Dropped) event()       {}
func (Forgotten) event()     {}
func (Recovered) event()     {}
func (Flushed) event()       {}
func (OutboxAdopted) event() {}
func (JoinRecorded) event()  {}
func (Leave) event()         {}
func (Report) event()        {}
func (Route) event()         {}
func (Acknowledged) event()  {}
func (HandOver) event()      {}
func (Tick) event()          {}

// Watch sets the registry keys that the member watches. A key that ends with "/" is a prefix. An Entry reports the
// current value of each newly watched key.
type Watch struct{ Keys []string }

// RecordJoin durably records that this identity is about to become a member. If it loses its membership, the next
// process learns that from Config.Joined.
type RecordJoin struct{}

// Write writes a registry value if its revision is still Revision (0: the key does not exist). A nil Value deletes the
// key. Wrote answers within seconds.
type Write struct {
	Key      string
	Value    []byte
	Revision uint64
}

// Send sends a message to a node, once.
type Send struct {
	To   strategy.Node
	Data []byte
}

// Publish immediately replaces the view that workers query.
type Publish struct{ View View }

// Drain waits until, under the last published view, no request to some hosts is in flight, and everything known of them
// is decided and shipped. Only the latest Drain is answered.
type Drain struct {
	Epoch uint64
	Hosts func(host string) bool // the hosts to wait for, all owned by other nodes; nil: all hosts of other nodes
}

// Read requests the next chunk of the hosts that From holds and others own. From is this node, or a dead node that it
// has recovered. Owner returns a host's owner; "" for a host that stays.
//
// One pass over From's hosts serves all owners: each chunk is for one of them, in no order of owners. Another Attempt
// starts the pass again and drops what earlier attempts have read. At most Timing.Window chunks are requested and not
// yet imported.
type Read struct {
	From    strategy.Node
	Epoch   uint64
	Attempt uint64
	Owner   func(host string) strategy.Node
}

// Import passes a chunk of a transfer to the holder, in order, to be journaled. With the last chunk the hosts become
// the node's own, and the holder durably records that the transfer is complete.
type Import struct {
	Transfer Transfer
	Seq      uint64
	Last     bool
	Data     []byte
}

// Drop undoes an incomplete transfer: it forgets the hosts that came with it.
type Drop struct{ Transfer Transfer }

// Forget forgets the hosts of From (this node or a recovered one) that other nodes have received completely. Moved
// selects them; nil selects none. If From is this node, this is durable, and so is the list of completed transfers.
type Forget struct {
	From      strategy.Node
	Epoch     uint64
	Moved     Moved
	Completed []Transfer
}

// Moved reports whether the state of a host has moved to another node and must be forgotten. came is the last epoch,
// not yet finalized, under which a complete or current transfer brought the host to the node; 0 if there is none. State
// that arrived under the epoch of the move, or later, may be newer than the sent state, so the host stays. If a host
// has moved for one value of came, it has moved for all lower values.
type Moved func(host string, came uint64) bool

// Recover prepares a dead node's state: it seals the node's log, reads it, and drops incomplete transfers to that node.
// Recovered answers.
type Recover struct{ Node strategy.Node }

// CancelRecovery discards recovered state: another node has become the takeover node.
type CancelRecovery struct{ Node strategy.Node }

// Flush waits until the outbox is empty, before this node leaves and its outbox is lost. Only the latest Flush is
// answered.
type Flush struct{ Epoch uint64 }

// AdoptOutbox ends a takeover once all hosts are transferred: links in the dead node's outbox move durably to this
// node's.
type AdoptOutbox struct{ Node strategy.Node }

// Finalized reports that all nodes have their hosts under an epoch. The records of its complete transfers can be
// dropped.
type Finalized struct{ Epoch uint64 }

// AllReceived reports to the strategy that all transfers to this node under an epoch are complete. The epoch is not
// final before Acknowledged answers. It is not used with a Placer.
type AllReceived struct{ Epoch uint64 }

// Wake requests a Tick at a time. It replaces the previous Wake.
type Wake struct{ At time.Time }

// Lost reports that this node has lost its membership: its lease is revoked. Other nodes recover its state; the process
// must delete its copy and join as another node. The member does nothing more.
type Lost struct{ Why string }

// Left reports that the node has handed over all its hosts and is removed from the table. The member does nothing more.
type Left struct{}

// Failed reports why this node cannot take part. The member does nothing more.
type Failed struct{ Err error }

func (Watch) action()          {}
func (RecordJoin) action()     {}
func (CancelRecovery) action() {}
func (Write) action()          {}
func (Send) action()           {}
func (Publish) action()        {}
func (Drain) action()          {}
func (Read) action()           {}
func (Import) action()         {}
func (Drop) action()           {}
func (Forget) action()         {}
func (Recover) action()        {}
func (Flush) action()          {}
func (AdoptOutbox) action()    {}
func (Finalized) action()      {}
func (AllReceived) action()    {}
func (Wake) action()           {}
func (Lost) action()           {}
func (Left) action()           {}
func (Failed) action()         {}
