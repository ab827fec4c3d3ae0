package stats

import (
	"fmt"
	"time"
)

// A Sink has the state of a server to which a run sends its records.
type Sink struct {
	Sink     string  `json:"sink"`           // its URL, without a password
	Sent     int64   `json:"sent"`           // records
	Bytes    int64   `json:"bytes"`          // approximate size of these
	Waiting  int64   `json:"waiting"`        // records not sent yet
	Behind   float64 `json:"behind_seconds"` // age of the oldest unsent record
	Failures int64   `json:"failures"`       // failed connections and batches
	Retries  int64   `json:"retries"`        // attempts after a failure
	Why      string  `json:"why,omitempty"`  // why it accepts no records now
}

// Summary describes the backlog and the error; "" if there is neither.
func (s *Sink) Summary() string {
	if s.Waiting == 0 && s.Why == "" {
		return ""
	}
	text := fmt.Sprintf("%s %s", Count(s.Waiting, "records"), Either(s.Waiting, "waits", "wait"))
	if s.Behind >= 1 {
		text += ", the first for " + Span(time.Duration(s.Behind)*time.Second)
	}
	if s.Why != "" {
		text += ": " + s.Why
	}
	return text
}
