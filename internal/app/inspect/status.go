package inspect

import (
	"time"

	"kumo/internal/base/stats"
)

// A Status is the current state of a crawl, or the result of its last run. Its JSON has the members of report.json, and
// those of a running crawl.
type Status struct {
	State State `json:"state"`
	// The report of the run; while it is running, Ended is empty and Stopped equals Time.
	stats.Report
	Time time.Time `json:"time"` // of this response

	Active  int `json:"hosts_active"`      // with a request in progress
	Idle    int `json:"hosts_waiting"`     // with pending URLs that wait for their time
	Backing int `json:"hosts_backing_off"` // backing off after failures, or on request of the server

	// Progress of reading a file of seeds.
	SeedsTaken int64 `json:"seeds_taken,omitempty"`
	Seeds      int64 `json:"seeds,omitempty"`

	// The remaining fields describe a running crawl.
	EndsIn   float64 `json:"ends_in_at_least,omitempty"` // seconds until the queue is empty, at least; 0: unknown
	Growth   float64 `json:"queue_growth,omitempty"`     // growth of the queue in URLs per second
	Forecast string  `json:"forecast,omitempty"`         // EndsIn and Growth in words

	// Seconds for which no host on the web was reached; nothing is fetched then.
	CutOff    float64 `json:"cut_off,omitempty"`
	CutOffWhy string  `json:"cut_off_why,omitempty"` // the last error

	// Seconds without any response although URLs are pending; the kind of cause, the cause, and a remedy.
	Stalled   float64 `json:"stalled,omitempty"`
	StalledBy string  `json:"stalled_by,omitempty"`
	StallWhy  string  `json:"stall_why,omitempty"`
	StallDo   string  `json:"stall_do,omitempty"`

	Uploads *stats.Uploads `json:"uploads,omitempty"` // to its storage location, if it has one
}

// A State is the state of a crawl.
type State string

// The states.
const (
	Running   State = "running"
	Paused    State = "paused"     // by the user, or because the disk is nearly full
	Stopped   State = "stopped"    // its report has the reason
	BrokenOff State = "broken off" // without a report: it was killed, or the disk was full
)
