package stats

import (
	"fmt"
	"strings"
	"time"
)

// Uploads is the state of the uploads to a crawl's storage location.
type Uploads struct {
	Place    string        `json:"place"` // URL of the storage location
	Files    int64         `json:"files"` // uploaded files
	Bytes    int64         `json:"bytes"`
	Waiting  int64         `json:"waiting"` // closed files not uploaded yet
	WaitSize int64         `json:"waiting_bytes"`
	Why      string        `json:"why,omitempty"`  // error of the last attempt
	Next     time.Duration `json:"next,omitempty"` // time until the next attempt, in nanoseconds
	// the node's uploaded state, which lets the servers drop a part of its journal; nil if state is not uploaded
	State *UploadedState `json:"state,omitempty"`
}

// UploadedState describes the uploaded checkpoints of a node, and how much of its journal the servers could drop.
type UploadedState struct {
	Checkpoints int   `json:"checkpoints"` // uploaded by this process
	Bytes       int64 `json:"bytes"`       // their total size
	// time of the newest checkpoint; zero if there is none, or if an earlier process uploaded it
	Last      time.Time `json:"last,omitzero"`
	Position  uint64    `json:"position"`     // journal position of the newest checkpoint; 0 if there is none
	Cut       uint64    `json:"cut"`          // position up to which this process truncated the journal on the servers
	CutBytes  int64     `json:"cut_bytes"`    // bytes truncated
	Kept      int64     `json:"kept_bytes"`   // bytes of the journal on the servers
	InTransit int64     `json:"coming_bytes"` // bytes of a checkpoint being uploaded
	// record files that are neither uploaded nor in the folder; they block the truncation of the journal
	MissingFiles []string `json:"lacks,omitempty"`
	MissingCount int64    `json:"lacks_all,omitempty"` // total number of these; MissingFiles has only the first
}

// Summary describes the state as text.
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
	return text + fmt.Sprintf("; journal: %s truncated, %s kept on the servers", Bytes(s.CutBytes), Bytes(s.Kept))
}

// MissingHint describes the files that block the truncation of the journal, and the remedy; "" if there are none.
func (s *UploadedState) MissingHint() string {
	if s == nil || s.MissingCount == 0 {
		return ""
	}
	more := ""
	if n := s.MissingCount - int64(len(s.MissingFiles)); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("%s%s %s missing in the folder and in the storage location, so the servers keep the journal from "+
		"there on: put %s back into the folder, or let the node leave and join again",
		strings.Join(s.MissingFiles, ", "), more, Either(s.MissingCount, "is", "are"), Either(s.MissingCount, "it", "them"))
}

// Summary describes the backlog and the error; "" if there is neither.
func (u Uploads) Summary() string {
	switch {
	case u.Waiting == 0 && u.Why == "":
		return ""
	case u.Why == "":
		return fmt.Sprintf("%s (%s) on the way", Count(u.Waiting, "files"), Bytes(u.WaitSize))
	}
	s := "no files are pending, but the storage location fails: " + u.Why
	if u.Waiting > 0 {
		s = fmt.Sprintf("%s (%s) %s: %s", Count(u.Waiting, "files"), Bytes(u.WaitSize), Either(u.Waiting, "waits", "wait"),
			u.Why)
	}
	if u.Next > 0 {
		s += "; next try in " + Span((u.Next + time.Second - 1).Truncate(time.Second))
	}
	return s
}
