package hostlease

import (
	"errors"
	"slices"
	"time"
)

// Entry is a process's entry in the registry of processes.
type Entry struct {
	Crawls []string `json:"crawls"`         // active crawls, and those whose last visits were just made; sorted
	Open   string   `json:"open,omitempty"` // the crawl for which the process visits hosts without leases; "": none
	// Longest is the longest wait after a visit without a lease, in milliseconds. The entry of a dead process that was
	// open is only deleted after this time.
	Longest int64 `json:"longest,omitempty"`
}

func (e *Entry) equal(o *Entry) bool {
	return e.Open == o.Open && e.Longest == o.Longest && slices.Equal(e.Crawls, o.Crawls)
}

// isOpenForOther reports whether the process may visit hosts without leases for another crawl than the given one.
func (e *Entry) isOpenForOther(crawl string) bool { return e.Open != "" && e.Open != crawl }

// Record is the record of a host. Times are relative to the moment when the record was written, in milliseconds,
// because clocks of machines differ. A reader counts them from when it reads, which is later.
type Record struct {
	Host   string `json:"host"`
	Holder string `json:"holder"`
	Wait   int64  `json:"wait,omitempty"`  // until the next permitted request
	Since  int64  `json:"since,omitempty"` // since the end of the last request; -1: none is known
	Delay  int64  `json:"delay,omitempty"` // longest delay between requests that the holder knows
}

// Message is a message between processes.
type Message struct {
	Kind   Kind   `json:"k"`
	Host   string `json:"h"`
	Number uint64 `json:"n"`           // of the request, also in the answer
	Rev    uint64 `json:"r,omitempty"` // of the record that the requester has read, or that the holder has written
	Record Record `json:"v,omitzero"`  // of a grant
	// Wanted is in a grant: number of the request by which the sender wants the lease back; 0: it does not.
	Wanted uint64 `json:"w,omitempty"`
}

// Kind is the kind of a message.
type Kind string

// The kinds.
const (
	Request Kind = "request" // the sender wants the lease that the receiver holds
	Grant   Kind = "grant"   // the record names the receiver
)

// An Action is what the caller of a Machine must do. Results return as events.
type Action interface{ action() }

// PutEntry writes the process's entry. PutEntryDone answers.
type PutEntry struct {
	Entry Entry
	Rev   uint64
}

// DeleteEntry deletes the entry of a process. There is no answer; the watch shows the deletion.
type DeleteEntry struct {
	Process string
	Rev     uint64
}

// ReadRecord reads the latest record of a host. ReadRecordDone answers.
type ReadRecord struct{ Host string }

// CheckEntry reads whether a process that is named in the record of a host has an entry. CheckEntryDone answers.
type CheckEntry struct{ Host, Process string }

// PutRecord writes the record of a host. PutRecordDone answers.
type PutRecord struct {
	Record Record
	Rev    uint64
}

// Send sends a message.
type Send struct {
	To      string
	Message Message
}

func (PutEntry) action()    {}
func (DeleteEntry) action() {}
func (ReadRecord) action()  {}
func (CheckEntry) action()  {}
func (PutRecord) action()   {}
func (Send) action()        {}

// ErrStale is the result of a write that expected another revision.
var ErrStale = errors.New("changed by another process")

// Event is an event for a Machine.
type Event interface{ event() }

// EntrySeen is a state of an entry from the watch. A nil Entry means that it was deleted. Without a Process, the watch
// has shown all current entries.
type EntrySeen struct {
	Process string
	Entry   *Entry
	Rev     uint64
}

// PutEntryDone is the result of PutEntry. Err is nil, ErrStale, or an error after which the write may have succeeded.
type PutEntryDone struct {
	Rev uint64
	Err error
}

// ReadRecordDone is the result of ReadRecord. Rev is 0 if there is no record.
type ReadRecordDone struct {
	Host   string
	Record Record
	Rev    uint64
	Err    error
}

// CheckEntryDone is the result of CheckEntry.
type CheckEntryDone struct {
	Host   string
	Exists bool
	Err    error
}

// PutRecordDone is the result of PutRecord, with errors like those of PutEntryDone.
type PutRecordDone struct {
	Record Record
	Rev    uint64
	Err    error
}

// Received is a message from another process.
type Received struct {
	From    string
	Message Message
}

// Tick passes time.
type Tick struct{}

func (EntrySeen) event()      {}
func (PutEntryDone) event()   {}
func (ReadRecordDone) event() {}
func (CheckEntryDone) event() {}
func (PutRecordDone) event()  {}
func (Received) event()       {}
func (Tick) event()           {}

// milliseconds rounds up.
func milliseconds(d time.Duration) int64 { return (max(d, 0) + time.Millisecond - 1).Milliseconds() }

func duration(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }
