package mesh

import (
	"time"

	"kumo/internal/base/xor"
	"kumo/internal/cluster/member/mesh/lists"
	"kumo/internal/cluster/strategy"
)

// A Hash identifies a URL among those of its host.
type Hash [14]byte

// A State is the state of a URL.
type State uint8

// The states. Each is stronger than those before: if two backups differ, the stronger one is right.
const (
	Unknown    State = iota
	Dispatched       // open: a node must fetch the URL
	Done             // it was fetched, or has failed
)

// withheld occurs in replies only: the URL is done, but the receiver must store other URLs before it may record that.
// It must query again.
const withheld = Done + 1

// Scheduled is the state of a later visit that is not due yet. Only links have it: Recorded has Unknown for a scheduled
// visit that is dispatched.
const Scheduled = withheld + 1

// A Link is a URL of a host that is named elsewhere.
type Link struct {
	Hash  Hash
	State State
	Item  []byte // in the engine's encoding; empty if the URL is done
	// Which visit to the URL the state is of: 0 for the first, and more for each later one. A later visit is stronger
	// than all states of earlier ones: these are done.
	Visit uint64
}

// isVisit reports whether two links are about the same visit.
func (k *Link) isVisit(o *Link) bool { return k.Hash == o.Hash && k.Visit == o.Visit }

// An Overlay provides the other nodes: [kumo/internal/cluster/overlay], which runs in the same goroutine.
type Overlay interface {
	// Closest returns the known live nodes closest to an id, including this node, the closest first. The result is
	// exact if the id is so near to this node that it knows all nodes around the id.
	Closest(id xor.ID, n int) (nodes []strategy.Node, exact bool)
	// Bucket returns some live nodes whose ids differ from this node's first in a bit, as xor.FirstDiff counts it. They
	// should be contacted in this order. The result is empty only if there are none.
	Bucket(index int) []strategy.Node
	// Occupied has the bits set whose buckets are not empty.
	Occupied() xor.ID
	// Neighbors returns the live nodes closest to this one, without it; one or two dozen.
	Neighbors() []strategy.Node
}

// An Event is an input of a Machine: one of the types below.
type Event interface{ event() }

// An Action is an output of a Machine, to be carried out by its caller: one of the types below.
type Action interface{ action() }

// Message is a message of another node's Machine. It may be lost, duplicated or late.
type Message struct {
	From strategy.Node
	Data []byte
}

// NeighborsChanged reports that the nodes around this one have changed.
type NeighborsChanged struct{}

// Fresh reports until when the overlay's knowledge of the nodes around holds: for a fixed time after it has contacted
// some that have answered. Before the first Fresh the overlay has not found its place, and this node has no hosts. The
// same holds after the time has passed, for example while a machine has slept: other nodes have taken its role.
type Fresh struct{ Until time.Time }

// NodeGone reports that a node no longer answers, or has left.
type NodeGone struct {
	Node strategy.Node
	Left bool
	Near bool // it was one of the nodes around this one
}

// Found answers Find. Nodes is empty if no node has answered.
type Found struct {
	ID    xor.ID
	Nodes []strategy.Node
}

// Offered passes on links that a node has found, to be claimed. Answer answers.
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

// Recorded answers Record: the links are in the history, durably.
type Recorded struct {
	ID uint64
	// The state of each link before, as seen from its visit: Done, if a later visit was known. A Done or Scheduled link
	// that replaces an earlier visit that was dispatched has Dispatched.
	Before []State
	Open   int // open URLs of the host
}

// Known answers Read. Next is the position of the rest; empty if there is none.
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

// Opened reports, when a process starts, that the history has open URLs of a host.
type Opened struct {
	Host string
	Open int
}

// Holding reports, when a process starts, that the engine has URLs of a host.
type Holding struct{ Host string }

// Enqueued answers Enqueue: the engine has the links, durably.
type Enqueued struct {
	ID   uint64
	Done []bool // of each link: it was fetched before
	// the engine has taken none: by its view the host was another node's, or it could not accept links
	Refused bool
}

// Finished reports that this node has fetched URLs of a host, or failed to, durably.
type Finished struct {
	Host   string
	Hashes []Hash
	// In a crawl with recrawls, the next visits of these URLs: Scheduled, or Done if there is none.
	Next []Link
}

// Due reports that scheduled visits of this node's history are due. Only the first backup of their host dispatches
// them, so the caller repeats it from time to time.
type Due struct {
	Host  string
	Links []Link
}

// CookiesRead answers ReadCookies. Data is empty if servers have set no cookies for the host.
type CookiesRead struct {
	ID   uint64
	Data []byte
}

