package wire

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"kumo/internal/bus"
	"kumo/internal/member"
	"kumo/internal/node"
	"kumo/internal/strategy"
)

// limitKey is the setting that bounds the pages of all nodes together. It may be another one with each start.
const limitKey = "limit"

// goneKey is where the registry has the pages of those who are members no more, so that the sum does not shrink.
const goneKey = "pages"

// A counter adds up the pages of all nodes, as their leases tell them, and stops the crawl when there are enough. The first member of the
// table does it. It is as exact as leases are young: a few seconds' pages too many are fetched.
type counter struct {
	l     *life
	limit int64
	first atomic.Bool             // this node is the first member
	last  map[strategy.Node]int64 // what the leases told the last time
}

// keepLimit has the limit kept until ctx ends; then the channel is closed.
func (l *life) keepLimit(ctx context.Context, settings map[string][]string) <-chan struct{} {
	ended := make(chan struct{})
	limit, _ := strconv.ParseInt(strings.Join(settings[limitKey], ""), 10, 64)
	if limit <= 0 {
		close(ended)
		return ended
	}
	c := &counter{l: l, limit: limit, last: map[strategy.Node]int64{}}
	var both sync.WaitGroup
	both.Go(func() { c.watch(ctx) })
	both.Go(func() { c.run(ctx) })
	go func() { both.Wait(); close(ended) }()
	return ended
}

// watch follows who is the first member.
func (c *counter) watch(ctx context.Context) {
	self := c.l.id.Node()
	err := c.l.bus.Watch(ctx, member.TableKey, func(e bus.Entry) {
		if e.Key != member.TableKey || e.Value == nil {
			return
		}
		t, err := member.ParseTable(e.Value)
		c.first.Store(err == nil && len(t.Members) > 0 && t.Members[0].Node == self)
	})
	if ctx.Err() == nil {
		c.l.n.warn(err) // of a bus that is closed, which ends the node, too
	}
}

func (c *counter) run(ctx context.Context) {
	tick := time.NewTicker(c.l.n.timing.Beat)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !c.first.Load() {
			continue
		}
		if err := c.look(ctx); err != nil && ctx.Err() == nil {
			c.l.n.opts.Log.Debug("the pages of all nodes are not counted", "err", err)
		}
	}
}

// look adds up, and stops the crawl if that is enough.
func (c *counter) look(ctx context.Context) error {
	leases, err := entries(ctx, c.l.bus, member.LeasePrefix)
	if err != nil {
		return err
	}
	now := map[strategy.Node]int64{}
	for _, e := range leases {
		lease, err := member.ParseLease(e.Value)
		if err != nil || lease.Revoked {
			continue
		}
		if r, err := node.ParseReport(lease.Report); err == nil {
			now[strategy.Node(strings.TrimPrefix(e.Key, member.LeasePrefix))] = r.Pages
		}
	}
	gone, err := c.gone(ctx, now)
	if err != nil {
		return err
	}
	sum := int64(0)
	for _, pages := range now {
		sum += pages
	}
	for n, pages := range gone {
		if _, back := now[n]; !back {
			sum += pages
		}
	}
	if sum < c.limit {
		return nil
	}
	c.l.n.opts.Log.Info("the crawl has its pages", "pages", sum, "limit", c.limit)
	return node.Control{Registry: c.l.bus}.Full(ctx)
}

// gone are the pages of nodes that are none any more. Those that have just gone are added.
func (c *counter) gone(ctx context.Context, now map[strategy.Node]int64) (map[strategy.Node]int64, error) {
	e, err := c.l.bus.Get(ctx, goneKey)
	if err != nil {
		return nil, err
	}
	gone := map[strategy.Node]int64{}
	if e.Value != nil {
		if err := json.Unmarshal(e.Value, &gone); err != nil {
			return nil, err
		}
	}
	size := len(gone)
	for n, pages := range c.last {
		if _, there := now[n]; !there {
			gone[n] = pages
		}
	}
	if len(gone) > size {
		value, err := json.Marshal(gone)
		if err == nil {
			_, err = c.l.bus.Put(ctx, goneKey, value, e.Revision)
		}
		if err != nil {
			return nil, err // c.last is as it was: the next look adds them
		}
	}
	c.last = now
	return gone, nil
}
