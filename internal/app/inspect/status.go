package inspect

import (
	"time"

	"kumo/internal/base/stats"
)

// A Status is a crawl at one time: as it goes, or as its last run has left it. Its fields in JSON are those of
// report.json, and what a crawl that runs does.
type Status struct {
	State State `json:"state"`
	// what the crawl has come to; of one that runs so far: Ended is empty, and Stopped is Time
	stats.Report
	Time time.Time `json:"time"` // of this answer

	Active  int `json:"hosts_active"`      // that are asked for something
	Idle    int `json:"hosts_waiting"`     // where something waits for its time
	Backing int `json:"hosts_backing_off"` // that are left alone after failures, or at their own wish

	// file a file of seeds, while it is taken in
	SeedsTaken int64 `json:"seeds_taken,omitempty"`
	Seeds      int64 `json:"seeds,omitempty"`

	// what follows is of a crawl that runs
	EndsIn   float64 `json:"ends_in_at_least,omitempty"` // seconds until what waits is done; 0: not known
	Growth   float64 `json:"queue_growth,omitempty"`     // URLs a second that wait more; negative: less
	Forecast string  `json:"forecast,omitempty"`         // the same in words

	// for so many seconds no host of the web was reached, and nothing is fetched
	CutOff    float64 `json:"cut_off,omitempty"`
	CutOffWhy string  `json:"cut_off_why,omitempty"` // the last error

	// for so many seconds nothing was answered though URLs wait: the kind of reason, why, and what to do
	Stalled   float64 `json:"stalled,omitempty"`
	StalledBy string  `json:"stalled_by,omitempty"`
	StallWhy  string  `json:"stall_why,omitempty"`
	StallDo   string  `json:"stall_do,omitempty"`

	Uploads *stats.Uploads `json:"uploads,omitempty"` // to its place, if it has one
}

// A State is what a crawl does.
type State string

// The states.
const (
	Running   State = "running"
	Paused    State = "paused"     // by its user, or as the disk is nearly full
	Stopped   State = "stopped"    // its report says how
	BrokenOff State = "broken off" // without a report: it was killed, or the disk was full
)
