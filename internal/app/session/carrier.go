package session

import (
	"context"

	"kumo/internal/app/job"
	"kumo/internal/state/journal"
	"kumo/internal/state/store"
)

// A Carrier brings the record files of one node's part of a crawl to a place, as [job.Away] has it.
type Uploader interface {
	// Start begins to bring what is closed, until ctx ends. The crawl is open. Who starts it calls Finish or Break.
	Start(ctx context.Context)
	// Finish returns when all is there, after a run whose files are closed, or says what waits.
	Finish(ctx context.Context) error
	Abort()       // ends what Start began: another run brings the rest
	URL() string  // of the place
	Close() error // lets go of the place
}

// A StateUploader brings the node's state there, too.
type StateUploader interface {
	Uploader
	// Cut has checkpoints brought to the place, and the log of the journal cut by what they have. It is called before
	// Start, with who is warned of what fails for long, and returns what is to be told of checkpoints, as
	// [crawl.Parts.Checkpointed] has it.
	Cut(log journal.Shipped, warn func(error)) func(at, relies journal.Position, marks []store.Mark)
	RemoveStates(ctx context.Context) error // ends that, and removes them; Finish or Break follows
}

// NewUploader makes the carrier of a node's life, and the job's Away with it. It changes nothing yet.
type NewUploader func(ctx context.Context, j *job.Job, life string) (Uploader, error)

// An Unbrought is the end of a run whose files are not all in the place.
type IncompleteUpload struct {
	RunErr    error // of the run
	UploadErr error
}

func (u *IncompleteUpload) Error() string   { return u.UploadErr.Error() }
func (u *IncompleteUpload) Unwrap() []error { return []error{u.UploadErr, u.RunErr} }

// FinishUpload adds to how a run has ended what its place has to say, once all is there that can be. Without a carrier it is
// as it was.
func FinishUpload(ctx context.Context, c Uploader, ended error) error {
	if c == nil {
		return ended
	}
	if err := c.Finish(ctx); err != nil {
		return &IncompleteUpload{ended, err}
	}
	return ended
}
