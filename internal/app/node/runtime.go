package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"kumo/internal/base/wait"
	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/member"
	"kumo/internal/cluster/member/driver"
	"kumo/internal/cluster/strategy"
)

// StrategyLog is the log shared by the strategies of all nodes.
const StrategyLog = "strategy"

// A runtime provides goroutines, a clock and a bus to a node's driver.
type runtime struct{ *Node }

var _ driver.Runtime = runtime{}

// tasks are the goroutines of a node.
type tasks struct {
	ctx context.Context
	all sync.WaitGroup
}

// Go runs f in a goroutine.
func (t *tasks) Go(f func(context.Context)) { t.all.Go(func() { f(t.ctx) }) }

func (r runtime) Now() time.Time { return time.Now() }

func (r runtime) Go(f func(context.Context)) { r.tasks.Go(f) }

func (r runtime) Pause(ctx context.Context, d time.Duration) bool { return wait.For(ctx, d) == nil }

func (r runtime) Call(ctx context.Context, f func()) { r.call(ctx, f) }

func (r runtime) Wake(at time.Time) { r.wake.Reset(time.Until(at)) }

func (r runtime) Send(to strategy.Node, kind driver.Kind, data []byte) { r.send(to, byte(kind), data) }

func (r runtime) Leased() bool { return wait.IsAfter(r.cfg.Router.Until(), time.Now()) }

func (r runtime) Fail(err error) { r.fail(err) }

// Do executes the actions of the member that are the node's responsibility.
func (r runtime) Do(a member.Action) {
	n := r.Node
	switch a := a.(type) {
	case member.Watch:
		n.watch.set(a)
	case member.RecordJoin:
		n.tasks.Go(n.saveJoined)
	case member.Write:
		n.tasks.Go(func(ctx context.Context) { n.write(ctx, a) })
	case member.Publish:
		n.cfg.Router.publish(a.View)
		n.cfg.Engine.Share(n.members())
		n.leaseTimer.Reset(time.Until(a.View.Until()))
		n.pumpSoon()
		n.record.update()
	case member.Lost:
		n.log.Warn("declared dead by the other nodes", "why", a.Why)
		n.fail(fmt.Errorf("%w: %s", ErrLost, a.Why))
	case member.Left:
		n.fail(ErrLeft)
	case member.Failed:
		n.fail(a.Err)
	}
}

// persistPatience limits the time for a write to the log.
const persistPatience = 10 * time.Second

func (r runtime) Append(ctx context.Context, data []byte, after uint64) (uint64, error) {
	one, cancel := context.WithTimeout(ctx, persistPatience)
	defer cancel()
	number, err := r.cfg.Bus.Append(one, StrategyLog, data, after)
	return number, asStale(err)
}

func (r runtime) Read(ctx context.Context, after uint64, f func(uint64, []byte) error) error {
	return r.cfg.Bus.Read(ctx, StrategyLog, after, f)
}

func (r runtime) Trim(ctx context.Context, before uint64) error {
	return r.cfg.Bus.Trim(ctx, StrategyLog, before)
}

// asStale converts an error of the bus to that of package member.
func asStale(err error) error {
	if errors.Is(err, bus.ErrStale) {
		return member.ErrStale
	}
	return err
}

func (n *Node) saveJoined(ctx context.Context) {
	if err := n.cfg.SaveJoined(); err != nil {
		n.fail(fmt.Errorf("record that this node is a member: %w", err))
		return
	}
	n.postEvent(ctx, member.JoinRecorded{})
}

// write writes to the registry. A member has few concurrent writes: of its lease, the table, and the leases of dead
// nodes.
func (n *Node) write(ctx context.Context, w member.Write) {
	during := ctx
	if w.Value == nil { // runs even during shutdown: a leaving node deletes its own keys
		during = context.WithoutCancel(ctx)
	}
	one, cancel := context.WithTimeout(during, max(n.cfg.Timing.Beat, time.Second))
	defer cancel()
	var rev uint64
	var err error
	if w.Value == nil {
		err = n.cfg.Bus.Delete(one, w.Key, w.Revision)
	} else {
		rev, err = n.cfg.Bus.Put(one, w.Key, w.Value, w.Revision)
	}
	if err = asStale(err); err != nil && !errors.Is(err, member.ErrStale) {
		n.log.Debug("the result of a write is unknown", "key", w.Key, "err", err)
	}
	n.postEvent(ctx, member.Wrote{Key: w.Key, Revision: rev, Err: err})
}

// send sends a message. Messages may be lost, so callers do not need the error.
func (n *Node) send(to strategy.Node, kind byte, data []byte) {
	if err := n.cfg.Bus.Send(to, envelope(n.cfg.Crawl, kind, data)); err != nil {
		n.log.Debug("cannot send a message", "to", to, "err", err)
	}
}

const minPumpInterval = 20 * time.Millisecond // between two checks for links to send

func (n *Node) pumpSoon() { wait.Wake(n.kick) }

func (n *Node) pump(ctx context.Context) {
	tick := time.NewTicker(driver.PumpEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		n.driver.Pump(ctx, n.cfg.Router.owner(n.self))
		if wait.For(ctx, minPumpInterval) != nil {
			return
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		case <-n.kick:
		}
	}
}

// Arrived passes the hosts of a transfer to the strategy. It is called by the engine and must not block for long.
func (n *Node) Arrived(_ member.Transfer, hosts []string) {
	if n.cfg.Strategy != nil && len(hosts) > 0 { // immediately: the end of the transfer is reported later
		n.call(n.tasks.ctx, func() { n.driver.AddStrategyEvent(strategy.Held{Hosts: hosts}) })
	}
}
