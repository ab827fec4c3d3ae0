package inspect

import (
	"context"
	"strings"
	"time"

	"kumo/internal/base/stats"
)

// A Cluster is the state of a crawl of several nodes at one time. JSON members may be added, but are never changed.
type Cluster struct {
	Crawl string `json:"crawl"`
	State string `json:"state"`         // waiting, running, paused, stopping or done
	Why   string `json:"why,omitempty"` // why it stopped by itself: limit
	// Why too few servers are running; the rest is then the last known state.
	Trouble string    `json:"trouble,omitempty"`
	Since   time.Time `json:"since,omitzero"`    // time of the last state change, by the clock of its author
	Time    time.Time `json:"time"`              // of this response, by the clock of the client
	Epoch   uint64    `json:"epoch"`             // increases with each change of members
	Settled bool      `json:"settled"`           // all members have received all their hosts
	Control string    `json:"control,omitempty"` // the node that is the control unit, if the strategy has one
	// Over all nodes. The pages include those of departed nodes, and never decrease.
	Totals   Load                `json:"totals"`
	Measures *Measures           `json:"measures,omitempty"` // nil: no node fetches
	Gone     Gone                `json:"gone"`               // work of departed nodes
	Nodes    []Node              `json:"nodes"`              // by name
	Settings map[string][]string `json:"settings,omitempty"`
	Strategy string              `json:"strategy,omitempty"` // how hosts are assigned; empty if no node has reported it
	Gathered *Gathered           `json:"gathered,omitempty"` // only for a mesh crawl
	Changes  []Change            `json:"changes,omitempty"`  // user actions, newest last
	// Events that the nodes recorded, newest last.
	Events []NodeEvent `json:"events,omitempty"`
}

// A NodeEvent is an event in the life of the nodes.
type NodeEvent struct {
	Time time.Time `json:"time"` // by the clock of the node that recorded it
	What string    `json:"what"`
}

// A Change is a user's action on the crawl.
type Change struct {
	Time time.Time `json:"time"` // by the user's clock
	By   string    `json:"by,omitempty"`
	What string    `json:"what"`
}

// A ClusterSource answers queries about a crawl of several nodes, and controls it.
type ClusterSource interface {
	Cluster(ctx context.Context) (*Cluster, error)
	Started(ctx context.Context) (settings map[string][]string, err error) // nil: not started yet
	// BlockedAll counts the pending URLs that the rules would exclude, on all nodes that answer within a few seconds.
	BlockedAll(ctx context.Context, rules []string) (*BlockedAll, error)
	As(by string) ClusterController
	Close() error
}

// A ClusterController controls all nodes on behalf of a named user.
type ClusterController interface {
	Controller
	// Tune changes settings to those that f returns. f receives the current settings and may be called again.
	Tune(ctx context.Context, f func(now map[string][]string) ([]Setting, error)) error
}

// Gathered describes how the totals of a mesh crawl were computed: the nodes summed them over a tree. In a large crawl
// only some nodes are listed.
type Gathered struct {
	By      string  `json:"by"`      // the node that was asked
	Nodes   int     `json:"nodes"`   // nodes that answered
	Missing int     `json:"missing"` // parts of the ID space without an answer
	Idle    int     `json:"idle"`    // nodes with nothing to fetch
	Age     float64 `json:"age"`     // seconds since the sums were computed
	Took    float64 `json:"took"`    // seconds that computing them took; nodes reported at different times within
}

// Gone counts the work of former members: dead nodes, whose hosts others have taken over, and nodes that left.
type Gone struct {
	Nodes int   `json:"nodes"`
	Pages int64 `json:"pages"`
	// Of the pages, those that are fetched again because their records were lost with a node's disk.
	Again int64 `json:"again,omitempty"`
}

// A Node is a node of a cluster, as reported in its lease.
type Node struct {
	Node    string    `json:"node"` // its identity: the name, "~" and its incarnation
	Name    string    `json:"name"`
	Is      NodeRole  `json:"is"`
	Slot    int       `json:"slot"` // in the table of logical nodes; -1: none
	Age     float64   `json:"age"`  // seconds since the report, if the node's clock is right
	Clock   time.Time `json:"clock,omitzero"`
	Version string    `json:"version,omitempty"`
	Address string    `json:"address,omitempty"`
	Server  string    `json:"server,omitempty"`  // address of its server; empty if it runs none
	Browser string    `json:"browser,omitempty"` // program that renders pages; empty if it has none
	Epoch   uint64    `json:"epoch"`             // that the node knows
	Idle    bool      `json:"idle"`              // nothing to fetch
	Slips   int64     `json:"slips"`             // requests that outlived the lease, since the node's start
	Moved   int64     `json:"hosts_moved"`       // hosts received from other nodes, since the node's start

	// Seconds for which the node has reached no host on the web; it then fetches nothing.
	CutOff    float64 `json:"cut_off,omitempty"`
	CutOffWhy string  `json:"cut_off_why,omitempty"` // the last error

	EndsIn   float64 `json:"ends_in_at_least,omitempty"` // seconds until its queue is empty, at least; 0: unknown
	Growth   float64 `json:"queue_growth,omitempty"`     // growth of its queue in URLs per second
	Forecast string  `json:"forecast,omitempty"`         // EndsIn and Growth in words

	// Seconds without any response although URLs are pending; the kind of cause, the cause, and a remedy.
	Stalled   float64 `json:"stalled,omitempty"`
	StalledBy string  `json:"stalled_by,omitempty"`
	StallWhy  string  `json:"stall_why,omitempty"`
	StallDo   string  `json:"stall_do,omitempty"`

	Uploads *stats.Uploads `json:"uploads,omitempty"` // of its record files to a storage location, if it has one
	Sinks   []stats.Sink   `json:"sinks,omitempty"`   // servers that its process sends records to

	Load
	*Facts            // for strategies with a control unit
	*Peering          // for a mesh crawl
	Machine  *Machine `json:"machine,omitempty"` // its resources, if the strategy needs them
}

