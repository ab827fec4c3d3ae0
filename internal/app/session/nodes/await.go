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

// awaitSettings waits until the crawl has settings, if they matter, and makes them the job's.
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

// awaitStart waits until the crawl goes on, if it was stopped or is done: then all nodes come at once, with what they
// have ready. Who came while others are not there would take them for dead.
func (m *membership) awaitStart(ctx context.Context) (desired.Record, error) {
	return m.await(ctx, func(r *desired.Record) bool { return r.State != desired.Stopping && r.State != desired.Done })
}

const statePollInterval = time.Second // how often

// await waits until the crawl's record is as it should be, or says meanwhile that nodes are to end. Others see the node
// wait.
func (m *membership) await(ctx context.Context, is func(*desired.Record) bool) (desired.Record, error) {
	var was desired.State
	changed, stop := m.changes(ctx)
	defer stop()
	for {
		r, _, err := (node.Control{Registry: m.bus}).Record(ctx)
		switch {
		case err == nil && is(&r) || err != nil && !errors.Is(err, bus.ErrUnavailable):
			return r, err
		case m.n.leaving.Load():
			return r, context.Canceled
		case err == nil && r.State == desired.Stopping && was != "" && was != r.State:
			return r, node.ErrStopped
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

// changes tells when the crawl's record may have changed, until it is stopped: who waits for the start learns of it at
// once.
func (m *membership) changes(ctx context.Context) (changed <-chan struct{}, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	news, ended := make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(ended)
		err := m.bus.Watch(ctx, node.RecordKey, func(bus.Entry) { wait.Wake(news) })
		if ctx.Err() == nil {
			m.n.Log.Debug("the crawl's record is looked at without being told of changes", "err", err)
		}
	}()
	return news, func() { cancel(); <-ended }
}
