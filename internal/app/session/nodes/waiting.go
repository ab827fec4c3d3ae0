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

// A waiter says that a node waits for the crawl's start, and has not become a member yet: people see it, and the first
// hosts of a crawl are not given away before it is there.
type waiter struct {
	m         *membership
	rev       uint64
	announced time.Time
	rivals    map[string]uint64 // revisions of what others of the same name had said when this one came
}

func (w *waiter) key() string { return node.WaitingPrefix + string(w.m.id.Node()) }

// announce says it again when it is time. It returns an error if another process of the same name was there first, and is
// there still.
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
		return nil // it is seen the next time
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
		Layout: w.m.n.Layout, State: desired.Waiting, Clock: time.Now().UTC()})
	if err != nil {
		return // of plain fields
	}
	w.announced = time.Now()
	rev, err := w.m.bus.Put(ctx, w.key(), data, w.rev)
	if errors.Is(err, bus.ErrStale) { // an earlier process of this node's has said it, or a try whose end is not known
		if e, err := w.m.bus.Get(ctx, w.key()); err == nil {
			w.rev = e.Revision
		}
		return
	}
	if err == nil {
		w.rev = rev
	}
}

// withdrawOnJoin says that the node does not wait any more as soon as it is a member. Until then the control unit knows that it
// comes.
func (w *waiter) withdrawOnJoin(ctx context.Context) {
	for range wait.Ticks(ctx, w.m.n.Timing.Beat/4) {
		if w.m.router.Member() {
			w.withdraw(ctx)
			return
		}
	} // it is said when the node is closed
}

// withdrawTimeout is how long a node tries to say that it does not wait any more.
const withdrawTimeout = 2 * time.Second

func (w *waiter) withdraw(ctx context.Context) {
	if w.rev == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawTimeout)
	defer cancel()
	if err := w.m.bus.Delete(ctx, w.key(), w.rev); err != nil {
		w.m.n.Log.Debug("a write is in doubt", "key", w.key(), "err", err)
	}
	w.rev = 0
}
