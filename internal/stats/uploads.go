package stats

import (
	"fmt"
	"time"
)

// Uploads are what a crawl has brought to its place, and what waits for it.
type Uploads struct {
	Place    string        `json:"place"` // its URL
	Files    int64         `json:"files"` // that are there
	Bytes    int64         `json:"bytes"`
	Waiting  int64         `json:"waiting"` // files that are closed and not there yet
	WaitSize int64         `json:"waiting_bytes"`
	Why      string        `json:"why,omitempty"`  // the last try failed
	Next     time.Duration `json:"next,omitempty"` // until the next try, in nanoseconds
}

// Words say how it stands: "" where nothing waits.
func (u Uploads) Words() string {
	switch {
	case u.Waiting == 0 && u.Why == "":
		return ""
	case u.Why == "":
		return fmt.Sprintf("%s (%s) on the way", Count(u.Waiting, "files"), Bytes(u.WaitSize))
	}
	s := "nothing waits, but the place fails: " + u.Why
	if u.Waiting > 0 {
		s = fmt.Sprintf("%s (%s) %s: %s", Count(u.Waiting, "files"), Bytes(u.WaitSize), Either(u.Waiting, "waits", "wait"),
			u.Why)
	}
	if u.Next > 0 {
		s += "; next try in " + Span((u.Next + time.Second - 1).Truncate(time.Second))
	}
	return s
}
