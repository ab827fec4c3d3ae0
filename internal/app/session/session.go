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
	"kumo/internal/base/weburl"
	"kumo/internal/content/fetch"
	"kumo/internal/engine/crawl"
	"kumo/internal/state/frontier"
	"kumo/internal/state/journal"
	"kumo/internal/state/recovery"
	"kumo/internal/state/store"
)

// Parts are what a session is made of. They are its own, and are closed with it.
type Parts struct {
	Job      *job.Job
	SeedURLs []weburl.URL   // the job's, without its file's
	Folder   *folder.Folder // nil: nothing is kept on disk
	Journal  journal.Journal
	// JournalFiles are the files that have the journal's batches up to a position. It is not asked without a folder.
	JournalFiles func(end journal.Position) ([]folder.Part, error)
	State        *recovery.State // as it was recovered
	Views        recovery.Views
	Fetcher      *fetch.Client
	Engine       *crawl.Engine
	Stores       []store.Store     // the engine closes them when it ends in order
	Closers      []func() error    // of all else but the folder, in the order in which they are called
	Advise       func(error) error // adds to an error of the engine what can be done about it; nil: nothing

	Resumed bool // the crawl goes on from an earlier run
	Known   int  // URLs known at the start
	Waiting int  // URLs waiting at the start
}

// Close closes what there is of the parts; the folder goes last.
func (p *Parts) Close() (err error) {
	for _, closed := range p.Closers {
		err = errors.Join(err, closed())
	}
	for _, s := range p.Stores {
		_ = s.Close() // its files are as the last commit left them; the next run goes on from there
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

	changing sync.Mutex // held by who changes settings

	endReason atomic.Pointer[string] // how the run ended that somebody else has ended; nil: nobody has
	outlook   atomic.Pointer[Outlook]
	curves    stats.Recorder
	stop      atomic.Pointer[context.CancelFunc] // ends the run; nil: it has not begun
	run       atomic.Pointer[run]                // nil: it has not begun
}

// New makes a session. The caller closes it.
func New(p Parts) *Session {
	return &Session{Parts: p, Stats: p.State.Stats, Frontier: p.Views.Frontier}
}

// Seeds says how many seeds of the job's file were taken in, and how many it has; 0 and 0 where there is none.
func (s *Session) Seeds() (taken, all int64) { return s.Engine.Seeding.Seeds() }

// URLsKnown is the number of URLs met within reach so far.
func (s *Session) URLsKnown() int { return s.Engine.Known() }

// URLsWaiting is how many URLs the frontier has.
func (s *Session) URLsWaiting() int { return s.Frontier.Counts().URLs }

// Outage is whether the crawl is cut off from the web now, and how often it was.
func (s *Session) Outage() crawl.Outage { return s.Engine.Outage() }

// ClusterHooks are what makes a crawl one node's part of a crawl of several.
type ClusterHooks struct {
	// Ship makes of the journal one that is shipped to where the other nodes find it; nil: they do not
	Ship   func(local journal.Journal) (journal.Journal, error)
	Join   func(*recovery.State, *crawl.Parts) error // tells the engine of the other nodes
	Server bool                                      // this process is a server of the cluster, too
}

// An Opener makes a session of a node's part of a crawl in a folder that is held. The folder is closed with the
// session, and with an error.
type Opener func(*folder.Folder, *job.Job, *ClusterHooks) (*Session, error)
