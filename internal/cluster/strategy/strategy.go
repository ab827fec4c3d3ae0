// Package strategy defines the interface of strategies, which decide which node crawls which host.
//
// A strategy is a pure state machine: it receives events and returns actions. Clock, network, disk and randomness are
// its caller's. So the same code runs over a real bus (kumo/internal/app/node) and in virtual time
// (kumo/internal/lab/sim).
package strategy

import (
	"strings"
	"time"
)

// A Node is the identity of a member of a crawl for as long as it has its state: the name given by the user, "~", and
// an id that distinguishes its lives under that name. A node that lost its state or was declared dead returns as
// another Node.
type Node string

// Name returns the name given by the user.
func (n Node) Name() string {
	if i := strings.LastIndexByte(string(n), '~'); i >= 0 {
		return string(n[:i])
	}
	return string(n)
}

// A Member is a node that takes part in a crawl.
type Member struct {
	Node Node `json:"node"`
	Slot int  `json:"slot"` // number in the table of logical nodes, unique; -1: none
}

// A State is the state of a host's ownership, as far as this node knows.
type State uint8

// Ownership states.
const (
	Unknown State = iota // no owner yet, or the owner is unknown; links to the host wait
	Owned                // the named node owns the host
	Parked               // the named node owns the host but may not reach it, and sends it no requests for now
)

// A View is a snapshot of a strategy's decisions. It is immutable and safe for concurrent use.
type View interface {
	// Owner returns the owner of a host. It is called for every link and before every request, so it must not allocate
	// memory or do I/O.
	Owner(host string) (Node, State)
}

// A Strategy decides which node crawls which host. It is deterministic: no clock, no I/O, randomness only from the seed
// in its Config. It is not safe for concurrent use.
type Strategy interface {
	// Step applies the events since the last call, in order, and appends the resulting actions, in order, to out. It
	// retains neither slice.
	Step(now time.Time, in []Event, out []Action) []Action
	// View returns the current decisions.
	View() View
}

// Status is the status of a strategy and its node, for users.
type Status struct {
	Controller Node          // node that decides, if known
	Leads      bool          // this node is the controller
	Timeout    time.Duration // of a connection to a host that is tried for the first time
	MinTimeout time.Duration // bounds within which Timeout adapts to the load
	MaxTimeout time.Duration
	Requests   int64 // requests and answers about hosts that this node has handled as the controller
	Owned      int   // hosts
	Parked     int   // hosts that it owns but may not reach
	Unsettled  int   // hosts whose owner is not settled

	Quota *Quota // nil: none, or unknown
}

// A Quota is the work assigned to a node, with a prediction of its duration.
type Quota struct {
	Given     int64         // URLs assigned in this crawl by the current leader
	Done      int64         // pages fetched since
	Left      int64         // URLs left to fetch
	Predicted time.Duration // time until these are done
	Error     float64       // mean of |true - predicted| / true of its last predictions; negative: unknown
	Basis     string        // of the predictions: nothing, mean, pace, learnt
}

// A StatusReporter is a strategy with a status. The method is called by the same goroutine as the others.
type StatusReporter interface{ Status() Status }

// A Placer is a strategy whose decisions depend only on the list of members. So every node computes them by itself.
type Placer interface {
	Strategy
	// Place returns the view for a list of members, which is sorted by Node and not retained.
	Place(members []Member) View
	// Minimal reports whether a change of members moves hosts only to joining nodes and from departed ones.
	Minimal() bool
}

// A Move is the move of one host between two nodes that both stay members.
type Move struct {
	Host string
	From Node
	To   Node
}

// An Event is an input of a strategy: one of the types below.
type Event interface{ event() }

// An Action is an output of a strategy: one of the types below.
type Action interface{ action() }

// Members is the current list of members. Epochs increase; skipped lists are not sent later. The list is repeated when
// the epoch is settled: all nodes have received the hosts it gives them, and nothing is left of departed nodes.
type Members struct {
	Epoch   uint64
	Settled uint64   // last settled epoch
	Members []Member // sorted by Node
	Moves   []Move   // since Settled, as far as known: this node's own, and a few of other nodes
}

// OwnersNeeded reports hosts to which links wait, because View has no owner for them, or the owner in View refuses the
// links.
type OwnersNeeded struct {
	Hosts []string
	Links []int // links to fetch for each host; nil: not counted
}

// Held reports hosts of which this node holds pending or known URLs, though View did not contain it as their owner at
// that time. They have arrived from another node, or a Survey has found them.
type Held struct{ Hosts []string }

// Surveyed reports that all results of a Survey were sent.
type Surveyed struct{}

// TransfersComplete reports that this node has received everything that an epoch gives it, and that Held has reported
// it. Acknowledged answers.
type TransfersComplete struct{ Epoch uint64 }

// ProbeResult is the result of a Probe.
type ProbeResult struct {
	Host    string
	OK      bool          // connected
	Connect time.Duration // time to connect, or until the failure
	Network string        // name of the address's network, if known; hosts of a network are near each other
}

// Message is a message from another node's strategy. It may be lost, duplicated or delayed.
type Message struct {
	From Node
	Data []byte
}

// Persisted answers Persist.
type Persisted struct {
	ID     uint64
	Number uint64 // of the entry
	State  Persistence
}

