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
	SumMilliRate // pages in a thousand seconds, lately
	SumHosts
	SumWaiting
	SumKnown
	SumOutbox
	SumInFlight
	SumMessageBytes
	SumFetching  // nodes that fetch, or would if there were something
	SumRefetched // pages that lost nodes had fetched, and that are fetched again
	sumCount
)

// A Report is what one node says of itself.
type Report struct {
	Node    string        `json:"node"`
	Version string        `json:"version"`           // of its kumo
	Address string        `json:"address,omitempty"` // where it can be asked
	State   desired.State `json:"state"`             // of the crawl, as the node knows it
	Member  bool          `json:"member"`            // it knows its place, and fetches what is its own
	Idle    bool          `json:"idle"`
	Work

	MessageBytes int64 `json:"message_bytes"`

	Peers     int `json:"peers"`     // nodes that it is connected with
	Level     int `json:"level"`     // of load, in blocks: positive where it has too much
	Delegated int `json:"delegated"` // hosts of its own that others fetch
	Guests    int `json:"guests"`    // hosts of others that it fetches

	// for so many seconds it has been without others, all of which it has lost
	Alone float64 `json:"alone,omitempty"`
	stats.Condition
	Clock time.Time `json:"clock"`

	Events []chronicle.Event `json:"events,omitempty"` // the last that it has met
}

// A Work is what a node's engine has done and has to do.
type Work struct {
	Pages     int64   `json:"pages"`           // in its folder, all runs
	Refetched int64   `json:"again,omitempty"` // of lost nodes, that it has taken in to be fetched again
	Rate      float64 `json:"rate"`            // pages a second, lately
	Hosts     int     `json:"hosts"`           // that have a queue
	Waiting   int     `json:"waiting"`         // URLs
	Known     int     `json:"known"`           // URLs
	Outbox    int     `json:"outbox"`          // links
	InFlight  int     `json:"in_flight"`       // requests
}

// Figures are what a report adds to Sums.Figures, but for SumBytes.
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

// Figure is one of the sums; 0 where nobody has told it.
func (s *Sums) Figure(i int) int64 {
	if i < len(s.Figures) {
		return s.Figures[i]
	}
	return 0
}

// All are the reports that can be read.
func (s *Sums) All() (all []Report) {
	for _, data := range s.Reports {
		var r Report
		if json.Unmarshal(data, &r) == nil {
			all = append(all, r)
		}
	}
	return all
}
