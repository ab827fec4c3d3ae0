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

// A Member is a node's part in a crawl. It is deterministic: no clock, no I/O, randomness only from the seed in its
// Config. Its methods are called by one goroutine at a time.
type Member interface {
	// Start appends what is to be done first.
	Start(out []Action) []Action
	// Step takes the events since the last call, in order, and appends the actions it wants done, in order, to out. It
	// keeps neither slice.
	Step(now time.Time, events []Event, out []Action) []Action
	// Members are those that take part, as far as this node knows, without moves; of epoch 0 before it knows. They are
	// not to be changed.
	Members() strategy.Members
	// NewMembers is what a strategy that is no Placer is to be told of the members; false if it has been, by an earlier call.
	NewMembers() (strategy.Members, bool)
	// Exporting reports whether it is not settled what this node holds: it is about to hand over, and to forget.
	Exporting() bool
}

// A View says whose hosts are, as one node sees it at one moment. It does not change, and may be used by many
// goroutines at once.
type View interface {
	Epoch() uint64    // that the node knows of; 0 before it knows one
	IsMember() bool   // the node is one, as far as it knows
	Until() time.Time // when it stops to ask for anything, unless it hears that it may go on
	// Owner says who owns a host: to whom links to it go.
	Owner(host string) (strategy.Node, strategy.State)
	// Ours reports whether this node owns a host and has all that is known of it. It may be parked.
	Ours(host string) bool
	// MayFetch reports whether this node may send a request to a host now.
	MayFetch(host string, now time.Time) bool
}

// ErrStale is the error of a Write that expected another revision than there is.
var ErrStale = errors.New("somebody else has changed it")

// A Transfer is one node's handing over, under one epoch, of what it holds of another's.
type Transfer struct {
	From    strategy.Node // who held it: the sender, or one whose estate the sender folds
	To      strategy.Node
	Epoch   uint64
	Attempt uint64 // grows with each new beginning
}

// An Event is something that a Member is told: one of the types below.
type Event interface{ event() }

// An Action is something that a Member wants done: one of the types below.
type Action interface{ action() }

// Entry is a value of the registry that a watch has told; Value is nil if it was deleted.
type Entry struct {
	Key      string
	Value    []byte
	Revision uint64
}

// Synced says that all entries that the registry had when the watch began have been told.
type Synced struct{}

// Wrote says what became of a Write.
type Wrote struct {
	Key      string
	Revision uint64 // the new one
	Err      error  // nil, Stale, or another: then nobody knows
}

// Message has come from another node. It may have come before, late, or not be the only one.
type Message struct {
	From strategy.Node
	Data []byte
}

// Drained answers Drain.
type Drained struct{ Epoch uint64 }

// Chunk answers Read: a piece of what is To's, or, with To "", word that there is no more.
type Chunk struct {
	From    strategy.Node
	Epoch   uint64
	Attempt uint64
	To      strategy.Node
	Data    []byte
}

// Imported answers Take: the chunk is journalled, and the journal shipped.
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

// Recovered answers Fold: the estate lies ready to be read. Arrived are the transfers to the dead node that it had got
// whole since the last settled epoch.
type Recovered struct {
	Node      strategy.Node
	Received  []Transfer
	Forgotten []Transfer // Whole of all its Forgets
}

// Flushed answers Flush.
type Flushed struct{ Epoch uint64 }

// OutboxAdopted answers Release.
type OutboxAdopted struct{ Node strategy.Node }

// JoinRecorded answers Enter.
type JoinRecorded struct{}

// Leave asks the member to hand over all it has and to leave.
type Leave struct{}

// Report gives what the lease tells others of this node beside the lease itself. It goes with the next renewal.
type Report struct{ Data []byte }

// Route says whose hosts are from now on, where the strategy is no Placer.
type Route struct{ View strategy.View }

// Acknowledged answers Whole.
type Acknowledged struct{ Epoch uint64 }

// HandOver wants single hosts of this node to move to another one, by an epoch to come. Where that is none any more by
// then, they stay.
type HandOver struct {
	Hosts []string
	To    strategy.Node
}

