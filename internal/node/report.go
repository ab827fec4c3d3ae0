package node

import (
	"encoding/json"
	"time"
)

// Figures are what others are told of a node's work.
type Figures struct {
	Pages    int64   `json:"pages"`     // by this identity, all runs
	Rate     float64 `json:"rate"`      // pages a second, lately
	Hosts    int     `json:"hosts"`     // that have a queue
	Waiting  int     `json:"waiting"`   // URLs
	Known    int     `json:"known"`     // URLs
	Outbox   int     `json:"outbox"`    // links for others
	InFlight int     `json:"in_flight"` // requests
	Busy     float64 `json:"busy"`      // share of its workers that are at work, from 0 to 1
	Lag      int64   `json:"lag"`       // bytes of the journal that are not shipped

	// Bytes that this process gave to the bus: messages to other nodes, the shipped journal, leases and
	// other values of the registry.
	MessageBytes  int64 `json:"message_bytes"`
	ShippedBytes  int64 `json:"shipped_bytes"`
	RegistryBytes int64 `json:"registry_bytes"`
}

// A Report is what a node's lease tells of it.
type Report struct {
	Name     string `json:"name"`
	Version  string `json:"version"`
	Address  string `json:"address,omitempty"`
	Epoch    uint64 `json:"epoch"`
	State    State  `json:"state"` // of the crawl, as the node knows it
	Idle     bool   `json:"idle"`
	Sent     int64  `json:"sent"`     // batches of links, by this process
	Received int64  `json:"received"` // likewise
	Slips    int64  `json:"slips"`    // requests to whose end the lease did not last
	Figures
	Clock time.Time `json:"clock"` // of the node
}

// report is what the lease tells.
func (n *Node) report() []byte {
	t := n.tally()
	data, err := json.Marshal(Report{Name: n.cfg.Identity.Name, Version: n.cfg.Version, Address: n.cfg.Address, Epoch: t.Epoch,
		State: n.crawl.record.State, Idle: t.Idle, Sent: n.links.sent.Load(), Received: n.links.received.Load(),
		Slips: n.cfg.Router.Slips(), Figures: n.cfg.Figures(), Clock: time.Now().UTC()})
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
