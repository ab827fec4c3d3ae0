package session

import (
	"context"

	"kumo/internal/app/job"
)

// A Sender sends the records of one node's part of a crawl to sinks.
type Sender interface {
	// Start starts to send, and reports whether records of earlier runs are not sent yet. The crawl must be open, and not
	// running. The caller must then call Finish or Abort.
	Start(ctx context.Context) (behind bool, err error)
	// Finish sends the remaining records after a run. It stops soon after ctx ends. Its error lists the sinks that lack
	// records.
	Finish(ctx context.Context) error
	Abort() // stops sending; another run sends the rest
	// Acknowledged returns, for each sink by its name, the number of bytes of pages.jsonl whose records the sink has
	// stored durably.
	Acknowledged() map[string]int64
	// CaughtUp reports whether all sinks have all records, or waiting longer is no use.
	CaughtUp() bool
}

// NewSender creates the sender of a node's incarnation to the sinks at some URLs, and adds it to the job's stores. It
// does not connect yet.
type NewSender func(j *job.Job, urls []string) (Sender, error)

// An IncompleteSending is the error of a run whose records are not all in the sinks.
type IncompleteSending struct {
	RunErr  error // of the run
	SendErr error
}

func (u *IncompleteSending) Error() string   { return u.SendErr.Error() }
func (u *IncompleteSending) Unwrap() []error { return []error{u.SendErr, u.RunErr} }
