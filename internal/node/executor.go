package node

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"kumo/internal/member"
	"kumo/internal/strategy"
)

// actionExecutor carry out what the member wants done with what is held: by this node, and by dead ones whose estates
// it folds. For each of these, and for each from whom something comes, things are done one after the other.
type actionExecutor struct {
	n      *Node
	undo   context.CancelFunc              // ends the last Drain
	stop   context.CancelFunc              // and the last Flush
	of     map[strategy.Node]*actionHolder // by who held; the loop's
	buried []strategy.Node                 // released, and not settled yet; the loop's
	// who is given the links that are left, while this node leaves and has nothing else any more
	heir   atomic.Pointer[strategy.Node]
	taking atomic.Int64 // bytes of chunks that are being taken in
}

// maxTakingBytes is how many bytes of chunks may be on their way into the engine: to a node that has just joined all
// others send at once.
const maxTakingBytes = 64 << 20

// full reports whether a message as large as a chunk is to be let go: who sent it sends it again.
func (h *actionExecutor) full(message []byte) bool {
	return len(message) > 4<<10 && h.taking.Load() > maxTakingBytes
}

// A actionHolder has what is read of one holder. Its lane uses it.
type actionHolder struct {
	who     strategy.Node
	cancel  context.CancelFunc // ends Fold
	estate  FailedState        // nil for this node, and before an estate is folded
	gone    []func(host string) bool
	export  Export
	epoch   uint64
	attempt uint64
	ended   bool
}

func newActionExecutor(n *Node) *actionExecutor {
	return &actionExecutor{n: n, undo: func() {}, stop: func() {},
		of: map[strategy.Node]*actionHolder{n.self: {who: n.self}}}
}

func (h *actionExecutor) carryOut(a member.Action) {
	switch a := a.(type) {
	case member.Drain:
		h.drain(a)
	case member.Read:
		h.with(a.From, "read what is another's", func(ctx context.Context, x *actionHolder) error {
			return h.read(ctx, x,
				a)
		})
	case member.Forget:
		h.with(a.From, "forget what has come to others", func(ctx context.Context,
			x *actionHolder) error {
			return h.forget(ctx, x, a)
		})
	case member.Fold:
		h.fold(a.Node)
	case member.Unfold:
		h.unfold(a.Node)
	case member.Release:
		h.buried = append(h.buried, a.Node)
		h.with(a.Node, "take over the links of a dead node", h.release)
	case member.Take:
		h.taking.Add(int64(len(a.Data)))
		h.inLane(a.Transfer.From, "take what comes", func(ctx context.Context) error { return h.take(ctx, a) })
	case member.Drop:
		h.inLane(a.Transfer.From, "undo what has come", func(ctx context.Context) error { return h.drop(ctx, a) })
	case member.Flush:
		h.flush(a)
	case member.Settled:
		h.settled(a.Epoch)
	default:
		h.n.fail(fmt.Errorf("a member wants %T done, which this node cannot do", a))
	}
}

// with does f in the lane of what one node holds.
func (h *actionExecutor) with(from strategy.Node, what string, f func(context.Context, *actionHolder) error) {
	x := h.of[from]
	if x == nil {
		return // it was let go of
	}
	h.n.inLane("from/"+string(from), what, func(ctx context.Context) error { return f(ctx, x) })
}

// inLane does f in the lane of what comes from one node.
func (h *actionExecutor) inLane(from strategy.Node, what string, f func(context.Context) error) {
	h.n.inLane("to/"+string(from), what, f)
}

// inLane does something that the node cannot go on without.
func (n *Node) inLane(lane, what string, f func(context.Context) error) {
	n.tasks.inLane(lane, func(ctx context.Context) {
		if err := f(ctx); err != nil && ctx.Err() == nil {
			n.fail(fmt.Errorf("%s: %w", what, err))
		}
	})
}

// leaveTo chooses who is given the links that are left: whoever owns their hosts, if anybody does, that node will see
// to it.
func (h *actionExecutor) leaveTo(t *member.Table) {
	if t != nil && len(t.Members) > 0 {
		heir := t.Members[rand.IntN(len(t.Members))].Node
		h.heir.Store(&heir)
	}
}

