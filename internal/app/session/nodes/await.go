package nodes

import (
	"context"
	"errors"
	"time"

	"kumo/internal/app/node"
	"kumo/internal/base/settings"
	"kumo/internal/base/wait"
	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/desired"
)

// awaitSettings waits until the crawl has settings, if they are needed, and applies them to the job.
func (m *membership) awaitSettings(ctx context.Context) error {
	settle := m.n.ApplySettings
	if settle == nil {
		return nil
	}
	r, err := m.await(ctx, func(r *desired.Record) bool {
		return r.State != desired.Waiting && (len(r.Settings) > 0 || r.State != desired.Stopping)
	})
	if err != nil {
		return err
	}
	m.settings = r.Settings
	return settle(m.job, settings.FromMap(r.Settings))
}

// awaitStart waits until a stopped or finished crawl is started again, so that all nodes join at the same time. A node
// that joined earlier would declare absent nodes dead. If this node has records of a finished crawl that were not sent,
// it waits no longer than until they are, or cannot be sent for some time.
func (m *membership) awaitStart(ctx context.Context) (desired.Record, error) {
	return m.await(ctx, func(r *desired.Record) bool {
		return r.State != desired.Stopping && r.State != desired.Done || m.sendsRest(r) && m.sinks.sender.CaughtUp()
	})
}

// sendsRest reports whether the crawl is done, and this node is only needed for records that were not sent.
func (m *membership) sendsRest(r *desired.Record) bool {
	return r.State == desired.Done && m.sinks.behind
}

const statePollInterval = time.Second // between two reads of the record

// await waits until is returns true for the crawl's record, or the nodes are told to end. While the servers do not
// answer, the last record applies. The other nodes see that this one is waiting.
func (m *membership) await(ctx context.Context, is func(*desired.Record) bool) (desired.Record, error) {
	var r desired.Record
	var was desired.State // of r; "": none was read
	changed, stop := m.changes(ctx)
	defer stop()
	defer m.n.waiting.Stop()
	for {
		now, _, err := (node.Control{Registry: m.bus}).Record(ctx)
		if err == nil {
			m.n.waiting.Beat()
			r = now
		}
		switch {
		case err != nil && !errors.Is(err, bus.ErrUnavailable):
			return r, err
		case (err == nil || was != "") && is(&r):
			return r, nil
		case m.n.leaving.Load():
			return r, context.Canceled
		case err == nil && r.State == desired.Stopping && was != "" && was != r.State:
			return r, node.ErrStopped
		case was == "" && m.sendsRest(&r):
			m.n.Log.Info("the crawl is done: this node sends the rest of its records to the sinks, and then ends")
		case was == "":
			m.n.Log.Info("waiting for the crawl to be started", "state", r.State)
		}
		if err == nil {
			was = r.State
		}
		if err := m.waiter.announce(ctx); err != nil {
			return r, err
		}
		select {
		case <-ctx.Done():
			return r, context.Cause(ctx)
		case <-changed:
		case <-time.After(statePollInterval):
		}
	}
}

// changes returns a channel that signals changes of the crawl's record, and a function that stops the watch. It makes a
// waiting node react at once.
func (m *membership) changes(ctx context.Context) (changed <-chan struct{}, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	news, ended := make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(ended)
		err := m.bus.Watch(ctx, node.RecordKey, func(bus.Entry) { wait.Wake(news) })
		if ctx.Err() == nil {
			m.n.Log.Debug("cannot watch the crawl's record; polling it instead", "err", err)
		}
	}()
	return news, func() { cancel(); <-ended }
}
