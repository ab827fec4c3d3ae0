package overlay

import (
	"time"

	"kumo/internal/base/xor"
)

// An Event is something that an Overlay is told: one of the types below.
type Event interface{ event() }

// An Action is something that an Overlay wants done: one of the types below.
type Action interface{ action() }

// Join asks to become part of the network by way of these nodes; without any, to be its first node. It may be told
// again, with others.
type Join struct{ Contacts []Contact }

// Message is what another node has sent. It may be lost, come twice, or late. That From.Node has sent it is proved; its
// addresses are where the transport would reach it.
type Message struct {
	From Contact
	Data []byte // not kept
}

// Fired says that the timer's time has come.
type Fired struct{}

// Find asks for the live nodes closest to an id, Want of them (Config.K at most). Found answers, once. If
// Config.LookUps are under way it does so at once, by what the table has.
type Find struct {
	ID   xor.ID
	Tag  uint64 // the caller's, to know the answer by
	Want int
	// The word of a node that it knows them all is enough: they are not asked whether they live. It is for a caller that
	// is to ask them something itself, and looks again if they do not answer. Nodes are asked one after the other, more
	// at a time only where some do not answer. What was told for another id not long ago may do.
	AcceptReported bool
	SkipCache      bool // what was told for another id does not do: it has turned out to be no more so
}

// Lost says that the connection to a node has failed, or that none could be made: questions that it has not answered
// count as failed.
type Lost struct{ Node string }

// Suspect says that a node has not answered what the caller has asked it itself. If it is in the table it is asked
// whether it lives: of a contact that is no neighbour that would show only after Config.Check.
type Suspect struct{ Node string }

// Leave says that the node is about to go. It says farewell, and answers nothing else from then on. It is none of those
// that are found or known to be the closest, and goes on to know and to find others for who still needs them.
type Leave struct{}

func (Join) event()    {}
func (Message) event() {}
func (Fired) event()   {}
func (Find) event()    {}
func (Lost) event()    {}
func (Suspect) event() {}
func (Leave) event()   {}

// Send sends a message to a node, once; nobody says whether it came.
type Send struct {
	To   Contact
	Data []byte
}

// Timer asks for Fired at a time. There is one timer; set again, it is moved.
type Timer struct{ At time.Time }

// Found answers Find. The contacts have answered, or were told, the closest first; this node may be one of them.
type Found struct {
	Tag     uint64
	Closest []Contact
	// a node has said that it knows all nodes as close to the id as these. What it cannot know is who came or died in
	// the last seconds
	Exact bool
}

// Joined says that a contact has come into the table: it has answered.
type Joined struct{ Contact Contact }

// Removed says that a contact has left the table.
type Removed struct {
	Node string
	ID   xor.ID
	Dead bool // it did not answer any more, or said farewell; false: others have its place
	Left bool // it said farewell
	Near bool // it was a neighbour
}

// Fresh says until when what the node knows of the nodes around it holds: so long, no node that would take its place
// can have taken it for dead. It is said again and again; before the first time the node has not found its place. When
// the time is over, after a machine has slept, say, others may have taken it.
type Fresh struct{ Until time.Time }

// Refused says that a message was none of this package's, or exceeds its bounds. It had no effect.
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
