package session

import (
	"kumo/internal/app/folder"
	"kumo/internal/app/job"
	"kumo/internal/engine/crawl"
	"kumo/internal/state/journal"
	"kumo/internal/state/recovery"
)

// Peers are what makes a crawl one node's part of a crawl of several.
type Peers struct {
	// Ship makes of the journal one that is shipped to where the other nodes find it; nil: they do not
	Ship   func(local journal.Journal) (journal.Journal, error)
	Join   func(*recovery.State, *crawl.Parts) error // tells the engine of the other nodes
	Server bool                                      // this process is a server of the cluster, too
}

// An Opener makes a session of a node's part of a crawl in a folder that is held. The folder is closed with the
// session, and with an error.
type Opener func(*folder.Folder, *job.Job, *Peers) (*Session, error)