// CookiesAdded answers AddCookies: requests to the host send the cookies, if they were valid.
type CookiesAdded struct {
	ID        uint64
	Postponed bool // the engine does not run yet: the sender should repeat it
}

// Released answers Release: no request to the host is in flight, all its fetched URLs were reported by Finished, and
// the engine has forgotten the host.
type Released struct {
	Host   string
	Timing Timing
}

// Unrouted reports that links to these hosts are deferred, because FirstBackup returned no node, or that node has
// refused them.
type Unrouted struct{ Hosts []string }

// Leave has the machine pass everything on to other nodes. The overlay has already announced to them that this node
// leaves.
type Leave struct{}

// Load reports the engine's load, every BalanceConfig.LoadInterval, or with StrategyPaper, after each Measure.
type Load struct {
	Waiting  int64         // URLs
	Backlog  time.Duration // see BacklogOf
	Arriving float64       // URLs per second that have arrived since the last Load
	Rate     float64       // URLs per second that are fetched, or could be if there were more
	Busy     bool          // hosts have waited for the node, not the node for hosts
}

// Spared answers Spare. Hosts is empty if no hosts can be spared.
type Spared struct {
	To      strategy.Node
	Hosts   []string
	Pending []int64 // URLs of each host; the paper's policy does not need them
}

// Change changes the crawl's record.
type Change struct{ Data []byte }

// Add adds a chunk of at most MaxChunk bytes: immutable data that all nodes need.
type Add struct{ Data []byte }

// Gather requests the sum of all nodes' reports about themselves. Gathered answers, after some seconds.
type Gather struct {
	Tag     uint64
	Reports bool // with the nodes' own reports, as far as there is room
}

// Locate requests a host's nodes. Located answers.
type Locate struct {
	Tag  uint64
	Host string
}

// AtRisk reports that lists of pages at risk have grown, durably, on this node's disk. Safe answers when the node's
// keepers have them, too.
type AtRisk struct {
	ID    uint64
	Lists []RiskList
}

// A RiskList is a record file's list of pages at risk.
type RiskList struct {
	Name string // of the record file
	Size int64  // bytes
}

// Uploaded reports that record files of this node are uploaded.
type Uploaded struct{ Names []string }

// RiskRead answers ReadRisk.
type RiskRead struct {
	ID   uint64
	Data []byte
}

// RiskWritten answers WriteRisk: the piece is on the disk, durably.
type RiskWritten struct{ ID uint64 }

// Refetched answers Lost: the pages that must be fetched again are offered, durably.
type Refetched struct{ Node strategy.Node }

// Tick reports that the time of the last Wake has come.
type Tick struct{}

func (Message) event()          {}
func (NeighborsChanged) event() {}
func (Fresh) event()            {}
func (NodeGone) event()         {}
func (Found) event()            {}
func (Offered) event()          {}
func (Recorded) event()         {}
func (Known) event()            {}
func (Swept) event()            {}
func (Opened) event()           {}
func (Holding) event()          {}
func (Enqueued) event()         {}
func (Finished) event()         {}
func (Due) event()              {}
func (Released) event()         {}
func (CookiesRead) event()      {}
func (CookiesAdded) event()     {}
func (Unrouted) event()         {}
func (AtRisk) event()           {}
func (Uploaded) event()         {}
func (RiskRead) event()         {}
func (RiskWritten) event()      {}
func (Refetched) event()        {}
func (Tick) event()             {}
func (Leave) event()            {}
func (Load) event()             {}
func (Spared) event()           {}
func (Change) event()           {}
func (Add) event()              {}
func (Gather) event()           {}
func (Locate) event()           {}

// Send sends a message to a node, once.
type Send struct {
	To   strategy.Node
	Data []byte
}

// Find looks up the live nodes closest to an id, as the nodes around the id know them, without contacting the result.
// Found answers.
type Find struct {
	ID    xor.ID
	Count int
	Again bool // the last result was outdated
}

// Suspect reports to the overlay that a node does not answer.
type Suspect struct{ Node strategy.Node }

// Answer answers Offered. The links with these indexes are refused. All backups have the others, durably.
type Answer struct {
	To      strategy.Node
	Number  uint64
	Refused []int
}

// Record, Read, Sweep and Drop are for the history, which executes them in order.

// Record enters links of a host into the history, each with the stronger of its state there and its state here.
// Recorded answers.
type Record struct {
	ID    uint64
	Host  string
	Links []Link
}

// Read reads links of a host from the history, the open ones or all, from a position: "", or the Next of a Known, which
// answers.
type Read struct {
	ID     uint64
	Host   string
	From   string
	All    bool
	Hashes []Hash // if not nil: only these URLs, in any state; From and All are not set
}

