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

// A Node is the identity of one member of a crawl for as long as it has its state: the name that a person gave it, "~",
// and what tells apart the lives it has had under that name. A node that lost its state, or was given up for dead,
// comes back as another.
type Node string

// Name is the name that a person gave the node.
func (n Node) Name() string {
	if i := strings.LastIndexByte(string(n), '~'); i >= 0 {
		return string(n[:i])
	}
	return string(n)
}

// A Member is a node that takes part in a crawl.
type Member struct {
	Node Node `json:"node"`
	Slot int  `json:"slot"` // its place in the table of logical nodes, no two alike; -1: none
}

// A State says how far an ownership is settled, as far as the one who is asked knows.
type State uint8

// The states.
const (
	Unknown State = iota // nobody owns the host yet, or it is not known who does: what belongs to it waits
	Owned                // the node named owns it
	Parked               // the node named owns it, and asks nothing of it for now: it is not known to reach it
)

// A View is what a strategy has decided, at one moment. It does not change, and may be used by many goroutines at once.
type View interface {
	// Owner says who owns a host. It is asked for every link and before every request: it allocates nothing and does no
	// I/O.
	Owner(host string) (Node, State)
}

// A Strategy decides who crawls what. It is deterministic: no clock, no I/O, randomness only from the seed in its
// Config. Its methods are called by one goroutine at a time.
type Strategy interface {
	// Step takes the events since the last call, in order, and appends the actions it wants done, in order, to out. It
	// keeps neither slice.
	Step(now time.Time, in []Event, out []Action) []Action
	// View is what is decided now.
	View() View
}

// Status are what a strategy tells people of itself and its node.
type Status struct {
	Controller Node          // who decides, as far as this node knows
	Leads      bool          // this node does
	Timeout    time.Duration // for a connection to a host that is tried for the first time
	Owned      int           // hosts
	Parked     int           // of these, those that the node is not known to reach
	Unsettled  int           // hosts of which it is not settled whose they are

	Quota *Quota // nil: the strategy gives none, or none is known
}

// A Quota is what a node was given to fetch, and how long that is to take.
type Quota struct {
	Given     int64         // URLs, in this crawl, by the leader of now
	Done      int64         // pages that it has fetched since
	Left      int64         // URLs that it has to fetch
	Predicted time.Duration // until it is done with them
	Error     float64       // of its last predictions: mean of |true - predicted| / true; negative: none is known
	Basis     string        // what they rest on: nothing, mean, pace, learnt
}

// A Teller is a strategy that has facts to tell. The method is called as the others are.
type StatusReporter interface{ Status() Status }

// A Placer is a strategy whose decision follows from the list of members alone, so that every node computes it and
// nobody has to be asked.
type Placer interface {
	Strategy
	// Place returns the view for a list of members, which is sorted by Node and is not kept.
	Place(members []Member) View
	// Minimal reports whether a change of members moves hosts only to those that came and from those that went.
	Minimal() bool
}

// A Move is one host that goes from one node to another, though both stay.
type Move struct {
	Host string
	From Node
	To   Node
}

// An Event is something that a strategy is told: one of the types below.
type Event interface{ event() }

// An Action is something that a strategy wants done: one of the types below.
type Action interface{ action() }

// Members says who takes part, from now on. Epochs grow; a list that was skipped does not come later. It is told again
// when the epoch is settled: all have what is theirs under it, and of those who went nothing is left.
type Members struct {
	Epoch   uint64
	Settled uint64   // the last epoch that was
	Members []Member // sorted by Node
	Moves   []Move   // since Settled, as far as this node knows: its own, and a few of others'
}

// OwnersNeeded says that links to these hosts wait: View does not know their owners, or those whom it names refuse the links.
type OwnersNeeded struct {
	Hosts []string
	Links []int // how many wait for each that are to be fetched; nil: they were not counted
}

// Held says that this node holds these hosts, URLs that wait or are known, though View did not name it as their owner
// when that was looked at: they have come from another node, or a Survey has found them.
type Held struct{ Hosts []string }

// Surveyed says that all has been told that a Survey has found.
type Surveyed struct{}

// TransfersComplete says that all has come to this node that comes to it under an epoch, and that Held has told of it. Acknowledged
// answers.
type TransfersComplete struct{ Epoch uint64 }

