package inspect

import (
	"context"
	"time"

	"kumo/internal/base/stats"
)

// A Cluster is a crawl that several nodes share, as its registry has it at one time. Its fields in JSON stay what they
// are; there may be more of them one day.
type Cluster struct {
	Crawl string `json:"crawl"`
	State string `json:"state"`         // waiting, running, paused, stopping or done
	Why   string `json:"why,omitempty"` // of a stop that nobody asked for: limit
	// too few servers run: why. What is said is what those that run have known last
	Trouble string    `json:"trouble,omitempty"`
	Since   time.Time `json:"since,omitzero"`    // the state, by the clock of who changed it
	Time    time.Time `json:"time"`              // of this answer, by the clock of who asks
	Epoch   uint64    `json:"epoch"`             // one more with each change of members
	Settled bool      `json:"settled"`           // all members have all that is theirs
	Control string    `json:"control,omitempty"` // the node that is the control unit, where there is to be one
	// file all nodes; its pages are also those of nodes that have gone, and never fall
	Totals   Load                `json:"totals"`
	Gone     Gone                `json:"gone"`  // what nodes have done that have gone
	Nodes    []Node              `json:"nodes"` // by name
	Settings map[string][]string `json:"settings,omitempty"`
	Strategy string              `json:"strategy,omitempty"` // how hosts are shared; missing if no node has said it
	Gathered *Gathered           `json:"gathered,omitempty"` // where there is no centre that knows all nodes
	Changes  []Change            `json:"changes,omitempty"`  // what people have had the crawl do, the newest last
	// what has happened to the nodes, as they have it, the newest last
	Events []NodeEvent `json:"events,omitempty"`
}

// A NodeEvent is something that has happened to the nodes.
type NodeEvent struct {
	Time time.Time `json:"time"` // by the clock of the node that has noted it
	What string    `json:"what"`
}

// A Change is what somebody has had all nodes do.
type Change struct {
	Time time.Time `json:"time"` // by the clock of who did
	By   string    `json:"by,omitempty"`
	What string    `json:"what"`
}

// A ClusterSource answers for a crawl of several nodes, and has all of them do something.
type ClusterSource interface {
	Cluster(ctx context.Context) (*Cluster, error)
	Started(ctx context.Context) (settings map[string][]string, err error) // nil: the crawl was not started yet
	// BlockedAll counts what rules would leave out at all nodes that answer within a few seconds.
	BlockedAll(ctx context.Context, rules []string) (*BlockedAll, error)
	As(by string) ClusterController
	Close() error
}

// A ClusterController has all nodes do something for somebody, whose name is noted.
type ClusterController interface {
	Controller
	// Tune changes settings: those that f returns, which is told those there are and may be called again.
	Tune(ctx context.Context, f func(now map[string][]string) ([]Setting, error)) error
}

// Gathered says how sums have come about where there is no centre: the nodes have added them up, over a tree. Of many
// nodes only some are listed.
type Gathered struct {
	By      string  `json:"by"`      // the node that was asked
	Nodes   int     `json:"nodes"`   // that have answered
	Missing int     `json:"missing"` // parts of the space of ids for which nobody has answered
	Idle    int     `json:"idle"`    // nodes that have nothing to fetch
	Age     float64 `json:"age"`     // seconds since all was added up
	Took    float64 `json:"took"`    // seconds that this took: nodes have spoken at different times within
}

// Gone is what was done by nodes that are none any more: dead ones, whose hosts others have, and those that have left.
type Gone struct {
	Nodes int   `json:"nodes"`
	Pages int64 `json:"pages"`
	// file the pages, those that are fetched again: their records were lost with a node's disk
	Again int64 `json:"again,omitempty"`
}

