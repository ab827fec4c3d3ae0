package driver

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
)

// What the member wants done with what is held, by this node and by dead ones whose state it has recovered: for each of
// these, and for each from whom something comes, one thing after the other.

// A holder has what is read of one who held hosts. Its lane uses it.
type holder struct {
	who     strategy.Node
	cancel  context.CancelFunc // ends recovery
	state   FailedState        // nil for this node, and before a dead one's is recovered
	export  Export
	epoch   uint64
	attempt uint64
	ended   bool
}

// maxTakingBytes is how many bytes of chunks may be on their way into the engine: to a node that has just joined all
// others send at once.
const maxTakingBytes = 64 << 20

// full reports whether a message as large as a chunk is to be let go: who sent it sends it again.
func (d *Driver) full(message []byte) bool {
	return len(message) > 4<<10 && d.taking.Load() > maxTakingBytes
}

func (d *Driver) hold(a member.Action) {
	switch a := a.(type) {
	case member.Drain:
		d.drain(a)
	case member.Read:
		d.with(a.From, "read what is another's", func(ctx context.Context, h *holder) error { return d.read(ctx, h, a) })
	case member.Forget:
		d.with(a.From, "forget what has come to others",
			func(ctx context.Context, h *holder) error { return d.forget(ctx, h, a) })
	case member.Fold:
		d.fold(a.Node)
	case member.Unfold:
		d.unfold(a.Node)
	case member.Release:
		d.released = append(d.released, a.Node)
		d.with(a.Node, "take over the links of a dead node", d.release)
	case member.Take:
		d.taking.Add(int64(len(a.Data)))
		d.InLane("to/"+string(a.Transfer.From), "take what comes",
			func(ctx context.Context) error { return d.take(ctx, a) })
	case member.Drop:
		d.InLane("to/"+string(a.Transfer.From), "undo what has come", func(ctx context.Context) error {
			if err := d.cfg.Engine.Drop(ctx, a.Transfer); err != nil {
				return err
			}
			d.tell(ctx, member.Dropped(a))
			return nil
		})
	case member.Flush:
		d.flush(a)
	case member.Settled:
		d.settled(a.Epoch)
	default:
		d.cfg.Runtime.Fail(fmt.Errorf("a member wants %T done, which this node cannot do", a))
	}
}

// with does f in the lane of what one node holds.
func (d *Driver) with(from strategy.Node, what string, f func(context.Context, *holder) error) {
	h := d.holders[from]
	if h == nil {
		return // it was let go of
	}
	d.InLane("from/"+string(from), what, func(ctx context.Context) error { return f(ctx, h) })
}

// drain waits beside all else; only the last one answers.
func (d *Driver) drain(a member.Drain) {
	d.undrain()
	ctx, cancel := context.WithCancel(d.ctx)
	d.undrain = cancel
	d.with(d.cfg.Self, "end a reading", func(_ context.Context, h *holder) error { return h.end() })
	d.cfg.Runtime.Go(func(context.Context) {
		err := d.cfg.Engine.Drain(ctx, a.Of)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			d.cfg.Runtime.Fail(fmt.Errorf("wait for requests to hosts of others: %w", err))
		default:
			d.tell(ctx, member.Drained{Epoch: a.Epoch})
		}
	})
}

// flush waits until no link is in the outbox; only the last one answers. One of the members is given the links that are
// left: whoever owns their hosts, if anybody does, that node will see to it.
func (d *Driver) flush(a member.Flush) {
	d.unflush()
	ctx, cancel := context.WithCancel(d.ctx)
	d.unflush = cancel
	if all := d.cfg.Member.Members().Members; len(all) > 0 {
		to := all[d.rng.IntN(len(all))].Node
		d.drainTarget.Store(&to)
	}
	d.cfg.Runtime.Go(func(context.Context) {
		for d.cfg.Runtime.Pause(ctx, PumpEvery) {
			if d.cfg.Record.Admitting() { // seeds may yet go there, and roots are to be said
				continue
			}
			if links, _ := d.cfg.Engine.Outbox(); links == 0 {
				d.tell(ctx, member.Flushed(a))
				return
			}
		}
	})
}

// Leaving reports whether the links that are left go to another member, as this node leaves. Any goroutine may ask.
func (d *Driver) Leaving() bool { return d.drainTarget.Load() != nil }

func (d *Driver) read(ctx context.Context, h *holder, a member.Read) error {
	if h.export == nil && !h.ended || h.epoch != a.Epoch || h.attempt != a.Attempt {
		if err := d.begin(h, a); err != nil {
			return err
		}
	}
	c := member.Chunk{From: a.From, Epoch: a.Epoch, Attempt: a.Attempt}
	if !h.ended {
		var err error
		if c.To, c.Data, err = h.export.Next(); err != nil {
			return err
		}
		if c.To == "" {
			if err := h.end(); err != nil {
				return err
			}
			h.ended = true
		}
	}
	d.tell(ctx, c)
	return nil
}

// begin begins a reading.
func (d *Driver) begin(h *holder, a member.Read) (err error) {
	if err := h.end(); err != nil {
		return err
	}
	h.epoch, h.attempt, h.ended = a.Epoch, a.Attempt, false
	switch {
	case h.who == d.cfg.Self:
		h.export, err = d.cfg.Engine.Export(a.Owner)
	case h.state == nil:
		h.ended = true // it was released: nothing is left of it
	default:
		h.export, err = h.state.Export(a.Owner)
	}
	return err
}