// drain waits beside all else; only the last one answers.
func (h *actionExecutor) drain(a member.Drain) {
	h.undo()
	ctx, cancel := context.WithCancel(h.n.tasks.ctx)
	h.undo = cancel
	h.with(h.n.self, "end a reading", func(_ context.Context, x *actionHolder) error { return x.end() })
	h.n.tasks.Go(func(context.Context) {
		err := h.n.cfg.Engine.Drain(ctx, a.Of)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			h.n.fail(fmt.Errorf("wait for requests to hosts of others: %w", err))
		default:
			h.n.tell(ctx, member.Drained{Epoch: a.Epoch})
		}
	})
}

// flush waits until no link is in the outbox; only the last one answers.
func (h *actionExecutor) flush(a member.Flush) {
	h.stop()
	ctx, cancel := context.WithCancel(h.n.tasks.ctx)
	h.stop = cancel
	h.leaveTo(h.n.member.Table())
	h.n.tasks.Go(func(context.Context) {
		for pause(ctx, pumpEvery) {
			if h.n.record.busy.Load() > 0 { // seeds may yet go there, and roots are to be said
				continue
			}
			if links, _ := h.n.cfg.Engine.Outbox(); links == 0 {
				h.n.tell(ctx, member.Flushed(a))
				return
			}
		}
	})
}

func (h *actionExecutor) read(ctx context.Context, x *actionHolder, a member.Read) error {
	if x.export == nil && !x.ended || x.epoch != a.Epoch || x.attempt != a.Attempt {
		if err := h.begin(x, a); err != nil {
			return err
		}
	}
	c := member.Chunk{From: a.From, Epoch: a.Epoch, Attempt: a.Attempt}
	if !x.ended {
		var err error
		if c.To, c.Data, err = x.export.Next(); err != nil {
			return err
		}
		if c.To == "" {
			if err := x.end(); err != nil {
				return err
			}
			x.ended = true
		}
	}
	h.n.tell(ctx, c)
	return nil
}

// begin begins a reading.
func (h *actionExecutor) begin(x *actionHolder, a member.Read) (err error) {
	if err := x.end(); err != nil {
		return err
	}
	x.epoch, x.attempt, x.ended = a.Epoch, a.Attempt, false
	switch {
	case x.who == h.n.self:
		x.export, err = h.n.cfg.Engine.Export(a.Owner)
	case x.estate == nil:
		x.ended = true // it was released: nothing is left of it
	default:
		x.export, err = x.estate.Export(x.left(a.Owner))
	}
	return err
}

// left is an owner that leaves out what is forgotten of an estate, which itself does not change.
func (x *actionHolder) left(owner func(string) strategy.Node) func(string) strategy.Node {
	gone := x.gone[:len(x.gone):len(x.gone)]
	return func(host string) strategy.Node {
		for _, is := range gone {
			if is(host) {
				return ""
			}
		}
		return owner(host)
	}
}

// end ends a reading, if there is one.
func (x *actionHolder) end() error {
	if x.export == nil {
		return nil
	}
	err := x.export.Close()
	x.export, x.ended = nil, false
	return err
}

func (h *actionExecutor) forget(ctx context.Context, x *actionHolder, a member.Forget) error {
	if err := x.end(); err != nil {
		return err
	}
	switch gone := a.Gone; {
	case x.who == h.n.self:
		if err := h.n.cfg.Engine.Forget(ctx, gone, a.Whole); err != nil {
			return err
		}
	case gone != nil:
		x.gone = append(x.gone, gone)
	}
	h.n.tell(ctx, member.Forgotten{From: a.From, Epoch: a.Epoch})
	return nil
}

func (h *actionExecutor) fold(dead strategy.Node) {
	ctx, cancel := context.WithCancel(h.n.tasks.ctx)
	h.of[dead] = &actionHolder{who: dead, cancel: cancel}
	h.n.log.Info("folding what a dead node held", "node", dead)
	h.with(dead, "fold what a dead node held", func(all context.Context, x *actionHolder) error {
		defer cancel()
		estate := h.foldPatiently(ctx, dead)
		if estate == nil {
			return nil // another node folds it now, or this one ends
		}
		x.estate = estate
		h.n.tell(all, member.Folded{Node: dead, Arrived: estate.Arrived(), Forgot: estate.Forgot()})
		return nil
	})
}