// A Persistence is the outcome of a Persist.
type Persistence uint8

// Outcomes of a Persist.
const (
	Durable Persistence = iota // the entry is in the log, on a quorum of servers
	Stale                      // it is not: After was not the last entry
	InDoubt                    // unknown: the entry may be in the log, or may yet arrive
)

// LogEntry is an entry of the log that Read requested.
type LogEntry struct {
	Number uint64
	Data   []byte
}

// LogEnd reports the end of the entries that the log had at the time of Read.
type LogEnd struct{ Last uint64 } // number of the last entry; 0: empty

// Fired reports that a timer has expired.
type Fired struct{ Timer uint64 }

// Load is a node's current work, and its progress.
type Load struct {
	Node     Node
	Hosts    int     // with pending URLs or a fetch in progress
	Pending  int64   // URLs
	Fetching int     // URLs in progress that Pending does not include, and pages not yet durable
	Rate     float64 // pages per second
	Busy     float64 // share of its workers that are busy, 0 to 1
	Paused   bool    // the crawl is paused

	Pages    int64         // fetched by this process, and durable
	Enqueued int64         // new URLs that this process has received from outboxes, including its own
	Bytes    int64         // received from servers
	CPU      time.Duration // CPU time used
	Machine  Machine
}

// QueueTime returns the time until the queue is empty; 0: unknown.
func (l *Load) QueueTime() time.Duration {
	if l.Rate <= 0 {
		return 0
	}
	return time.Duration(min(float64(l.Pending)/l.Rate, 1e9) * float64(time.Second))
}

// HasShortQueue reports whether the node will need more work within a time.
func (l *Load) HasShortQueue(within time.Duration) bool {
	return !l.Paused && l.Rate > 0 && l.Pending+int64(l.Fetching) > 0 && l.QueueTime() < within
}

// A Machine is a node's hardware. Zero means unknown.
type Machine struct {
	Cores       float64 // CPUs available to the node; may be below 1 with a CPU limit
	GHz         float64
	MemoryGB    float64
	NetworkMbps float64 // megabits per second
	DiskMbps    float64 // megabits per second
}

// UserData is data that the user supplied with the crawl for the strategy, the same on all nodes. It is sent to each
// new process, and after changes.
type UserData struct{ Data []byte }

// QueueList answers ListQueues: hosts of this node with pending URLs, the longest queues first.
type QueueList struct{ Queues []Queue }

// Joining is the list of all nodes that wait to become members: they have waited for the crawl's start and have not
// withdrawn. Some may already be members or dead.
type Joining struct{ Nodes []Node }

// A Queue is a host with pending URLs.
type Queue struct {
	Host    string
	Pending int           // URLs
	Busy    bool          // a fetch is in progress; the host can move when it has ended
	Delay   time.Duration // least time between two requests
}

func (Members) event()           {}
func (OwnersNeeded) event()      {}
func (Held) event()              {}
func (Surveyed) event()          {}
func (TransfersComplete) event() {}
func (ProbeResult) event()       {}
func (Message) event()           {}
func (Persisted) event()         {}
func (LogEntry) event()          {}
func (LogEnd) event()            {}
func (Fired) event()             {}
func (Load) event()              {}
func (QueueList) event()         {}
func (Joining) event()           {}
func (UserData) event()          {}

// Send sends a message to a node's strategy, once and without confirmation.
type Send struct {
	To   Node
	Data []byte
}

// Persist appends an entry to the strategy's log, which all nodes share, if its last entry has the number After (0: the
// log is empty). Persisted reports the outcome; later actions may run before. So a node that has not read all entries
// cannot write.
type Persist struct {
	ID    uint64
	After uint64
	Data  []byte
}

// Read requests the entries of the log with numbers above After. Each arrives as a LogEntry, then follows LogEnd.
type Read struct{ After uint64 }

// Trim removes the log's entries before a number, which are no longer needed.
type Trim struct{ Before uint64 }

// ViewChanged reports that View returns a new view.
type ViewChanged struct{}

// Survey requests the hosts that this node holds and that View does not contain as its own. Held reports them, then
// Surveyed.
type Survey struct{}

// Acknowledged answers TransfersComplete: the strategy has processed everything that arrived. The epoch is not settled
// before.
type Acknowledged struct{ Epoch uint64 }

// HandOver moves single hosts of this node with all their state to another one, in a later epoch, whose Members
// contains them. If the receiver is no longer a member, nothing happens.
type HandOver struct {
	Hosts []string
	To    Node
}

// Probe tests whether a host can be reached, by opening and closing a connection. ProbeResult answers.
type Probe struct {
	Host    string
	Timeout time.Duration
}

// ListQueues requests a QueueList of up to Limit hosts of this node, those with the longest queues, so that some can
// move to another node. It is not repeated before the answer.
type ListQueues struct{ Limit int }

// Timer requests Fired at a time. Setting a timer again moves it.
type Timer struct {
	Timer uint64
	At    time.Time
}

func (Send) action()         {}
func (Persist) action()      {}
func (Read) action()         {}
func (Trim) action()         {}
func (ViewChanged) action()  {}
func (Survey) action()       {}
func (Acknowledged) action() {}
func (HandOver) action()     {}
func (Probe) action()        {}
func (ListQueues) action()   {}
func (Timer) action()        {}
