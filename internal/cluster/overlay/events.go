package overlay

import (
	"time"

	"kumo/internal/base/xor"
)

// An Event is an input of an Overlay: one of the types below.
type Event interface{ event() }

// An Action is an output of an Overlay: one of the types below.
type Action interface{ action() }

// Join joins the network through these nodes; without any, the node is the first of a network. It may be repeated with
// other nodes.
type Join struct{ Contacts []Contact }

// Message is a message from another node. It may be lost, duplicated or delayed. The transport has authenticated
// From.Node; the addresses in From are those at which it would reach the node.
type Message struct {
	From Contact
	Data []byte // not retained
}

// Fired reports that the timer has expired.
type Fired struct{}

// Find finds the live nodes closest to an id, Want of them (at most Config.K). Found answers once. If Config.LookUps
// are in progress, it answers at once from the table.
type Find struct {
	ID   xor.ID
	Tag  uint64 // identifies the answer, for the caller
	Want int
	// accept nodes reported by a node that knows all of them, without checking that they live. This is for callers that
	// query the nodes themselves, and repeat the Find if they do not answer. The lookup queries one node at a time, and
	// more only if some do not answer. Recent reports for other ids may be used.
	AcceptReported bool
	SkipCache      bool // do not use recent reports for other ids, which have proved outdated
}

// Lost reports that the connection to a node has failed, or that none could be made. Unanswered queries to the node
// fail.
type Lost struct{ Node string }

// Suspect reports that a node did not answer the caller. If it is in the table it is pinged; otherwise a dead contact
// that is not a neighbor would be noticed only after Config.Check.
type Suspect struct{ Node string }

// Leave reports that the node is about to leave. It sends farewells and then answers all queries with a farewell.
// Results no longer contain it, but it continues to find other nodes for its caller.
type Leave struct{}

func (Join) event()    {}
func (Message) event() {}
func (Fired) event()   {}
func (Find) event()    {}
func (Lost) event()    {}
func (Suspect) event() {}
func (Leave) event()   {}

// Send sends a message to a node, once and without confirmation.
type Send struct {
	To   Contact
	Data []byte
}

// Timer requests Fired at a time. There is one timer; setting it again moves it.
type Timer struct{ At time.Time }

// Found answers Find. The contacts have answered or were reported, the closest first; this node may be one of them.
type Found struct {
	Tag     uint64
	Closest []Contact
	// a node has reported that it knows all nodes as close to the id as these. Joins and deaths of the last seconds may
	// be missing
	Exact bool
}

// Joined reports that a contact has entered the table, because it has answered.
type Joined struct{ Contact Contact }

// Removed reports that a contact has left the table.
type Removed struct {
	Node string
	ID   xor.ID
	Dead bool // it did not answer or has left; false: displaced by others
	Left bool // it has sent a farewell
	Near bool // it was a neighbor
}

// Fresh reports until when the node's knowledge of its neighborhood holds: until then, no node that would take its
// place can consider it dead. It is repeated; before the first time the node has not found its position. Afterwards,
// for instance when a machine wakes from sleep, other nodes may have taken its place.
type Fresh struct{ Until time.Time }

// Refused reports a message that was invalid or exceeded the bounds. It had no effect.
type Refused struct {
	Node string
	Err  error
}

func (Send) action()    {}
func (Timer) action()   {}
func (Found) action()   {}
func (Joined) action()  {}
func (Removed) action() {}
func (Fresh) action()   {}
func (Refused) action() {}
