package stats

import (
	"fmt"
	"strings"
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
	// of a node's state, which goes there, too, so that the servers keep less of its journal; nil: it does not
	State *UploadedState `json:"state,omitempty"`
}

// UploadedState is what a node has brought of its state, and how far its journal on the servers was cut for it.
type UploadedState struct {
	Checkpoints int   `json:"checkpoints"` // that came by this process
	Bytes       int64 `json:"bytes"`       // in them
	// when the newest came; zero: an earlier process brought it, or there is none
	Last      time.Time `json:"last,omitzero"`
	Position  uint64    `json:"position"`     // up to where the journal is in the newest; 0: there is none
	Cut       uint64    `json:"cut"`          // up to where this process has cut it off on the servers
	CutBytes  int64     `json:"cut_bytes"`    // how many bytes these were
	Kept      int64     `json:"kept_bytes"`   // what the servers keep of it
	InTransit int64     `json:"coming_bytes"` // of a checkpoint that is on its way
	// record files that are neither there nor here: for them nothing more is cut
	MissingFiles []string `json:"lacks,omitempty"`
	MissingCount int64    `json:"lacks_all,omitempty"` // how many these are, of which only the first are named
}

// Summary say how it stands.
func (s *UploadedState) Summary(now time.Time) string {
	text := "no checkpoint yet"
	if s.Position > 0 {
		text = "a checkpoint"
		if !s.Last.IsZero() {
			text += " of " + Span(max(now.Sub(s.Last), 0).Truncate(time.Second)) + " ago"
		}
	}
	if s.InTransit > 0 {
		text += ", one of " + Bytes(s.InTransit) + " on the way"
	}
	return text + fmt.Sprintf("; of the journal %s cut, %s kept by the servers", Bytes(s.CutBytes), Bytes(s.Kept))
}

// Lacking says what keeps the journal from being cut, and what to do; "": nothing.
func (s *UploadedState) MissingHint() string {
	if s == nil || s.MissingCount == 0 {
		return ""
	}
	more := ""
	if n := s.MissingCount - int64(len(s.MissingFiles)); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("%s%s %s neither in the folder nor in the place, so the servers keep the journal from there on: "+
		"put %s back into the folder; without, let the node leave, and join anew", strings.Join(s.MissingFiles, ", "), more,
		Either(s.MissingCount, "is", "are"), Either(s.MissingCount, "it", "them"))
}

// Summary say how it stands: "" where nothing waits.
func (u Uploads) Summary() string {
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
