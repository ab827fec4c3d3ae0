package mesh

import (
	"time"

	"kumo/internal/base/xor"
	"kumo/internal/cluster/strategy"
)

// A Hash stands for a URL, among those of its host.
type Hash [14]byte

// A State says what is known of a URL.
type State uint8

// The states, each of which is stronger than those before: where two backups differ the stronger one is true.
const (
	Unknown    State = iota // nothing
	Dispatched              // somebody is to fetch it
	Done                    // it was fetched, or given up
)

// withheld is of replies alone: done, but others are to be told of something first. Ask again.
const withheld = Done + 1

// A Link is a URL of which its host is known from elsewhere.
type Link struct {
	Hash  Hash
	State State
	Item  []byte // as the engine writes it; empty where the URL is done
}

// An Overlay knows the other nodes: [kumo/internal/cluster/overlay] in its turn, which is told and asked by the same goroutine.
type Overlay interface {
	// Closest are the live nodes closest to an id as far as they are known, this node among them, the closest first. They
	// are exact where the id lies so near to this node that it knows all nodes around it.
	Closest(id xor.ID, n int) (nodes []strategy.Node, exact bool)
	// Bucket are live nodes whose ids differ from this node's first in the bit of an index, as xor.FirstDiff has it, some
	// of them, those first that are to be asked first. It is empty only where there are none.
	Bucket(index int) []strategy.Node
	// Occupied has those bits set whose buckets are not empty.
	Occupied() xor.ID
	// Neighbours are the live nodes closest to this one, without it; a dozen or two.
	Neighbours() []strategy.Node
}

// An Event is something that a Machine is told: one of the types below.
type Event interface{ event() }

// An Action is something that a Machine wants done: one of the types below.
type Action interface{ action() }

// Message is what another node's Machine has sent. It may be lost, come twice, or late.
type Message struct {
	From strategy.Node
	Data []byte
}

// Neighbours says that the nodes around this one are others now.
type Neighbours struct{}

// Fresh says until when what the overlay knows of the nodes around holds, unless it is told again: so long after the
// moment when some that have answered were asked. Before the first the overlay has not found its place yet, and nothing
// is this node's; nor is anything when the time is over, as after a machine has slept: others have taken its part.
type Fresh struct{ Until time.Time }

// Gone says that a node does not answer any more, or has said that it leaves.
type Gone struct {
	Node strategy.Node
	Left bool
	Near bool // it was one of the nodes around this one
}

// Found answers Find; Nodes is empty where nobody answered.
type Found struct {
	ID    xor.ID
	Nodes []strategy.Node
}

// Offered are links that a node has found, of one host each or several of one: they are to be claimed. Answer answers.
type Offered struct {
	From   strategy.Node
	Number uint64 // of the batch
	Links  []HostLink
}

// A HostLink is a link with its host.
type HostLink struct {
	Host string
	Link
}

// Recorded answers Record: it is in the history for good.
type Recorded struct {
	ID     uint64
	Before []State // of each link
	Open   int     // URLs of the host that are dispatched and not done
}

// Known answers Read. Next is where the rest begins, empty if there is none.
type Known struct {
	ID    uint64
	Links []Link
	Next  string
}

// Swept answers Sweep.
type Swept struct {
	Hosts []string
	Next  string
}

// Opened says, when a process begins, that the history has URLs of a host that are dispatched and not done.
type Opened struct {
	Host string
	Open int
}

// Holding says, when a process begins, that the engine has something of a host.
type Holding struct{ Host string }

// Taken answers Take: the engine has the links for good.
type Taken struct {
	ID   uint64
	Done []bool // of each link: it was fetched before
	// the engine has taken none: by the view that it asked the host was another node's, or it could not for now
	Refused bool
}

// Finished says that this node has fetched URLs of a host, or given them up, and that this is durable.
type Finished struct {
	Host   string
	Hashes []Hash
}

// Released answers Release: no request to the host is under way, all that was Finished was told, and the engine has
// forgotten the host.
type Released struct {
	Host   string
	Timing Timing
}

// Wanted says that links to these hosts wait, because First did not know to whom they go, or they were refused.
type Wanted struct{ Hosts []string }

// Leave asks the machine to give all it has to others. The overlay has told them that this node is none any more.
type Leave struct{}

// Load says what the engine has to do: every Config.Interval.
type Load struct {
	Waiting  int64   // URLs
	Arriving float64 // URLs a second that have come since the last one
	Rate     float64 // and that are fetched, or could be where there is less to do
	Busy     bool    // hosts have waited for the node, rather than the node for hosts
}

// Spared answers Spare. Where no host can be spared there are none.
type Spared struct {
	To    strategy.Node
	Hosts []string
}

// Change wants the crawl's record changed.
type Change struct{ Data []byte }

// Add adds a chunk, of MaxChunk bytes at most: see chunks.go.
type Add struct{ Data []byte }

// Gather wants to know what all nodes say of themselves: Gathered answers, after some seconds.
type Gather struct {
	Tag     uint64
	Reports bool // with what each node says of itself, as far as there is room
}

// Locate wants to know which nodes are a host's: Located answers.
type Locate struct {
	Tag  uint64
	Host string
}

// AtRisk says that lists of pages at risk have grown, on this node's disk, durably: Safe answers when its keepers have
// them, too.
type AtRisk struct {
	ID    uint64
	Lists []RiskList
}

// A RiskList is a record file's list of pages at risk, and how long it is.
type RiskList struct {
	Name string // of the record file
	Size int64
}

// Placed says that record files of this node are in the place.
type Placed struct{ Names []string }

// RiskRead answers ReadRisk.
type RiskRead struct {
	ID   uint64
	Data []byte
}

