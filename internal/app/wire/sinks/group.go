package sinks

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"kumo/internal/app/job"
	"kumo/internal/app/session"
	"kumo/internal/archive/sink"
	"kumo/internal/archive/sink/follow"
	"kumo/internal/base/stats"
	"kumo/internal/base/vfs"
)

// A Group sends a crawl's records to its sinks while it runs.
type Group struct {
	dir       string
	followers []*follow.Follower
	group     sync.WaitGroup
	errs      []error // of the followers; only used by their goroutines until they have ended
	cancel    context.CancelFunc
	failed    func(error) // called when an error of this machine ends a follower; may be nil
}

var _ session.Sender = (*Group)(nil)

// NewGroup returns a group without sinks for the crawl in dir.
func NewGroup(dir string) *Group { return &Group{dir: dir, cancel: func() {}} }

// Add adds a sink.
func (g *Group) Add(f *follow.Follower) { g.followers = append(g.followers, f) }

// Len returns the number of sinks.
func (g *Group) Len() int { return len(g.followers) }

// Start reads the positions of the sinks and starts to send, until Finish or Abort. It reports whether records of
// earlier runs are not sent yet. The crawl must be open, so that its files end where the journal does, and not running.
func (g *Group) Start(ctx context.Context) (behind bool, err error) {
	for _, f := range g.followers {
		if err := f.Begin(); err != nil {
			return false, err
		}
		if err := f.FollowStatic(); err != nil {
			return false, err
		}
	}
	behind = !g.CaughtUp()
	ctx, g.cancel = context.WithCancel(context.WithoutCancel(ctx))
	g.errs = make([]error, len(g.followers))
	for i, f := range g.followers {
		g.group.Go(func() {
			err := f.Run(ctx)
			if _, behind := errors.AsType[*follow.BacklogError](err); err != nil && !behind && g.failed != nil {
				g.failed(err) // at once, because a node may run for long
			}
			g.errs[i] = err
		})
	}
	return behind, nil
}

// FinalFlushTimeout limits how long a sink may take the remaining records after the user has stopped a crawl.
const FinalFlushTimeout = 5 * time.Second

// Finish waits until the sinks have all records or have failed, and joins their errors. If the user stops the crawl, it
// waits at most FinalFlushTimeout.
func (g *Group) Finish(ctx context.Context) error {
	for _, f := range g.followers {
		f.End()
	}
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(FinalFlushTimeout, g.cancel) })
	defer stop()
	g.group.Wait()
	g.cancel()
	return follow.Advise(errors.Join(g.errs...), g.dir)
}

// Abort stops sending. Records that are not sent remain in the files.
func (g *Group) Abort() {
	g.cancel()
	g.group.Wait() // the rest stays in the files
}

// Status returns the figures of all sinks.
func (g *Group) Status() (all []stats.Sink) {
	for _, f := range g.followers {
		all = append(all, f.Status())
	}
	return all
}

// Acknowledged returns, for each sink by its name, the number of bytes of pages.jsonl whose records it has stored.
func (g *Group) Acknowledged() map[string]int64 {
	all := map[string]int64{}
	for _, f := range g.followers {
		all[f.Name()] = f.Acknowledged()
	}
	return all
}

// CaughtUp reports whether all sinks have all records, or cannot receive them for some time.
func (g *Group) CaughtUp() bool {
	for _, f := range g.followers {
		if !f.CaughtUp() {
			return false
		}
	}
	return true
}

// A Watch receives changes of a sink's availability.
type Watch struct {
	Failed   func(sink string, err error) // it accepts no records
	Works    func(sink string)            // it accepts records again
	GivenUp  func(err error)              // sending has ended because of an error of this machine
	Attempt  func(*sink.Attempt)          // as OnAttempt of [follow.Config]; may be nil
	Patience time.Duration                // for a sink that is unavailable after the crawl has ended
}

// follower returns a follower of a job's files that sends records to the sink at a URL.
func (w *Watch) follower(j *job.Job, at string) *follow.Follower {
	name := sink.Redact(at)
	return follow.New(follow.Config{Dir: j.Dir, Disk: vfs.OS, Name: name, Now: time.Now, Wait: sink.Sleep,
		Patience: w.Patience, OnFailure: func(err error) { w.Failed(name, err) },
		OnRecovery: func() { w.Works(name) }, OnAttempt: w.Attempt, Rules: rulesOf(j),
		Open: func(ctx context.Context) (sink.Sink, error) { return Open(ctx, at, io.Discard) }})
}

// NodeSender returns a group that sends the records of a node's part of a crawl, and adds it to the job. It does not
// connect to the sinks yet.
func NodeSender(j *job.Job, urls []string, w Watch) (*Group, error) {
	g := NewGroup(j.Dir)
	g.failed = w.GivenUp
	for i, at := range urls {
		if slices.Contains(urls[:i], at) {
			continue
		}
		if err := CheckShared(at); err != nil {
			return nil, err
		}
		f := w.follower(j, at)
		g.Add(f)
		j.Stores = append(j.Stores, f)
	}
	j.Sinks = g.Status
	return g, nil
}
