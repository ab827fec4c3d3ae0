package node

import (
	"encoding/json"
	"time"

	"kumo/internal/base/stats"
	"kumo/internal/cluster/budget"
	"kumo/internal/cluster/desired"
	"kumo/internal/cluster/strategy"
)

// Figures is the part of a node's report on its work.
type Figures struct {
	Pages    int64   `json:"pages"`           // by this identity, all runs
	Rate     float64 `json:"rate"`            // recent pages per second
	Hosts    int     `json:"hosts"`           // with a queue
	Waiting  int     `json:"waiting"`         // URLs
	Known    int     `json:"known"`           // URLs
	Outbox   int     `json:"outbox"`          // links for other nodes
	InFlight int     `json:"in_flight"`       // requests
	Busy     float64 `json:"busy"`            // share of workers in use, from 0 to 1
	Lag      int64   `json:"lag"`             // bytes of the journal not yet replicated
	Moved    int64   `json:"moved,omitempty"` // hosts received from other nodes, by this process
	// bytes received from servers per second, recently
	ByteRate float64 `json:"byte_rate"`
	// pages that another node had fetched, too, when it handed over their hosts; by this process
	Duplicates int64 `json:"duplicates,omitempty"`

	Bytes int64          `json:"bytes,omitempty"` // received from sites, by this identity, all runs; only with a limit
	Run   *Run           `json:"run,omitempty"`   // nil: no time limit
	Limit *budget.Report `json:"limit,omitempty"` // pages used of the node's share of the page limit; nil: no limit

	Uploads *stats.Uploads `json:"uploads,omitempty"` // of record files to a storage location; nil: it has none
	Sinks   []stats.Sink   `json:"sinks,omitempty"`   // servers that the process sends records to

	stats.Condition

	// Bytes sent over the bus by this process: messages to other nodes, the replicated journal, and values of the
	// registry such as leases.
	MessageBytes  int64 `json:"message_bytes"`
	ShippedBytes  int64 `json:"shipped_bytes"`
	RegistryBytes int64 `json:"registry_bytes"`
}

// A Run is the time since a start of the crawl.
type Run struct {
	Started time.Time `json:"started"` // identifies the start: see [desired.Record]
	Seconds float64   `json:"seconds"`
}

// Work is the work that a node has completed since its start, and its resources.
type Work struct {
	Pages   int64         // durable ones
	NewURLs int64         // new URLs from other nodes' outboxes
	Pending int64         // received pages that are not durable yet
	Bytes   int64         // received from servers
	CPU     time.Duration // used by the process
	Machine strategy.Machine
}

// A Machine is the JSON form of a strategy.Machine.
type Machine struct {
	Cores       float64 `json:"cores"`
	GHz         float64 `json:"ghz"`
	MemoryGB    float64 `json:"memory_gb"`
	NetworkMbps float64 `json:"network_mbps"`
	DiskMbps    float64 `json:"disk_mbps"`
}

// machine returns the node's resources; nil if unknown.
func (n *Node) machine() *Machine {
	if m := n.cfg.Work().Machine; m != (strategy.Machine{}) {
		return (*Machine)(&m)
	}
	return nil
}

// Facts is the part of a report that is specific to the strategy.
type Facts struct {
	Control   string  `json:"control,omitempty"` // the leader, as known to this node
	Leads     bool    `json:"leads,omitempty"`   // this node is the leader
	TimeoutMS float64 `json:"timeout_ms"`        // for a first connection to a host
	LeastMS   float64 `json:"timeout_min_ms"`    // bounds of TimeoutMS
	MostMS    float64 `json:"timeout_max_ms"`
	Requests  int64   `json:"host_requests"`       // handled as the leader: requests about hosts, and answers
	PerSecond float64 `json:"host_request_rate"`   // Requests per second, recently
	Owned     int     `json:"owned"`               // hosts
	Parked    int     `json:"parked"`              // of these, hosts that the node is not known to reach
	Unsettled int     `json:"unsettled,omitempty"` // hosts whose owner is not known yet
	Quota     *Quota  `json:"quota,omitempty"`     // nil: not used by the strategy, or unknown
}

// A Quota is the number of URLs assigned to a node, and the predicted time to fetch them: see [strategy.Quota].
type Quota struct {
	Given     int64    `json:"given"`           // URLs
	Done      int64    `json:"done"`            // pages
	Left      int64    `json:"left"`            // URLs
	Predicted float64  `json:"predicted"`       // seconds
	Error     *float64 `json:"error,omitempty"` // nil: unknown
	Basis     string   `json:"basis"`
}

// Facts returns the strategy's part of the last report; nil if it has none.
func (n *Node) Facts() *Facts { return n.facts.Load() }

// newFacts returns the strategy's part of the report; nil if it has none.
func (n *Node) newFacts() *Facts {
	t, tells := n.cfg.Strategy.(strategy.StatusReporter)
	if !tells {
		return nil
	}
	f := t.Status()
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	facts := &Facts{Control: f.Controller.Name(), Leads: f.Leads,
		TimeoutMS: ms(f.Timeout), LeastMS: ms(f.MinTimeout), MostMS: ms(f.MaxTimeout),
		Requests: f.Requests, PerSecond: n.requestRate.At(time.Now(), f.Requests),
		Owned: f.Owned, Parked: f.Parked, Unsettled: f.Unsettled}
	if q := f.Quota; q != nil {
		facts.Quota = &Quota{Given: q.Given, Done: q.Done, Left: q.Left, Predicted: q.Predicted.Seconds(), Basis: q.Basis}
		if q.Error >= 0 {
			facts.Quota.Error = &q.Error
		}
	}
	return facts
}

// A Report is the state of a node, as reported in its lease.
type Report struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Address string `json:"address,omitempty"`
	Server  string `json:"server,omitempty"`  // address of the node's server; empty if it runs none
	Browser string `json:"browser,omitempty"` // program that renders pages; empty if it has none
	// configuration that all nodes must agree on; only for waiting nodes
	Layout   string        `json:"layout,omitempty"`
	Epoch    uint64        `json:"epoch"`
	State    desired.State `json:"state"` // of the crawl, as known to the node
	Idle     bool          `json:"idle"`
	Sent     int64         `json:"sent"`     // batches of links, by this process
	Received int64         `json:"received"` // batches of links, by this process
	Slips    int64         `json:"slips"`    // requests that outlived the lease
	Figures
	*Facts            // only for strategies that decide host by host
	Machine *Machine  `json:"machine,omitempty"` // nil: not used by the strategy
	Clock   time.Time `json:"clock"`             // the node's
}

func (n *Node) report() []byte {
	sent, received := n.driver.Batches()
	facts := n.newFacts()
	n.facts.Store(facts)
	data, err := json.Marshal(Report{Name: n.cfg.Identity.Name, Version: n.cfg.Version, Address: n.cfg.Address,
		Server: n.cfg.Server, Browser: n.cfg.Browser, Epoch: n.cfg.Router.Epoch(),
		State: n.record.record.State, Idle: n.driver.Idle(),
		Sent: sent, Received: received,
		Slips: n.cfg.Router.Slips(), Figures: n.cfg.Figures(), Facts: facts, Machine: n.machine(),
		Clock: time.Now().UTC()})
	if err != nil {
		return nil // cannot happen: plain fields only
	}
	return data
}

// ParseReport decodes a lease's report.
func ParseReport(data []byte) (r Report, err error) {
	err = json.Unmarshal(data, &r)
	return r, err
}
