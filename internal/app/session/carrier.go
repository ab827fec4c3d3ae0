package session

import (
	"context"

	"kumo/internal/app/job"
	"kumo/internal/state/journal"
	"kumo/internal/state/store"
)

// An Uploader uploads the record files of one node's part of a crawl to a storage location, as in [job.Upload].
type Uploader interface {
	// Start starts to upload closed files, until ctx ends. The crawl must be open. The caller must then call Finish or
	// Abort.
	Start(ctx context.Context)
	// Finish uploads the rest after a run, when all files are closed. Its error lists missing files.
	Finish(ctx context.Context) error
	Abort()       // stops the upload; another run uploads the rest
	URL() string  // of the storage location
	Close() error // closes the storage location
}

// A StateUploader also uploads the node's state.
type StateUploader interface {
	Uploader
	// Cut uploads checkpoints, and truncates the journal's log to the part after them. It is called before Start. warn
	// receives lasting failures. sent reports whether the crawl's sinks have the records up to some lengths; the log is
	// not truncated beyond. The returned function must be called for each checkpoint, as in
	// [crawl.Parts.Checkpointed].
	Cut(log journal.Shipped, warn func(error), sent func([]store.Mark) bool) func(at, relies journal.Position,
		marks []store.Mark)
	RemoveStates(ctx context.Context) error // stops this and deletes the checkpoints; then call Finish or Abort
}

// NewUploader creates the uploader of a node's incarnation, and sets the job's Upload. It does not change any files
// yet.
type NewUploader func(ctx context.Context, j *job.Job, life string) (Uploader, error)

// An IncompleteUpload is the error of a run whose files are not all uploaded.
type IncompleteUpload struct {
	RunErr    error // of the run
	UploadErr error
}

func (u *IncompleteUpload) Error() string   { return u.UploadErr.Error() }
func (u *IncompleteUpload) Unwrap() []error { return []error{u.UploadErr, u.RunErr} }

// FinishUpload finishes the upload after a run, and adds its error to that of the run. Without an uploader, it returns
// the run's error.
func FinishUpload(ctx context.Context, c Uploader, ended error) error {
	if c == nil {
		return ended
	}
	if err := c.Finish(ctx); err != nil {
		return &IncompleteUpload{ended, err}
	}
	return ended
}