// foldPatiently tries until an estate is folded or ctx ends, when it returns nil. A full disk, or a log that nobody can
// read, is no reason to end, too: one node after the other would.
func (h *actionExecutor) foldPatiently(ctx context.Context, dead strategy.Node) FailedState {
	for wait := h.n.cfg.Timing.Beat; ; wait = min(2*wait, time.Minute) {
		estate, err := h.n.cfg.Estates.Recover(ctx, dead)
		if err == nil {
			return estate
		}
		if ctx.Err() != nil {
			return nil
		}
		h.n.log.Error("what a dead node held cannot be folded, and will be tried again", "node", dead, "in", wait, "err", err)
		if !pause(ctx, wait) {
			return nil
		}
	}
}

// unfold lets go of an estate.
func (h *actionExecutor) unfold(dead strategy.Node) {
	if x := h.of[dead]; x != nil {
		x.cancel()
		h.with(dead, "let go of what a dead node held", func(context.Context, *actionHolder) error { return x.close() })
		delete(h.of, dead)
	}
}

func (x *actionHolder) close() error {
	if err := x.end(); err != nil || x.estate == nil {
		return err
	}
	err := x.estate.Close()
	x.estate = nil
	return err
}

// release takes over the links that a dead node had for others, and removes its estate.
func (h *actionExecutor) release(ctx context.Context, x *actionHolder) error {
	if x.estate != nil {
		err := x.estate.Bound(func(data []byte) error { return h.n.cfg.Engine.Inherit(ctx, data) })
		if err != nil {
			return err
		}
		if err := x.close(); err != nil {
			return err
		}
	}
	h.n.tell(ctx, member.Released{Node: x.who})
	return nil
}

// take takes chunks in as they come, and waits for each beside the others until it is durable. When a later one is, so
// is an earlier one: it does not matter in which order the member is told.
func (h *actionExecutor) take(ctx context.Context, a member.Take) error {
	what := func(err error) error { return fmt.Errorf("chunk %d of %+v: %w", a.Seq, a.Transfer, err) }
	durable, err := h.n.cfg.Engine.Take(ctx, a.Transfer, a.Seq, a.Last, a.Data)
	if err != nil {
		return what(err)
	}
	h.n.tasks.Go(func(ctx context.Context) {
		defer h.taking.Add(-int64(len(a.Data)))
		if err := durable(ctx); err == nil {
			h.n.tell(ctx, member.Taken{Transfer: a.Transfer, Seq: a.Seq})
		} else if ctx.Err() == nil {
			h.n.fail(what(err))
		}
	})
	return nil
}

func (h *actionExecutor) drop(ctx context.Context, a member.Drop) error {
	if err := h.n.cfg.Engine.Drop(ctx, a.Transfer); err != nil {
		return err
	}
	h.n.tell(ctx, member.Dropped(a))
	return nil
}

// settled lets the engine forget what came whole, and removes the logs of estates that are done with. Before, somebody
// might have had to fold them again.
func (h *actionExecutor) settled(epoch uint64) {
	for dead := range h.of {
		if dead != h.n.self {
			h.unfold(dead)
		}
	}
	buried := h.buried
	h.buried = nil
	h.n.inLane("settled", "note that an epoch is settled", func(ctx context.Context) error {
		if err := h.n.cfg.Engine.Settled(ctx, epoch); err != nil {
			return err
		}
		for _, dead := range buried {
			if err := h.n.cfg.Estates.DeleteLog(ctx, dead); err != nil {
				h.n.log.Warn("the log of a dead node stays", "node", dead, "err", err)
			}
		}
		return nil
	})
}

// close closes what is open when all tasks have ended.
func (h *actionExecutor) close() {
	h.undo()
	h.stop()
	for _, x := range h.of {
		if err := x.close(); err != nil {
			h.n.log.Warn("end a reading", "of", x.who, "err", err)
		}
	}
}
