package nodes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kumo/internal/app/node"
	"kumo/internal/app/session"
	"kumo/internal/base/stats"
	"kumo/internal/state/journal/stream"
)

func (m *membership) run(ctx context.Context) (*stats.Report, error) {
	m.engine.Pause(true)
	record, err := m.awaitStart(ctx)
	if err != nil {
		return nil, err
	}
	if err := m.checkSettings(record.Settings); err != nil {
		return nil, err
	}
	m.applySettings(record.Settings)
	crawling, stop := context.WithCancel(ctx)
	defer stop()
	taking, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	came := make(chan struct{})
	go func() { defer close(came); m.waiter.withdrawOnJoin(crawling) }()
	defer func() { stop(); <-came }()
	counted := m.counter.start(crawling)
	defer func() { stop(); <-counted }()
	var report *stats.Report
	ended := make(chan error, 1)
	go func() {
		var err error
		report, err = m.crawl.Run(crawling)
		if err != nil { // otherwise the crawl is done, and the node ends later
			leave(errors.Join(errEnded, err))
		}
		ended <- err
	}()
	err = m.node.Run(taking)
	// A leaving node is complete only after the upload.
	m.n.finishing.Store(m.upload.uploader != nil)
	if err == nil { // the engine was told to finish
		defer time.AfterFunc(endTimeout, stop).Stop()
	} else {
		m.crawl.SetEndReason(node.EndReason(err))
		stop()
	}
	failed := <-ended
	m.shipRest(ctx)
	m.recordJoined(ctx, err)
	if errors.Is(err, node.ErrLeft) {
		m.recordPages(ctx)
		m.dropLog(ctx)
	}
	switch {
	case errors.Is(err, stream.ErrSealed), errors.Is(failed, stream.ErrSealed): // whichever noticed it first
		return report, fmt.Errorf("%w: %w", node.ErrLost, errors.Join(err, failed))
	case errors.Is(err, errEnded):
		return report, failed
	case session.IsStop(failed):
		return report, err
	}
	return report, errors.Join(err, failed)
}

var errEnded = errors.New("the engine has ended")

const endTimeout = 5 * time.Second

// shipRest gives the log some time to become complete, in case the node does not return.
func (m *membership) shipRest(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	if err := m.journal.Ship(ctx, m.journal.End()); err != nil {
		m.n.Log.Debug("the log is not complete", "err", err)
	}
}

// recordJoined checks whether a failed node ever became a member: it records its membership in advance.
func (m *membership) recordJoined(ctx context.Context, err error) {
	if m.wasMember || err == nil || isEnd(err) || ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	if errors.Is(m.checkMember(ctx), node.ErrLost) {
		m.n.home.keep.Store(false)
	}
}

// recordPages records the page count of this leaving node, whose lease is gone.
func (m *membership) recordPages(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	if _, err := (node.Totals{Registry: m.bus}).AddDeparted(ctx,
		node.Pages{m.id.Node(): m.crawl.Stats.Pages()}); err != nil {
		m.n.Log.Debug("cannot record the page count of this node", "err", err)
	}
}

// dropLog deletes the log of a node that has transferred all its data. The last node of a cluster stays in the table,
// and keeps its log.
func (m *membership) dropLog(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	if err := m.checkMember(ctx); !errors.Is(err, node.ErrLost) {
		return
	}
	err := errors.Join(m.bus.Drop(ctx, logOf(m.id.Node())), deletePlace(ctx, m.bus, m.id.Node()))
	if err != nil {
		m.n.Log.Warn("cannot delete the log of this node", "err", err)
		return
	}
	m.dropped = true
}