// Peering is the part of a report that is specific to a mesh crawl.
type Peering struct {
	ID    string `json:"id"`    // its position in the ID space, in hexadecimal
	Peers int    `json:"peers"` // connected nodes
	// Seconds for which its pending URLs use its whole rate: what its hosts' delays leave for later does not count.
	Backlog   float64 `json:"backlog"`
	Level     int     `json:"level"`     // with blocks of URLs: load relative to others; positive: too high
	Delegated int     `json:"delegated"` // its own hosts that other nodes fetch
	Guests    int     `json:"guests"`    // hosts of others that it fetches
	// Seconds since it lost contact with all other nodes.
	Alone float64 `json:"alone,omitempty"`
}

// Facts is the part of a report that is specific to strategies with a control unit.
type Facts struct {
	Leads     bool    `json:"leads"`          // it is the control unit
	TimeoutMS float64 `json:"timeout_ms"`     // for a first connection to a host
	Owned     int     `json:"owned"`          // hosts
	Parked    int     `json:"parked"`         // of these, hosts that the node is not known to reach
	Unsettled int     `json:"unsettled"`      // hosts whose owner is not known yet, or that the node is probing
	LeastMS   float64 `json:"timeout_min_ms"` // bounds of TimeoutMS
	MostMS    float64 `json:"timeout_max_ms"`
	Requests  int64   `json:"host_requests"`     // handled as the control unit: requests about hosts, and answers
	PerSecond float64 `json:"host_request_rate"` // Requests per second, recently
	Quota     *Quota  `json:"quota,omitempty"`
}

// A NodeRole is the status of a node in the cluster.
type NodeRole string

// The roles.
const (
	NodeWaiting NodeRole = "waiting" // waits for the start of the crawl
	NodeJoining NodeRole = "joining" // known to others, but owns nothing yet
	NodeMember  NodeRole = "member"
	NodeLeaving NodeRole = "leaving" // transfers its hosts to others
	NodeDead    NodeRole = "dead"    // others recover its hosts
	NodeLeft    NodeRole = "left"    // has transferred all its hosts; its lease has not ended yet
)

// A Load describes pending and completed work.
type Load struct {
	Pages    int64   `json:"pages"`     // by this identity, all runs
	Rate     float64 `json:"rate"`      // pages per second, over the last seconds
	Hosts    int     `json:"hosts"`     // owned hosts with pending or active URLs
	Waiting  int     `json:"waiting"`   // URLs
	Known    int     `json:"known"`     // URLs
	Outbox   int     `json:"outbox"`    // links not yet accepted by other nodes
	InFlight int     `json:"in_flight"` // requests
	Lag      int64   `json:"lag"`       // bytes of the journal not yet replicated

	// Bytes sent over the bus since the process started: messages to other nodes, the replicated journal, and values of
	// the registry such as leases.
	MessageBytes  int64 `json:"message_bytes"`
	ShippedBytes  int64 `json:"shipped_bytes"`
	RegistryBytes int64 `json:"registry_bytes"`

	ByteRate float64 `json:"byte_rate"` // bytes received from servers per second, over the last seconds
	// Pages that two nodes have fetched, as found when a host moved from one to the other; since the processes started.
	Duplicates int64 `json:"duplicates"`
}

// Add adds another load.
func (l *Load) Add(o Load) {
	l.Pages += o.Pages
	l.Rate += o.Rate
	l.ByteRate += o.ByteRate
	l.Duplicates += o.Duplicates
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

// Renders reports whether the crawl renders pages, by its settings.
func (c *Cluster) Renders() bool {
	for _, mode := range c.Settings["render"] {
		if mode != "" && mode != "never" {
			return true
		}
	}
	for _, one := range c.Settings["override"] {
		if strings.Contains(one, "render:") {
			return true
		}
	}
	return false
}