// end ends a reading, if there is one.
func (h *holder) end() error {
	if h.export == nil {
		return nil
	}
	err := h.export.Close()
	h.export, h.ended = nil, false
	return err
}

func (d *Driver) forget(ctx context.Context, h *holder, a member.Forget) error {
	if err := h.end(); err != nil {
		return err
	}
	switch {
	case h.who == d.cfg.Self:
		if err := d.cfg.Engine.Forget(ctx, a.Gone, a.Whole); err != nil {
			return err
		}
	case a.Gone != nil && h.state != nil:
		h.state.Forget(a.Gone)
	}
	d.tell(ctx, member.Forgotten{From: a.From, Epoch: a.Epoch})
	return nil
}

func (d *Driver) fold(dead strategy.Node) {
	ctx, cancel := context.WithCancel(d.ctx)
	d.holders[dead] = &holder{who: dead, cancel: cancel}
	d.cfg.Log.Info("folding what a dead node held", "node", dead)
	d.with(dead, "fold what a dead node held", func(all context.Context, h *holder) error {
		defer cancel()
		state := d.recover(ctx, dead)
		if state == nil {
			return nil // another node folds it now, or this one ends
		}
		h.state = state
		d.tell(all, member.Folded{Node: dead, Arrived: state.Arrived(), Forgot: state.Forgot()})
		return nil
	})
}

// recover tries until a dead node's state is recovered or ctx ends, when it returns nil. A full disk, or a log that
// nobody can read, is no reason to end, too: one node after the other would.
func (d *Driver) recover(ctx context.Context, dead strategy.Node) FailedState {
	for wait := d.cfg.Timing.Beat; ; wait = min(2*wait, time.Minute) {
		state, err := d.cfg.Failed.Recover(ctx, dead)
		if err == nil {
			return state
		}
		if ctx.Err() != nil {
			return nil
		}
		d.cfg.Log.Error("what a dead node held cannot be folded, and will be tried again", "node", dead, "in", wait,
			"err", err)
		if !d.cfg.Runtime.Pause(ctx, wait) {
			return nil
		}
	}
}

// unfold lets go of a dead node's state.
func (d *Driver) unfold(dead strategy.Node) {
	if h := d.holders[dead]; h != nil {
		h.cancel()
		d.with(dead, "let go of what a dead node held", func(context.Context, *holder) error { return h.close() })
		delete(d.holders, dead)
	}
}

func (h *holder) close() error {
	if err := h.end(); err != nil || h.state == nil {
		return err
	}
	err := h.state.Close()
	h.state = nil
	return err
}

// release takes over the links that a dead node had for others, and removes its state.
func (d *Driver) release(ctx context.Context, h *holder) error {
	if h.state != nil {
		err := h.state.Bound(func(data []byte) error { return d.cfg.Engine.Inherit(ctx, data) })
		if err != nil {
			return err
		}
		if err := h.close(); err != nil {
			return err
		}
	}
	d.tell(ctx, member.Released{Node: h.who})
	return nil
}

// take takes chunks in as they come, and waits for each beside the others until it is durable. When a later one is, so
// is an earlier one: it does not matter in which order the member is told.
func (d *Driver) take(ctx context.Context, a member.Take) error {
	what := func(err error) error { return fmt.Errorf("chunk %d of %+v: %w", a.Seq, a.Transfer, err) }
	durable, err := d.cfg.Engine.Take(ctx, a.Transfer, a.Seq, a.Last, a.Data)
	if err != nil {
		return what(err)
	}
	d.cfg.Runtime.Go(func(ctx context.Context) {
		defer d.taking.Add(-int64(len(a.Data)))
		if err := durable(ctx); err == nil {
			d.tell(ctx, member.Taken{Transfer: a.Transfer, Seq: a.Seq})
		} else if ctx.Err() == nil {
			d.cfg.Runtime.Fail(what(err))
		}
	})
	return nil
}

// settled lets the engine forget what came whole, and removes the logs of dead nodes that are done with. Before,
// somebody might have had to recover them again.
func (d *Driver) settled(epoch uint64) {
	for _, dead := range slices.Sorted(maps.Keys(d.holders)) {
		if dead != d.cfg.Self {
			d.unfold(dead)
		}
	}
	released := d.released
	d.released = nil
	d.InLane("settled", "note that an epoch is settled", func(ctx context.Context) error {
		if err := d.cfg.Engine.Settled(ctx, epoch); err != nil {
			return err
		}
		for _, dead := range released {
			d.InLane("delete/"+string(dead), "remove what a dead node has left", func(ctx context.Context) error {
				d.deleteLog(ctx, dead)
				return nil
			})
		}
		return nil
	})
}

// deleteLog tries until what a dead node has left is removed, or ctx ends.
func (d *Driver) deleteLog(ctx context.Context, dead strategy.Node) {
	for wait := d.cfg.Timing.Beat; ; wait = min(2*wait, 5*time.Minute) {
		err := d.cfg.Failed.DeleteLog(ctx, dead)
		if err == nil || ctx.Err() != nil {
			return
		}
		d.cfg.Log.Warn("what a dead node has left stays for now", "node", dead, "next_try_in", wait, "err", err)
		if !d.cfg.Runtime.Pause(ctx, wait) {
			return
		}
	}
}