// RiskWritten answers WriteRisk: it is on the disk for good.
type RiskWritten struct{ ID uint64 }

// Refetched answers Lost: what is to be fetched again is offered, durably.
type Refetched struct{ Node strategy.Node }

// Tick says that time has passed: after Wake.
type Tick struct{}

func (Message) event()     {}
func (Neighbours) event()  {}
func (Fresh) event()       {}
func (Gone) event()        {}
func (Found) event()       {}
func (Offered) event()     {}
func (Recorded) event()    {}
func (Known) event()       {}
func (Swept) event()       {}
func (Opened) event()      {}
func (Holding) event()     {}
func (Taken) event()       {}
func (Finished) event()    {}
func (Released) event()    {}
func (Wanted) event()      {}
func (AtRisk) event()      {}
func (Placed) event()      {}
func (RiskRead) event()    {}
func (RiskWritten) event() {}
func (Refetched) event()   {}
func (Tick) event()        {}
func (Leave) event()       {}
func (Load) event()        {}
func (Spared) event()      {}
func (Change) event()      {}
func (Add) event()         {}
func (Gather) event()      {}
func (Locate) event()      {}

// Send sends a message to a node, once.
type Send struct {
	To   strategy.Node
	Data []byte
}

// Find looks for the live nodes closest to an id, as the nodes around it know them: they are not asked.
type Find struct {
	ID   xor.ID
	Want int
	Anew bool // what was found before has turned out to be no more so
}

// Doubt says that a node does not answer, which the overlay may not know yet.
type Doubt struct{ Node strategy.Node }

// Answer answers Offered: the links of these numbers are refused, the others are known for good, by as many backups as
// there are.
type Answer struct {
	To      strategy.Node
	Number  uint64
	Refused []int
}

// Record, Read, Sweep and Drop are the history's, which does them in the order in which they are asked for.

// Record enters links of a host into the history, each with the stronger of its state there and its state here.
type Record struct {
	ID    uint64
	Host  string
	Links []Link
}

// Read asks for what the history has of a host, from where a Known ended; "" from the first: what is dispatched and not
// done, or all.
type Read struct {
	ID   uint64
	Host string
	From string
	All  bool
}

// Sweep asks for the names of all hosts in the history, some at a time, from where a Swept ended.
type Sweep struct{ From string }

// Drop takes a host out of the history: others keep it.
type Drop struct{ Host string }

// Take gives links to the engine: they are this node's to fetch.
type Take struct {
	ID     uint64
	Host   string
	Links  []Link
	Timing Timing // the host's, as who fetched it before has left it; counts before the links
}

// Release asks the engine to give a host up: see Released.
type Release struct{ Host string }

// Publish makes a view the one that workers ask, at once.
type Publish struct{ View *View }

// Routed says that First has come to know some hosts.
type Routed struct{ Hosts []string }

// Left says that this node fetches nothing any more, and that others know all that it knew.
type Left struct{}

// Spare asks which hosts may go to another node, of which so many URLs wait in all.
type Spare struct {
	To   strategy.Node
	URLs int64
}

// Changed says that the crawl's record is another now. It is to be kept for the next process.
type Changed struct{ Record RecordVersion }

// Added says that a chunk is known that was not. It is to be kept for the next process.
type Added struct{ Data []byte }

// Gathered answers Gather.
type Gathered struct {
	Tag   uint64
	Tally Tally
}

// Located answers Locate, as far as the overlay knows, or has found out.
type Located struct {
	Tag     uint64
	Target  strategy.Node // "": nobody has answered
	Backups []strategy.Node
	Exact   bool // this node knows all nodes around the host's places, and has not asked for them
}

// Agreed says, once, that another node knows the same chunks as this one, and no newer record: what was missed by a
// process that begins it has heard of.
type Agreed struct{}

// Ended says that all nodes have nothing to do, nor anything on its way, under a version of the crawl's record.
type Ended struct {
	Nodes   int
	Version uint64
}

// ReadRisk, WriteRisk and DropRisk are done in the order in which they are asked for.

// ReadRisk reads of a node's list of a record file.
type ReadRisk struct {
	ID   uint64
	Node strategy.Node
	Name string
	From int64
	Most int // bytes
}

// WriteRisk writes to the end of another node's list, which is so long.
type WriteRisk struct {
	ID   uint64
	Node strategy.Node
	Name string
	At   int64
	Data []byte
}

// DropRisk drops the list of a node's record file; of all of them, if none is named.
type DropRisk struct {
	Node strategy.Node
	Name string
}

// Safe answers AtRisk.
type Safe struct{ ID uint64 }

// Lost says that a node counts as lost with its disk: which of its record files are not in its place is to be found
// out, and the pages in the lists of these are to be offered. Refetched answers.
type Lost struct{ Node strategy.Node }

// Wake asks for a Tick at a time, sooner or later than it was asked for before.
type Wake struct{ At time.Time }

func (Send) action()      {}
func (Find) action()      {}
func (Doubt) action()     {}
func (Answer) action()    {}
func (Record) action()    {}
func (Read) action()      {}
func (Sweep) action()     {}
func (Drop) action()      {}
func (Take) action()      {}
func (Release) action()   {}
func (Publish) action()   {}
func (Routed) action()    {}
func (Wake) action()      {}
func (Left) action()      {}
func (Changed) action()   {}
func (Added) action()     {}
func (Gathered) action()  {}
func (Ended) action()     {}
func (Located) action()   {}
func (Agreed) action()    {}
func (Spare) action()     {}
func (ReadRisk) action()  {}
func (WriteRisk) action() {}
func (DropRisk) action()  {}
func (Safe) action()      {}
func (Lost) action()      {}
