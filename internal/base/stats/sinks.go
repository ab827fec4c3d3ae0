package stats

import (
	"fmt"
	"time"
)

// A Sink is what a run has sent to a server that takes a crawl's records, and what waits for it.
type Sink struct {
	Sink     string  `json:"sink"`           // its URL, without a password
	Sent     int64   `json:"sent"`           // records
	Bytes    int64   `json:"bytes"`          // of these, about
	Waiting  int64   `json:"waiting"`        // records that are in the crawl's files alone
	Behind   float64 `json:"behind_seconds"` // since the visit of the first that waits
	Failures int64   `json:"failures"`       // tries of reaching it, or of handing it a batch
	Retries  int64   `json:"retries"`        // tries after such
	Why      string  `json:"why,omitempty"`  // it takes none now
}

// Summary say how it stands: "" where nothing waits.
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
