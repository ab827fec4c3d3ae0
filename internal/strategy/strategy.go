// Package strategy is the family of the ways to decide who crawls what. A strategy is a pure state machine: it is told what
// happened and answers with what to do; clock, network, disk and randomness are its caller's. So the same code runs over a real
// bus (kumo/internal/node) and in virtual time (kumo/internal/sim).
package strategy

import (
	"io"
	"time"
)

// A Node is the identity of one member of a crawl for as long as it has its state: the name that a person gave it, "~", and what
// tells apart the lives it has had under that name. A node that lost its state, or was given up for dead, comes back as another.
type Node string

// Name is the name that a person gave the node.
func (n Node) Name() string {
	for i := len(n) - 1; i >= 0; i-- {
		if n[i] == '~' {
			return string(n[:i])
		}
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
	Unknown State = iota // nobody owns the key yet, or it is not known who does: what belongs to it waits
	Owned                // the node named owns it
)

// A View is what a strategy has decided, at one moment. It does not change, and may be used by many goroutines at once.
type View interface {
	// Owner says who owns a host. It is asked for every link and before every request: it allocates nothing and does no I/O.
	Owner(host string) (Node, State)
}

// A Strategy decides who crawls what. It is deterministic: no clock, no I/O, randomness only from the seed in its Config.
// Its methods are called by one goroutine at a time.
type Strategy interface {
	// Step takes the events since the last call, in order, and appends the actions it wants done, in order, to out. It
	// keeps neither slice.
	Step(now time.Time, in []Event, out []Action) []Action
	// View is what is decided now.
	View() View
	// Snapshot writes what Restore needs to make the strategy what it is. A strategy whose state follows from the events that
	// a new process is told anyway writes nothing.
	Snapshot(w io.Writer) error
	Restore(r io.Reader) error
}

// A Placer is a strategy whose decision follows from the list of members alone, so that every node computes it and nobody has to
// be asked.
type Placer interface {
	Strategy
	// Place returns the view for a list of members, which is sorted by Node and is not kept.
	Place(members []Member) View
	// Minimal reports whether a change of members moves hosts only to those that came and from those that went.
	Minimal() bool
}

// An Event is something that a strategy is told: one of the types below.
type Event interface{ event() }

// An Action is something that a strategy wants done: one of the types below.
type Action interface{ action() }

// Members says who takes part, from now on. Epochs grow; a list that was skipped does not come later.
type Members struct {
	Epoch   uint64
	Members []Member // sorted by Node
}

// Wanted says that links to these hosts wait, and that View does not know their owners.
type Wanted struct{ Hosts []string }

// Reached says how a host answered to this node.
type Reached struct {
	Host    string
	OK      bool          // a connection was made
	Connect time.Duration // how long that took, or was waited for
}

// Message is what another node's strategy has sent. It may be lost, come twice, or late.
type Message struct {
	From Node
	Data []byte
}

// Persisted says that what a Persist asked for is durable.
type Persisted struct{ ID uint64 }

// Fired says that a timer's time has come.
type Fired struct{ Timer uint64 }

// Load says how much a node has to do, and what it has come to since the last one.
type Load struct {
	Node    Node
	Waiting int64   // URLs
	Rate    float64 // pages a second
	Busy    float64 // share of its places that are at work, 0 to 1
}

func (Members) event()   {}
func (Wanted) event()    {}
func (Reached) event()   {}
func (Message) event()   {}
func (Persisted) event() {}
func (Fired) event()     {}
func (Load) event()      {}

// Send sends a message to a node's strategy, once; nobody says whether it came.
type Send struct {
	To   Node
	Data []byte
}

// Persist makes data durable, and that it is so is told by Persisted. What follows in the same answer may be done before.
type Persist struct {
	ID   uint64
	Data []byte
}

// Changed says that View is another one now.
type Changed struct{}

// HandOver moves single hosts of this node to another one, with all that is known of them.
type HandOver struct {
	Hosts []string
	To    Node
}

// Timer asks for Fired at a time. A timer that is set again is moved.
type Timer struct {
	Timer uint64
	At    time.Time
}

// ConnectTimeout changes how long this node waits for a connection.
type ConnectTimeout struct{ Timeout time.Duration }

func (Send) action()           {}
func (Persist) action()        {}
func (Changed) action()        {}
func (HandOver) action()       {}
func (Timer) action()          {}
func (ConnectTimeout) action() {}
