package control

import (
	"encoding/json"
	"time"

	"kumo/internal/base/stats"
	"kumo/internal/cluster/chronicle"
	"kumo/internal/cluster/desired"
)

// The indexes of Sums.Figures.
const (
	SumPages = iota
	SumBytes
	SumMilliRate // recent pages per 1000 seconds
	SumHosts
	SumWaiting
	SumKnown
	SumOutbox
	SumInFlight
	SumMessageBytes
	SumFetching  // nodes that can fetch
	SumRefetched // pages of lost nodes that are fetched again
	sumCount
)

// MaxRunSeconds is an index of Tally.Max: the greatest number of seconds that a node has seen the crawl running.
const MaxRunSeconds = 0

// A Report is the state of one node.
type Report struct {
	Node    string        `json:"node"`
	Version string        `json:"version"`           // of its kumo
	Address string        `json:"address,omitempty"` // of its API
	Browser string        `json:"browser,omitempty"` // program that renders pages; empty if it has none
	State   desired.State `json:"state"`             // of the crawl, as known to the node
	Member  bool          `json:"member"`            // it has its place, and fetches its own hosts
	Idle    bool          `json:"idle"`
	Work

	MessageBytes int64 `json:"message_bytes"`

	Peers     int     `json:"peers"`     // connected nodes
	Backlog   float64 `json:"backlog"`   // seconds for which its pending URLs use its whole rate
	Level     int     `json:"level"`     // with blocks of URLs: load relative to others; positive: too high
	Delegated int     `json:"delegated"` // its own hosts that other nodes fetch
	Guests    int     `json:"guests"`    // hosts of others that it fetches

	// Seconds since it lost contact with all other nodes.
	Alone float64 `json:"alone,omitempty"`
	stats.Condition
	Clock time.Time `json:"clock"`

	Events []chronicle.Event `json:"events,omitempty"` // latest events that it observed
}

// A Work is the completed and pending work of a node's engine.
type Work struct {
	Pages     int64   `json:"pages"`           // in its folder, all runs
	Refetched int64   `json:"again,omitempty"` // pages of lost nodes that it accepted for another fetch
	Rate      float64 `json:"rate"`            // recent pages per second
	Hosts     int     `json:"hosts"`           // with a queue
	Waiting   int     `json:"waiting"`         // URLs
	Known     int     `json:"known"`           // URLs
	Outbox    int     `json:"outbox"`          // links
	InFlight  int     `json:"in_flight"`       // requests
}

// Figures returns the report's contributions to Sums.Figures, except SumBytes.
func (r *Report) Figures() []int64 {
	f := make([]int64, sumCount)
	f[SumPages], f[SumMilliRate], f[SumHosts] = r.Pages, int64(r.Rate*1000), int64(r.Hosts)
	f[SumWaiting], f[SumKnown], f[SumOutbox] = int64(r.Waiting), int64(r.Known), int64(r.Outbox)
	f[SumInFlight], f[SumMessageBytes], f[SumRefetched] = int64(r.InFlight), r.MessageBytes, r.Refetched
	if r.Member {
		f[SumFetching] = 1
	}
	return f
}

// Figure returns one of the sums; 0 if no node reported it.
func (s *Sums) Figure(i int) int64 {
	if i < len(s.Figures) {
		return s.Figures[i]
	}
	return 0
}

// All returns the reports that can be decoded.
func (s *Sums) All() (all []Report) {
	for _, data := range s.Reports {
		var r Report
		if json.Unmarshal(data, &r) == nil {
			all = append(all, r)
		}
	}
	return all
}
