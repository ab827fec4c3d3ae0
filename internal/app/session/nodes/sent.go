package nodes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"kumo/internal/app/folder"
	"kumo/internal/app/job"
	"kumo/internal/app/node"
	"kumo/internal/app/session"
	"kumo/internal/base/stats"
	"kumo/internal/base/wait"
	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/strategy"
	"kumo/internal/content/policy"
	"kumo/internal/state/store"
)

// A node's records are in its own files, so only this node can send them to the crawl's sinks. It publishes how far
// each sink has acknowledged them. If the node dies, the node that takes over has the pages fetched again whose records
// are not acknowledged.

// memberSinks sends a node's records to the crawl's sinks.
type memberSinks struct {
	m         *membership
	sender    session.Sender     // nil: the crawl has no sinks
	cancel    context.CancelFunc // ends the publisher
	publisher sync.WaitGroup
	rev       uint64           // revision of the published value
	published map[string]int64 // nil: none
	started   bool
	behind    bool // records of earlier processes were not sent at the start
}

const pagesName = "pages.jsonl"

// sendInterval is the time between two publications of the acknowledged lengths. It bounds how many pages of a dead
// node are fetched again although their records were sent.
const sendInterval = 2 * time.Second

// open creates the sender before the crawl is opened, as one of its stores.
func (s *memberSinks) open() (err error) {
	s.cancel = func() {}
	urls := s.m.settings[job.SinkKey]
	if s.m.n.NewSender == nil || len(urls) == 0 {
		return nil
	}
	s.sender, err = s.m.n.NewSender(s.m.job, urls)
	return err
}

// start starts to send the records, also those of earlier processes.
func (s *memberSinks) start(ctx context.Context) error {
	if s.sender == nil {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	behind, err := s.sender.Start(ctx)
	if err != nil {
		return err
	}
	s.started, s.behind = true, behind
	ctx, s.cancel = context.WithCancel(ctx)
	s.publisher.Go(func() {
		for range wait.Every(ctx, sendInterval) {
			if err := s.publish(ctx); err != nil && ctx.Err() == nil {
				s.m.n.Log.Debug("cannot publish how many records the sinks have", "err", err)
			}
		}
	})
	return nil
}

// publish publishes the acknowledged lengths if they have changed.
func (s *memberSinks) publish(ctx context.Context) error {
	now := s.acknowledged()
	if s.published != nil && maps.Equal(now, s.published) {
		return nil
	}
	value, err := json.Marshal(now)
	if err != nil {
		return err
	}
	key := node.SentKey(s.m.id.Node())
	rev, err := s.m.bus.Put(ctx, key, value, s.rev)
	if errors.Is(err, bus.ErrStale) { // an earlier process published it, or this node was declared dead
		e, readErr := s.m.bus.Get(ctx, key)
		if readErr != nil || e.Value == nil && s.published != nil {
			return readErr
		}
		rev, err = s.m.bus.Put(ctx, key, value, e.Revision)
	}
	if err == nil {
		s.rev, s.published = rev, now
	}
	return err
}

// finish sends the rest at the end of a run. A node that ends for good waits until the sinks have all records, or accept
// none for some time. A stopped node gives them a few seconds, and sends the rest when it opens the crawl again. A node
// that was declared dead sends nothing more: the others have the pages fetched again.
func (s *memberSinks) finish(ctx context.Context, report *stats.Report, ended error) error {
	if !s.started || errors.Is(ended, node.ErrLost) {
		return ended
	}
	s.m.n.finishing.Store(true)
	sending, cancel := context.WithCancel(ctx)
	defer cancel()
	resumes := ended != nil && !errors.Is(ended, node.ErrLeft) && !errors.Is(ended, policy.ErrLimit)
	if resumes {
		cancel()
	}
	err := s.sender.Finish(sending)
	s.stop()
	if report != nil {
		if err := s.m.crawl.ReportSinks(report); err != nil {
			s.m.n.Log.Warn("cannot write the report", "why", err)
		}
	}
	last, done := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer done()
	if publishErr := s.publish(last); publishErr != nil {
		s.m.n.Log.Debug("cannot publish how many records the sinks have", "err", publishErr)
	}
	switch {
	case err == nil:
		return ended
	case resumes:
		s.m.n.Log.Warn("not all records are in the sinks: this node sends the rest when it opens the crawl again", "why", err)
		return ended
	}
	return &session.IncompleteSending{RunErr: ended, SendErr: err}
}

// finishRest ends a node that has sent the records of a finished crawl, and updates the last report.
func (s *memberSinks) finishRest(ctx context.Context) error {
	report, err := folder.ReadReport(s.m.folder.Dir)
	if err != nil {
		s.m.n.Log.Warn("cannot update the report", "why", err)
	}
	err = s.finish(ctx, report, nil)
	if err == nil {
		s.m.n.Log.Info("the sinks have all records of this node")
	}
	return err
}

// stop stops sending; it may be called repeatedly.
func (s *memberSinks) stop() {
	if !s.started {
		return
	}
	s.cancel()
	s.publisher.Wait()
	s.sender.Abort()
	s.started = false
}

// hasSent reports whether the sinks have the records up to some lengths.
func (s *memberSinks) hasSent(marks []store.Mark) bool {
	length, _ := store.FindMark(marks, pagesName)
	for _, n := range s.acknowledged() {
		if n < length {
			return false
		}
	}
	return true
}

// acknowledged returns the acknowledged lengths by sink; nil without sinks.
func (s *memberSinks) acknowledged() map[string]int64 {
	if s.sender == nil {
		return nil
	}
	return s.sender.Acknowledged()
}

// sentBefore returns a function that reports whether all sinks of the crawl have the records of a dead node up to some
// lengths; nil if the crawl has no sinks.
func (s *failedNodes) sentBefore(ctx context.Context, dead strategy.Node) (func([]store.Mark) bool, error) {
	if s.sender == nil {
		return nil, nil
	}
	e, err := s.bus.Get(ctx, node.SentKey(dead))
	if err != nil {
		return nil, err
	}
	sent := map[string]int64{}
	if e.Value != nil {
		if err := json.Unmarshal(e.Value, &sent); err != nil {
			return nil, fmt.Errorf("read how many records of %s the sinks have: %w", dead, err)
		}
	}
	least := int64(-1)
	for name := range s.sender.Acknowledged() {
		if n := sent[name]; least < 0 || n < least {
			least = n
		}
	}
	return func(grown []store.Mark) bool {
		length, grew := store.FindMark(grown, pagesName)
		return !grew || length <= least
	}, nil
}

// deleteKey deletes an entry of the registry, if it exists.
func deleteKey(ctx context.Context, b bus.Bus, key string) error {
	e, err := b.Get(ctx, key)
	if err != nil || e.Value == nil {
		return err
	}
	return b.Delete(ctx, key, e.Revision)
}
