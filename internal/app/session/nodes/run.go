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
	m.release()
	record, err := m.awaitStart(ctx)
	if err != nil {
		return nil, err
	}
	if m.sendsRest(&record) {
		return nil, m.sinks.finishRest(ctx)
	}
	if err := m.checkSettings(record.Settings); err != nil {
		m.release = m.holdLease(context.WithoutCancel(ctx)) // other nodes may have started already
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
	m.counter.beginRun(record.Started)
	counted := m.counter.start(crawling)
	defer func() { stop(); <-counted }()
	if turns := m.n.Turns; turns != nil {
		turns.Begin(m.engine.Interrupt)
		defer turns.End()
	}
	var report *stats.Report
	over := make(chan error, 1)
	go func() {
		var err error
		report, err = m.crawl.Run(crawling)
		if err != nil { // otherwise the crawl is done, and the node ends later
			leave(errors.Join(errEnded, err))
		}
		over <- err
	}()
	err = m.node.Run(taking)
	if ctx.Err() != nil && !m.n.leaving.Load() { // the same process may open the folder again at once
		m.release = m.holdLease(context.WithoutCancel(ctx))
	}
	// A leaving node is complete only after the upload.
	m.n.finishing.Store(m.upload.uploader != nil)
	if err == nil { // the engine was told to finish
		defer time.AfterFunc(endTimeout, stop).Stop()
	} else {
		m.crawl.SetEndReason(node.EndReason(err))
		stop()
	}
	failed := <-over
	if report != nil {
		report.Placement = m.placement()
		failed = errors.Join(failed, m.crawl.Folder.WriteReport(report))
	}
	m.shipRest(ctx)
	m.recordJoined(ctx, err)
	ended := m.sinks.finish(ctx, report, m.endError(err, failed)) // before the log is deleted
	if errors.Is(err, node.ErrLeft) {
		m.recordPages(ctx)
		m.dropLog(ctx)
	}
	return report, ended
}

// endError combines the errors of the node and of its engine.
func (m *membership) endError(err, failed error) error {
	switch {
	case errors.Is(err, stream.ErrSealed), errors.Is(failed, stream.ErrSealed): // whichever noticed it first
		return fmt.Errorf("%w: %w", node.ErrLost, errors.Join(err, failed))
	case errors.Is(err, errEnded):
		return failed
	case session.IsStop(failed):
		return err
	}
	return errors.Join(err, failed)
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
	if err := m.putResults(ctx, true); err != nil {
		m.n.Log.Debug("cannot share this node's report", "err", err)
	}
	if _, err := (node.Totals{Registry: m.bus}).AddDepartedBytes(ctx,
		node.Pages{m.id.Node(): m.crawl.Stats.Totals().Bytes}); err != nil {
		m.n.Log.Debug("cannot record the byte count of this node", "err", err)
	}
	if err := (node.Control{Registry: m.bus}).SetFinalPages(ctx, m.id.Node(), m.crawl.Engine.CountedPages()); err != nil {
		m.n.Log.Debug("cannot record how much this node used of the page limit", "err", err)
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
	self := m.id.Node()
	err := errors.Join(m.bus.Drop(ctx, logOf(self)), deleteKey(ctx, m.bus, node.SentKey(self)),
		deleteKey(ctx, m.bus, node.PlaceKey(self)))
	if err != nil {
		m.n.Log.Warn("cannot delete the log of this node", "err", err)
		return
	}
	m.dropped = true
}
