package node

import (
	"encoding/json"
	"time"

	"kumo/internal/base/stats"
	"kumo/internal/cluster/desired"
	"kumo/internal/cluster/strategy"
)

// Figures are what others are told of a node's work.
type Figures struct {
	Pages    int64   `json:"pages"`           // by this identity, all runs
	Rate     float64 `json:"rate"`            // pages a second, lately
	Hosts    int     `json:"hosts"`           // that have a queue
	Waiting  int     `json:"waiting"`         // URLs
	Known    int     `json:"known"`           // URLs
	Outbox   int     `json:"outbox"`          // links for others
	InFlight int     `json:"in_flight"`       // requests
	Busy     float64 `json:"busy"`            // share of its workers that are at work, from 0 to 1
	Lag      int64   `json:"lag"`             // bytes of the journal that are not shipped
	Moved    int64   `json:"moved,omitempty"` // hosts that have come from other nodes, by this process

	Uploads *stats.Uploads `json:"uploads,omitempty"` // of record files to its place; nil: they stay in its folder

	stats.Condition

	// Bytes that this process gave to the bus: messages to other nodes, the shipped journal, leases and
	// other values of the registry.
	MessageBytes  int64 `json:"message_bytes"`
	ShippedBytes  int64 `json:"shipped_bytes"`
	RegistryBytes int64 `json:"registry_bytes"`
}

// Work is what a node has done since it began, and what it has for that.
type Work struct {
	Pages   int64         // durable ones
	NewURLs int64         // URLs from outboxes that were news
	Pending int64         // pages that were answered, and are not durable yet
	Bytes   int64         // read from servers
	CPU     time.Duration // used by its process
	Machine strategy.Machine
}

// A Machine is a strategy.Machine.
type Machine struct {
	Cores       float64 `json:"cores"`
	GHz         float64 `json:"ghz"`
	MemoryGB    float64 `json:"memory_gb"`
	NetworkMbps float64 `json:"network_mbps"`
	DiskMbps    float64 `json:"disk_mbps"`
}

// machine is the node's; nil if nothing is known of it.
func (n *Node) machine() *Machine {
	if m := n.cfg.Work().Machine; m != (strategy.Machine{}) {
		return (*Machine)(&m)
	}
	return nil
}

// Facts are what a strategy tells of itself.
type Facts struct {
	Control   string  `json:"control,omitempty"`   // the node that decides, as this one knows
	Leads     bool    `json:"leads,omitempty"`     // this node does
	TimeoutMS float64 `json:"timeout_ms"`          // for a connection to a host that is tried for the first time
	Owned     int     `json:"owned"`               // hosts
	Parked    int     `json:"parked"`              // of these, those that the node is not known to reach
	Unsettled int     `json:"unsettled,omitempty"` // hosts of which it is not settled whose they are
	Quota     *Quota  `json:"quota,omitempty"`     // nil: the strategy gives none, or none is known
}

// A Quota is what a node was given to fetch, and how long that is to take: see [strategy.Quota].
type Quota struct {
	Given     int64    `json:"given"`           // URLs
	Done      int64    `json:"done"`            // pages
	Left      int64    `json:"left"`            // URLs
	Predicted float64  `json:"predicted"`       // seconds
	Error     *float64 `json:"error,omitempty"` // nil: none is known
	Basis     string   `json:"basis"`
}

// facts are the strategy's; nil if it has none.
func (n *Node) facts() *Facts {
	t, tells := n.cfg.Strategy.(strategy.StatusReporter)
	if !tells {
		return nil
	}
	f := t.Status()
	facts := &Facts{Control: f.Controller.Name(), Leads: f.Leads, TimeoutMS: float64(f.Timeout.Microseconds()) / 1000,
		Owned: f.Owned, Parked: f.Parked, Unsettled: f.Unsettled}
	if q := f.Quota; q != nil {
		facts.Quota = &Quota{Given: q.Given, Done: q.Done, Left: q.Left, Predicted: q.Predicted.Seconds(), Basis: q.Basis}
		if q.Error >= 0 {
			facts.Quota.Error = &q.Error
		}
	}
	return facts
}

// A Report is what a node's lease tells of it.
type Report struct {
	Name     string        `json:"name"`
	Version  string        `json:"version"`
	Address  string        `json:"address,omitempty"`
	Layout   string        `json:"layout,omitempty"` // what all nodes must agree on; of one that waits
	Epoch    uint64        `json:"epoch"`
	State    desired.State `json:"state"` // of the crawl, as the node knows it
	Idle     bool          `json:"idle"`
	Sent     int64         `json:"sent"`     // batches of links, by this process
	Received int64         `json:"received"` // likewise
	Slips    int64         `json:"slips"`    // requests to whose end the lease did not last
	Figures
	*Facts            // of strategies that decide host by host
	Machine *Machine  `json:"machine,omitempty"` // nil: the strategy does not ask
	Clock   time.Time `json:"clock"`             // of the node
}

func (n *Node) report() []byte {
	sent, received := n.driver.Batches()
	data, err := json.Marshal(Report{Name: n.cfg.Identity.Name, Version: n.cfg.Version, Address: n.cfg.Address,
		Epoch: n.cfg.Router.Epoch(), State: n.record.record.State, Idle: n.driver.Idle(), Sent: sent, Received: received,
		Slips: n.cfg.Router.Slips(), Figures: n.cfg.Figures(), Facts: n.facts(), Machine: n.machine(),
		Clock: time.Now().UTC()})
	if err != nil {
		return nil // of plain fields
	}
	return data
}

// ParseReport reads what a lease tells.
func ParseReport(data []byte) (r Report, err error) {
	err = json.Unmarshal(data, &r)
	return r, err
}