// A Node is one of a cluster's nodes, as it has told with its lease.
type Node struct {
	Node    string    `json:"node"` // its identity: the name, "~" and its life
	Name    string    `json:"name"`
	Is      NodeRole  `json:"is"`
	Slot    int       `json:"slot"` // in the table of logical nodes; -1: none
	Age     float64   `json:"age"`  // seconds since it has told this, if its clock is right
	Clock   time.Time `json:"clock,omitzero"`
	Version string    `json:"version,omitempty"`
	Address string    `json:"address,omitempty"`
	Epoch   uint64    `json:"epoch"`       // that it knows
	Idle    bool      `json:"idle"`        // it has nothing to fetch
	Slips   int64     `json:"slips"`       // requests to whose end its lease did not last, since its start
	Moved   int64     `json:"hosts_moved"` // hosts that have come from other nodes, since its start

	// for so many seconds it has reached no host of the web, and fetches nothing
	CutOff    float64 `json:"cut_off,omitempty"`
	CutOffWhy string  `json:"cut_off_why,omitempty"` // the last error

	EndsIn   float64 `json:"ends_in_at_least,omitempty"` // seconds until what waits there is done; 0: not known
	Growth   float64 `json:"queue_growth,omitempty"`     // URLs a second that wait more; negative: less
	Forecast string  `json:"forecast,omitempty"`         // the same in words

	// for so many seconds nothing was answered though URLs wait: the kind of reason, why, and what to do
	Stalled   float64 `json:"stalled,omitempty"`
	StalledBy string  `json:"stalled_by,omitempty"`
	StallWhy  string  `json:"stall_why,omitempty"`
	StallDo   string  `json:"stall_do,omitempty"`

	Uploads *stats.Uploads `json:"uploads,omitempty"` // of its record files to a place, if they go to one

	Load
	*Facts            // where a control unit says whose hosts are
	*Peering          // where there is no centre
	Machine  *Machine `json:"machine,omitempty"` // what it has to crawl with, where the strategy asks
}

// Peering is what a node tells of itself and others where there is no centre.
type Peering struct {
	ID        string `json:"id"`        // its point in the space of ids, as hexadecimal digits
	Peers     int    `json:"peers"`     // nodes that it is connected with
	Level     int    `json:"level"`     // of load, in blocks of URLs: positive where it has too much
	Delegated int    `json:"delegated"` // hosts of its own that others fetch
	Guests    int    `json:"guests"`    // hosts of others that it fetches
	// for so many seconds it has been without other nodes, all of which it has lost
	Alone float64 `json:"alone,omitempty"`
}

// Facts are what a node tells of hosts where a control unit says whose they are.
type Facts struct {
	Leads     bool    `json:"leads"`      // it is the control unit
	TimeoutMS float64 `json:"timeout_ms"` // for a connection to a host that is tried for the first time
	Owned     int     `json:"owned"`      // hosts
	Parked    int     `json:"parked"`     // of these, those that it is not known to reach
	Unsettled int     `json:"unsettled"`  // hosts of which it does not know yet whose they are, or that it tries
	Quota     *Quota  `json:"quota,omitempty"`
}

// A Standing is what a node is to the others.
type NodeRole string

// The standings.
const (
	NodeWaiting NodeRole = "waiting" // for the start of the crawl
	NodeJoining NodeRole = "joining" // others know of it, and nothing is its own yet
	NodeMember  NodeRole = "member"
	NodeLeaving NodeRole = "leaving" // it hands over what it has
	NodeDead    NodeRole = "dead"    // others hand over what it had
	NodeLeft    NodeRole = "left"    // it has handed over all it had; its lease has not ended yet
)

// A Load is what nodes have to do, and have done.
type Load struct {
	Pages    int64   `json:"pages"`     // since the identity began, all runs
	Rate     float64 `json:"rate"`      // pages a second, over the last seconds
	Hosts    int     `json:"hosts"`     // owned, where URLs wait or are under way
	Waiting  int     `json:"waiting"`   // URLs
	Known    int     `json:"known"`     // URLs
	Outbox   int     `json:"outbox"`    // links that other nodes have yet to take
	InFlight int     `json:"in_flight"` // requests
	Lag      int64   `json:"lag"`       // bytes of the journal that are not shipped

	// Bytes that went over the bus since the process began: messages to other nodes, the shipped journal, leases and the
	// like.
	MessageBytes  int64 `json:"message_bytes"`
	ShippedBytes  int64 `json:"shipped_bytes"`
	RegistryBytes int64 `json:"registry_bytes"`
}

// Add adds another's.
func (l *Load) Add(o Load) {
	l.Pages += o.Pages
	l.Rate += o.Rate
	l.Hosts += o.Hosts
	l.Waiting += o.Waiting
	l.Known += o.Known
	l.Outbox += o.Outbox
	l.InFlight += o.InFlight
	l.Lag += o.Lag
	l.MessageBytes += o.MessageBytes
	l.ShippedBytes += o.ShippedBytes
	l.RegistryBytes += o.RegistryBytes
}
