package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kumo/internal/bus"
	"kumo/internal/member"
	"kumo/internal/strategy"
)

// carryOut has the member's actions done, in order. It waits for none of them.
func (n *Node) carryOut(actions []member.Action) {
	for _, a := range actions {
		switch a := a.(type) {
		case member.Watch:
			n.watch.set(a)
		case member.Enter:
			n.tasks.Go(n.enter)
		case member.Write:
			n.tasks.Go(func(ctx context.Context) { n.write(ctx, a) })
		case member.Send:
			n.send(a.To, kindMember, a.Data)
		case member.Publish:
			n.cfg.Router.publish(a.View)
			n.cfg.Engine.Share(n.members())
			if n.isMember() {
				n.executor.heir.Store(nil)
			}
			n.lapse.Reset(time.Until(a.View.Until()))
			if n.driver != nil && n.driver.news {
				n.driver.news = false
				n.cfg.Engine.Wake(nil)
			}
			n.links.look()
			n.record.look()
		case member.Whole:
			n.tasks.Go(func(ctx context.Context) { n.driver.tell(ctx, strategy.Whole(a)) })
		case member.Wake:
			n.wake.Reset(time.Until(a.At))
		case member.Lost:
			n.log.Warn("given up for dead", "why", a.Why)
			n.fail(fmt.Errorf("%w: %s", ErrLost, a.Why))
		case member.Left:
			n.fail(ErrLeft)
		case member.Failed:
			n.fail(a.Err)
		default:
			n.executor.carryOut(a)
		}
	}
}

// enter notes that the identity is a member's.
func (n *Node) enter(ctx context.Context) {
	if err := n.cfg.Enter(); err != nil {
		n.fail(fmt.Errorf("note that this node is a member: %w", err))
		return
	}
	n.tell(ctx, member.Entered{})
}

// write writes to the registry. A member has few writes under way: of its lease, of the table, and of the leases of the
// dead.
func (n *Node) write(ctx context.Context, w member.Write) {
	one, cancel := context.WithTimeout(ctx, max(n.cfg.Timing.Beat, time.Second))
	defer cancel()
	var rev uint64
	var err error
	if w.Value == nil {
		err = n.cfg.Bus.Delete(one, w.Key, w.Revision)
	} else {
		rev, err = n.cfg.Bus.Put(one, w.Key, w.Value, w.Revision)
	}
	switch {
	case errors.Is(err, bus.ErrStale):
		err = member.ErrStale
	case err != nil:
		n.log.Debug("a write is in doubt", "key", w.Key, "err", err)
	}
	n.tell(ctx, member.Wrote{Key: w.Key, Revision: rev, Err: err})
}

// send sends a message of this node's. That messages are lost is nothing new to those who send them.
func (n *Node) send(to strategy.Node, kind byte, data []byte) {
	if err := n.cfg.Bus.Send(to, envelope(n.cfg.Crawl, kind, data)); err != nil {
		n.log.Debug("a message is not sent", "to", to, "err", err)
	}
}
