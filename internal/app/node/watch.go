package node

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/member"
)

// watches are the member's watches on the registry: table, leases and moves. They belong to the loop.
type watches struct {
	n      *Node
	clocks clockCheck
	active map[string]context.CancelFunc // by key or prefix
	begun  bool
}

// set changes the watched keys. When all initial values of the first set are delivered, it notifies the member.
func (w *watches) set(a member.Watch) {
	want := map[string]bool{}
	for _, key := range a.Keys {
		want[key] = true
	}
	for key, stop := range w.active {
		if !want[key] {
			stop()
			delete(w.active, key)
		}
	}
	synced := func() {}
	if !w.begun {
		var left atomic.Int64
		left.Store(int64(len(want)))
		synced = func() {
			if left.Add(-1) == 0 {
				w.n.postEvent(w.n.tasks.ctx, member.Synced{})
			}
		}
	}
	w.begun = true
	for key := range want {
		if w.active[key] == nil {
			w.begin(key, sync.OnceFunc(synced))
		}
	}
}

func (w *watches) begin(key string, synced func()) {
	ctx, stop := context.WithCancel(w.n.tasks.ctx)
	w.active[key] = stop
	w.n.tasks.Go(func(context.Context) {
		w.n.watchKey(ctx, key, synced, func(e bus.Entry) {
			w.n.postEvent(ctx, member.Entry{Key: e.Key, Value: e.Value, Revision: e.Revision})
			if of, ahead, apart := w.clocks.renewed(e, time.Now()); apart {
				w.n.log.Warn("the clocks of two nodes differ, so times in logs and records are not comparable: synchronize them "+
					"with NTP",
					"node", of, "ahead", ahead.Round(time.Second))
			}
		})
	})
}

// watchKey calls f with each state of a key, or of all keys with a prefix that ends in "/", until ctx ends. It calls
// synced after the initial states.
func (n *Node) watchKey(ctx context.Context, key string, synced func(), f func(bus.Entry)) {
	err := n.cfg.Bus.Watch(ctx, key, func(e bus.Entry) {
		switch {
		case e.Key == "":
			synced()
		case e.Key == key || strings.HasSuffix(key, "/"):
			f(e)
		}
	})
	if ctx.Err() == nil {
		n.fail(fmt.Errorf("watch %s in the registry: %w", key, err))
	}
}