// Sweep reads the names of the hosts in the history whose backup ids are in a range, some at a time, from a position:
// "", or the Next of a Swept, which answers.
type Sweep struct {
	From string
	In   lists.Range
}

// Drop deletes a host from the history: other nodes have it.
type Drop struct{ Host string }

// Enqueue passes links to the engine to fetch. Enqueued answers.
type Enqueue struct {
	ID     uint64
	Host   string
	Links  []Link
	Timing Timing // the host's, from the nodes that fetched it before; it takes effect before the links
}

// Release has the engine stop fetching a host. Released answers.
type Release struct{ Host string }

// ReadCookies reads the cookies that servers have set for a host, except secret ones. CookiesRead answers.
type ReadCookies struct {
	ID   uint64
	Host string
}

// AddCookies adds cookies that another node had for a host. The data is not trusted. CookiesAdded answers.
type AddCookies struct {
	ID   uint64
	Host string
	Data []byte
}

// Publish replaces the view that workers use, at once.
type Publish struct{ View *View }

// Routed reports that FirstBackup returns a node for some more hosts.
type Routed struct{ Hosts []string }

// Left reports that this node no longer fetches anything, and that other nodes have everything that it had.
type Left struct{}

// Spare requests hosts with so many pending URLs in all that may move to another node. Spared answers.
type Spare struct {
	To   strategy.Node
	URLs int64
	// If each host has more URLs, one with up to twice as many may move. Of hosts with few and with many URLs, the same
	// part should move: those with few may have more that are not known yet.
	AtLeastOne bool
}

// Measure requests a Load, with StrategyPaper.
type Measure struct{}

// TermsAgreed reports the terms on which the crawl's nodes agree. The caller stores them for the next process.
type TermsAgreed struct{ Terms AgreedTerms }

// TermsRefused reports that this node cannot take part in the crawl: its Terms contradict those of the others.
type TermsRefused struct{ Err error }

// Changed reports a new version of the crawl's record. The caller stores it for the next process.
type Changed struct{ Record RecordVersion }

// Added reports a new chunk. The caller stores it for the next process.
type Added struct{ Data []byte }

// Gathered answers Gather.
type Gathered struct {
	Tag   uint64
	Tally Tally
}

// Located answers Locate, from the overlay's own table or a lookup.
type Located struct {
	Tag     uint64
	Target  strategy.Node // "": no node has answered
	Backups []strategy.Node
	Exact   bool // this node knows all nodes around the host's ids, and has not looked them up
}

// Agreed reports, once, that another node has the same chunks as this one, and no newer record: the process has caught
// up with changes that the node has missed.
type Agreed struct{}

// Ended reports that all nodes are idle, under a version of the crawl's record.
type Ended struct {
	Nodes   int
	Version uint64
}

// ReadRisk, WriteRisk and DropRisk are executed in order.

// ReadRisk reads a piece of a node's list of a record file. RiskRead answers.
type ReadRisk struct {
	ID   uint64
	Node strategy.Node
	Name string
	From int64
	Most int // bytes
}

// WriteRisk appends to another node's list. RiskWritten answers.
type WriteRisk struct {
	ID   uint64
	Node strategy.Node
	Name string
	At   int64 // the list's length
	Data []byte
}

// DropRisk drops the list of a node's record file; of all its files, if Name is empty.
type DropRisk struct {
	Node strategy.Node
	Name string
}

// Safe answers AtRisk: all keepers have the pages.
type Safe struct{ ID uint64 }

// Lost reports that a node counts as lost with its disk. The caller finds out which of its record files are not
// uploaded, and offers the pages in their lists. Refetched answers.
type Lost struct{ Node strategy.Node }

// Wake requests a Tick at a time. It replaces the previous Wake.
type Wake struct{ At time.Time }

func (Send) action()         {}
func (Find) action()         {}
func (Suspect) action()      {}
func (Answer) action()       {}
func (Record) action()       {}
func (Read) action()         {}
func (Sweep) action()        {}
func (Drop) action()         {}
func (Enqueue) action()      {}
func (Release) action()      {}
func (ReadCookies) action()  {}
func (AddCookies) action()   {}
func (Publish) action()      {}
func (Routed) action()       {}
func (Wake) action()         {}
func (Left) action()         {}
func (Changed) action()      {}
func (Measure) action()      {}
func (TermsAgreed) action()  {}
func (TermsRefused) action() {}
func (Added) action()        {}
func (Gathered) action()     {}
func (Ended) action()        {}
func (Located) action()      {}
func (Agreed) action()       {}
func (Spare) action()        {}
func (ReadRisk) action()     {}
func (WriteRisk) action()    {}
func (DropRisk) action()     {}
func (Safe) action()         {}
func (Lost) action()         {}