// Tick says that time has passed: after Wake.
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

// Watch says of which keys of the registry the member wants to be told, and prefixes of keys, which end with "/". What
// becomes watched is told as it is, by an Entry for each key there is.
type Watch struct{ Keys []string }

// RecordJoin asks to note durably that this identity is a member's from now on, before it is one: if its place is lost,
// Config.Joined tells the next process so.
type RecordJoin struct{}

// Write writes a value of the registry if its revision is still the one named (0: if there is none); a nil Value
// deletes it. Wrote answers, after some seconds at most.
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

// Publish makes a view the one that workers ask, at once.
type Publish struct{ View View }

// Drain asks to be told when, under the view published last, no request is under way to some hosts, nothing of them is
// undecided, and all that the node knows of them is shipped. Only the latest Drain is answered.
type Drain struct {
	Epoch uint64
	Hosts func(host string) bool // the hosts that are meant, none of which is this node's; nil: all that are not
}

// Read asks for the next chunk of what From holds (this node, or one whose estate it has folded) and others own: Owner
// says whose a host is, "" where it stays. One pass over all that From holds serves all owners: each chunk is for one
// of them, in no order of owners. Another Attempt begins anew, and lets go of what was read for earlier ones. At most
// Config.Window chunks are asked for beyond those that were taken.
type Read struct {
	From    strategy.Node
	Epoch   uint64
	Attempt uint64
	Owner   func(host string) strategy.Node
}

// Import gives the holder a chunk of hosts that come to it, in order, to be journalled. With the last one the hosts
// become the node's own, and the holder remembers, durably, that the transfer came whole.
type Import struct {
	Transfer Transfer
	Seq      uint64
	Last     bool
	Data     []byte
}

// Drop undoes what was taken of a transfer that did not come whole: hosts that came with it are forgotten.
type Drop struct{ Transfer Transfer }

// Forget forgets those hosts of what From holds (this node, or a folded estate) that have come whole to others: Gone
// says which; nil: nothing. Where From is this node, that is durable, and so is the list of transfers that are done
// with.
type Forget struct {
	From      strategy.Node
	Epoch     uint64
	Moved     Moved
	Completed []Transfer
}

// A Gone says whether what a node holds of a host is to be forgotten. came is the last epoch, not settled, under which
// the host came to that node with a transfer that is whole or under way; 0: there is none. What came under the epoch
// under which the node handed the host over, or later, may have come after the host was read, and stays with all else
// of it. A host that is gone for one value of came is gone for all lower ones.
type Moved func(host string, came uint64) bool

// Recover makes ready what a dead node held: its log is closed, so that nothing is added to it, and read. What came to the
// dead node by transfers that did not come whole is dropped. Folded answers.
type Recover struct{ Node strategy.Node }

// CancelRecovery lets go of what Fold made ready: another node folds the estate now.
type CancelRecovery struct{ Node strategy.Node }

// Flush asks to be told when no link is left in the outbox: this node leaves, and nobody will have it then. Only the
// latest Flush is answered.
type Flush struct{ Epoch uint64 }

// AdoptOutbox ends what Fold began, once all is transferred: links in the dead node's outbox go to this node's, durably.
type AdoptOutbox struct{ Node strategy.Node }

// Finalized says that all nodes have what is theirs under an epoch: which transfers came whole need not be remembered any
// more.
type Finalized struct{ Epoch uint64 }

// Whole says that all has come to this node that comes to it under an epoch, and asks to be told, by Booked, when the
// strategy knows of it. Before, the epoch is not settled. Where the strategy is a Placer there is none.
type AllReceived struct{ Epoch uint64 }

// RetryDeferred asks for a Tick at a time; an earlier wish is replaced.
type Wake struct{ At time.Time }

// Lost says that this node's place is lost: its lease is revoked. Its state is folded by others; the process must
// forget it and begin as another node. The member does nothing more.
type Lost struct{ Why string }

// Left says that the node has handed over all it had and is out of the table. The member does nothing more.
type Left struct{}

// Failed says that this node cannot take part, in words for a person. The member does nothing more.
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
