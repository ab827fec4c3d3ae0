package nodes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"kumo/internal/app/job"
	"kumo/internal/app/node"
	"kumo/internal/base/wait"
	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/desired"
	"kumo/internal/cluster/strategy"
)

// A waiter announces that a node waits for the crawl's start, and then for its membership. Users see it, and the first
// hosts of a crawl are not assigned before the node joins.
type waiter struct {
	m         *membership
	rev       uint64
	announced time.Time
	rivals    map[string]uint64 // revisions of the announcements of other nodes with the same name at the start
}

func (w *waiter) key() string { return node.WaitingPrefix + string(w.m.id.Node()) }

// announce renews the announcement when it is time. It returns an error if another process with the same name already
// waits.
func (w *waiter) announce(ctx context.Context) error {
	if time.Since(w.announced) < w.m.n.Timing.Beat {
		return nil
	}
	if err := w.checkRivals(ctx); err != nil {
		return err
	}
	w.publish(ctx)
	return nil
}

func (w *waiter) checkRivals(ctx context.Context) error {
	now, err := bus.ReadAll(ctx, w.m.bus, node.WaitingPrefix)
	if err != nil {
		return nil // it is seen next time
	}
	self := w.m.id.Node()
	others := map[string]uint64{}
	for _, e := range now {
		n := strategy.Node(strings.TrimPrefix(e.Key, node.WaitingPrefix))
		if n.Name() == self.Name() && n != self {
			others[e.Key] = e.Revision
		}
	}
	if w.rivals == nil {
		w.rivals = others
	}
	for key, was := range w.rivals {
		if is, there := others[key]; there && is != was {
			return fmt.Errorf("a node named %s waits in this cluster already: give this one another name", self.Name())
		}
	}
	return nil
}

func (w *waiter) publish(ctx context.Context) {
	data, err := json.Marshal(node.Report{Name: w.m.id.Name, Version: job.Version, Address: w.m.n.Address,
		Browser: w.m.n.Browser,
		Server:  w.m.n.cluster.Address(), Layout: w.m.n.Layout, State: desired.Waiting, Clock: time.Now().UTC()})
	if err != nil {
		return // plain fields only
	}
	w.announced = time.Now()
	rev, err := w.m.bus.Put(ctx, w.key(), data, w.rev)
	if errors.Is(err, bus.ErrStale) { // written by an earlier process, or by an attempt with unknown result
		if e, err := w.m.bus.Get(ctx, w.key()); err == nil {
			w.rev = e.Revision
		}
		return
	}
	if err == nil {
		w.rev = rev
	}
}

// withdrawOnJoin withdraws the announcement as soon as the node is a member. Until then the leader expects it.
func (w *waiter) withdrawOnJoin(ctx context.Context) {
	for range wait.Ticks(ctx, w.m.n.Timing.Beat/4) {
		if w.m.router.Member() {
			w.withdraw(ctx)
			return
		}
	} // otherwise it is withdrawn when the node is closed
}

// withdrawTimeout limits an attempt to withdraw the announcement.
const withdrawTimeout = 2 * time.Second

func (w *waiter) withdraw(ctx context.Context) {
	if w.rev == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawTimeout)
	defer cancel()
	if err := w.m.bus.Delete(ctx, w.key(), w.rev); err != nil {
		w.m.n.Log.Debug("the result of a write is unknown", "key", w.key(), "err", err)
	}
	w.rev = 0
}
