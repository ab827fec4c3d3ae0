package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"kumo/internal/bus"
	"kumo/internal/node"
	"kumo/internal/strategy"
	"kumo/internal/wire"
)

// A waiter says that a node waits for the crawl's start, and has not become a member yet: people see it, and the first
// hosts of a crawl are not given away before it is there.
type waiter struct {
	l      *session
	rev    uint64
	said   time.Time
	rivals map[string]uint64 // revisions of what others of the same name had said when this one came
}

func (w *waiter) key() string { return node.WaitingPrefix + string(w.l.id.Node()) }

// here says it again when it is time. It returns an error if another process of the same name was there first, and is
// there still.
func (w *waiter) here(ctx context.Context) error {
	if time.Since(w.said) < w.l.n.timing.Beat {
		return nil
	}
	if err := w.alone(ctx); err != nil {
		return err
	}
	w.say(ctx)
	return nil
}

// alone looks for others of the same name.
func (w *waiter) alone(ctx context.Context) error {
	now, err := entries(ctx, w.l.bus, node.WaitingPrefix)
	if err != nil {
		return nil // it is seen the next time
	}
	self := w.l.id.Node()
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

func (w *waiter) say(ctx context.Context) {
	data, err := json.Marshal(node.Report{Name: w.l.id.Name, Version: wire.Version, Address: w.l.n.opts.Address,
		State: node.Waiting, Clock: time.Now().UTC()})
	if err != nil {
		return // of plain fields
	}
	w.said = time.Now()
	rev, err := w.l.bus.Put(ctx, w.key(), data, w.rev)
	if errors.Is(err, bus.ErrStale) { // an earlier process of this node's has said it, or a try whose end is not known
		if e, err := w.l.bus.Get(ctx, w.key()); err == nil {
			w.rev = e.Revision
		}
		return
	}
	if err == nil {
		w.rev = rev
	}
}

// done says that the node does not wait any more as soon as it is a member. Until then the control unit knows that it
// comes.
func (w *waiter) done(ctx context.Context) {
	look := time.NewTicker(w.l.n.timing.Beat / 4)
	defer look.Stop()
	for !w.l.router.Member() {
		select {
		case <-ctx.Done():
			return // it is said when the node is closed
		case <-look.C:
		}
	}
	w.gone(ctx)
}

// goneWait is how long a node tries to say that it does not wait any more.
const goneWait = 2 * time.Second

func (w *waiter) gone(ctx context.Context) {
	if w.rev == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), goneWait)
	defer cancel()
	if err := w.l.bus.Delete(ctx, w.key(), w.rev); err != nil {
		w.l.n.opts.Log.Debug("a write is in doubt", "key", w.key(), "err", err)
	}
	w.rev = 0
}

// waiting reads which nodes wait.
func (c *Control) waiting(ctx context.Context) (all []NodeStatus, err error) {
	found, err := entries(ctx, c.control.Registry, node.WaitingPrefix)
	if err != nil {
		return nil, err
	}
	for _, e := range found {
		r, err := node.ParseReport(e.Value)
		if err == nil && r.Waits() {
			all = append(all, NodeStatus{Node: strategy.Node(strings.TrimPrefix(e.Key, node.WaitingPrefix)), Slot: -1,
				Report: r})
		}
	}
	return all, nil
}

// entries reads what there is with a prefix.
func entries(ctx context.Context, r bus.Registry, prefix string) ([]bus.Entry, error) {
	ctx, enough := context.WithCancelCause(ctx)
	defer enough(nil)
	found := map[string]bus.Entry{}
	err := r.Watch(ctx, prefix, func(e bus.Entry) {
		switch {
		case e.Key == "":
			enough(errEnough)
		case context.Cause(ctx) != nil:
		case e.Value == nil:
			delete(found, e.Key)
		default:
			found[e.Key] = e
		}
	})
	if !errors.Is(context.Cause(ctx), errEnough) {
		if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			err = bus.ErrUnavailable
		}
		return nil, fmt.Errorf("read %s from the registry: %w", prefix, err)
	}
	return slices.Collect(maps.Values(found)), nil
}

var errEnough = errors.New("that was all")