// ProbeResult says how a host answered to this node, as Probe has asked.
type ProbeResult struct {
	Host    string
	OK      bool          // a connection was made
	Connect time.Duration // how long that took, or was waited for
	Network string        // its address's, in some words, as far as it was found: hosts of one network are near each other
}

// Message is what another node's strategy has sent. It may be lost, come twice, or late.
type Message struct {
	From Node
	Data []byte
}

// Persisted answers Persist.
type Persisted struct {
	ID     uint64
	Number uint64 // the entry's
	State  Persistence
}

// A Persistence says what became of a Persist.
type Persistence uint8

// What may become of it.
const (
	Durable Persistence = iota // it is in the log, on a quorum of servers
	Stale                      // it is not: the log's last entry is another
	InDoubt                    // nobody knows: it may be there, or may yet come
)

// LogEntry is an entry of the log, as Read has asked.
type LogEntry struct {
	Number uint64
	Data   []byte
}

// LogEnd says that all has been told that the log had when Read was asked for.
type LogEnd struct{ Last uint64 } // number of its last entry; 0: it is empty

// Fired says that a timer's time has come.
type Fired struct{ Timer uint64 }

// Load says how much a node has to do, and what it has come to since the last one.
type Load struct {
	Node     Node
	Hosts    int     // where something waits or is under way
	Pending  int64   // URLs
	Fetching int     // URLs under way, where Waiting does not count them, and pages that are not durable yet
	Rate     float64 // pages a second
	Busy     float64 // share of its places that are at work, 0 to 1
	Paused   bool    // it fetches nothing, as nobody is to

	Pages    int64         // fetched by this process, and durable
	Enqueued int64         // URLs that this process has taken from outboxes, its own among them, and that were news
	Bytes    int64         // that it has read from servers
	CPU      time.Duration // that it has used
	Machine  Machine
}

// A Machine is what a node has to crawl with. Zero means unknown.
type Machine struct {
	Cores       float64 // CPUs that it may use; a fraction if it is limited to less than one
	GHz         float64
	MemoryGB    float64
	NetworkMbps float64 // megabits a second
	DiskMbps    float64 // megabits a second
}

// UserData is what a person has given the strategy, with the crawl: the same on all nodes. It is told again when it has
// changed, and to each new process.
type UserData struct{ Data []byte }

// QueueList answers Spare: hosts of this node where URLs wait, those with the longest queues first.
type QueueList struct{ Queues []Queue }

// Joining says which nodes are about to be members, all of them: they have waited for the crawl's start, and have not
// said that they do not come. It may name some that are members already, and some that have died.
type Joining struct{ Nodes []Node }

// A Queue is a host where URLs wait.
type Queue struct {
	Host    string
	Pending int  // URLs
	Busy    bool // a request to it is under way: it moves when that has ended
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

// Send sends a message to a node's strategy, once; nobody says whether it came.
type Send struct {
	To   Node
	Data []byte
}

// Persist adds an entry to the strategy's log, which all nodes share, if the last one there has the number After (0: it
// is empty). What became of that is told by Persisted, and what follows in the same answer may be done before. So who
// has not read all that others have written can write nothing.
type Persist struct {
	ID    uint64
	After uint64
	Data  []byte
}

// Read asks for the log's entries whose numbers are greater than After: each is told by Logged, the end by LogEnd.
type Read struct{ After uint64 }

// Trim drops the log's entries before a number; they are not needed any more.
type Trim struct{ Before uint64 }

// ViewChanged says that View is another one now.
type ViewChanged struct{}

// Survey asks to be told, by Held and then Surveyed, of hosts that this node holds and that View does not name as its
// own.
type Survey struct{}

// Acknowledged answers Whole: the strategy knows of all that has come. Before, the epoch is not settled.
type Acknowledged struct{ Epoch uint64 }

// HandOver moves single hosts of this node to another one, with all that is known of them: by an epoch to come, as
// Members will say. Where that cannot be done, because the node is none any more, nothing is.
type HandOver struct {
	Hosts []string
	To    Node
}

// Probe asks whether a host can be reached: a connection is made and closed, and nothing asked. Reached answers.
type Probe struct {
	Host    string
	Timeout time.Duration
}

// ListQueues asks to be told, by Spared, of so many hosts of this node, those with the longest queues, so that some may go
// to another node. It is not asked for again before it is answered.
type ListQueues struct{ Limit int }

// Timer asks for Fired at a time. A timer that is set again is moved.
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
