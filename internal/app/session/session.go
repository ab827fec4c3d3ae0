// Package session runs a crawl from start to end. During the run it answers queries, applies changed settings and
// copies the crawl's folder. At the end it reports the result. The caller chooses the parts of the crawl; see [Parts].
package session

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"kumo/internal/app/folder"
	"kumo/internal/app/job"
	"kumo/internal/base/stats"
	"kumo/internal/base/wait"
	"kumo/internal/base/weburl"
	"kumo/internal/content/fetch"
	"kumo/internal/engine/crawl"
	"kumo/internal/state/frontier"
	"kumo/internal/state/journal"
	"kumo/internal/state/recovery"
	"kumo/internal/state/store"
)

// Parts are the parts of a session, which owns and closes them.
type Parts struct {
	Job      *job.Job
	SeedURLs []weburl.URL   // of the job, without those of its file
	Folder   *folder.Folder // nil: nothing is stored on disk
	Journal  journal.Journal
	// JournalFiles returns the files with the journal's batches up to a position. It is only called if there is a
	// folder.
	JournalFiles func(end journal.Position) ([]folder.Part, error)
	State        *recovery.State // as recovered
	Views        recovery.Views
	Fetcher      *fetch.Client
	Engine       *crawl.Engine
	Stores       []store.Store     // closed by the engine if it ends in order
	Closers      []func() error    // closers of all parts but the folder, in the order of calls
	Advise       func(error) error // adds advice to an error of the engine; may be nil

	Resumed bool // the crawl resumes an earlier run
	Known   int  // URLs known at the start
	Waiting int  // URLs waiting at the start
}

// Close closes the existing parts, the folder last.
func (p *Parts) Close() (err error) {
	for _, closed := range p.Closers {
		err = errors.Join(err, closed())
	}
	for _, s := range p.Stores {
		_ = s.Close() // its files remain as of the last commit; the next run resumes from there
	}
	if p.Folder != nil {
		err = errors.Join(err, p.Folder.Close())
	}
	return err
}

// A Session is a crawl that is ready to run once.
type Session struct {
	Parts
	Stats    *stats.Counter
	Frontier *frontier.Frontier

	changing sync.Mutex // held while settings change

	endReason atomic.Pointer[string] // reason given by whoever stopped the run; nil if nobody did
	outlook   atomic.Pointer[Outlook]
	watching  wait.Heartbeat // of watch
	curves    stats.Recorder
	stop      atomic.Pointer[context.CancelFunc] // ends the run; nil: not started
	run       atomic.Pointer[run]                // nil: not started
}

// New creates a session. The caller closes it.
func New(p Parts) *Session {
	return &Session{Parts: p, Stats: p.State.Stats, Frontier: p.Views.Frontier}
}

// Seeds returns how many seeds of the job's file were admitted, and their total; 0 and 0 if there is no file.
func (s *Session) Seeds() (taken, all int64) { return s.Engine.Seeding.Seeds() }

// URLsKnown returns the number of known URLs in scope.
func (s *Session) URLsKnown() int { return s.Engine.Known() }

// URLsWaiting returns the number of URLs in the frontier.
func (s *Session) URLsWaiting() int { return s.Frontier.Counts().URLs }

// Outage returns whether the network is down, and the number of outages.
func (s *Session) Outage() crawl.Outage { return s.Engine.Outage() }

// ClusterHooks connect a crawl to the other nodes if it is one node's part of a larger crawl.
type ClusterHooks struct {
	// Ship wraps the journal so that it is replicated for the other nodes; nil: no replication.
	Ship   func(local journal.Journal) (journal.Journal, error)
	Join   func(*recovery.State, *crawl.Parts) error // connects the engine to the other nodes
	Server bool                                      // this process also runs a server of the cluster
}

// An Opener creates a session of a node's part of a crawl in a locked folder. The folder is closed with the session, or
// on an error.
type Opener func(*folder.Folder, *job.Job, *ClusterHooks) (*Session, error)
