package driver

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
)

// transfers guards the hosts that this node holds, and those of dead nodes whose state it has recovered, while the
// member has them read, forgotten, received and released.
//
// Invariants: actions on the hosts of one node run one after the other, and so do those on the hosts from one sender.
// Only the last Drain and the last Flush are answered. The chunks on their way into the engine are bounded: the sender
// sends the rest again.
type transfers struct {
	cfg       *Config
	ctx       context.Context // ends with the node
	rng       *rand.Rand
	lanes     *lanes
	postEvent func(context.Context, member.Event) // passes an event to the member, from any goroutine

	holders     map[strategy.Node]*holder // by the node that held the hosts
	cancelDrain context.CancelFunc        // ends the last Drain
	cancelFlush context.CancelFunc        // ends the last Flush
	recovered   []strategy.Node           // dead nodes whose logs are deleted when the epoch is settled
	importing   atomic.Int64              // bytes of chunks on their way into the engine
	drainTarget atomic.Pointer[strategy.Node]
}

func newTransfers(cfg *Config, l *lanes, tell func(context.Context, member.Event)) *transfers {
	return &transfers{cfg: cfg, rng: rand.New(rand.NewPCG(cfg.Seed, 1)), lanes: l, postEvent: tell, cancelDrain: func() {},
		cancelFlush: func() {}, holders: map[strategy.Node]*holder{cfg.Self: {node: cfg.Self}}}
}

// A holder has the hosts that one node held. Its lane uses it.
type holder struct {
	node    strategy.Node
	cancel  context.CancelFunc // ends recovery
	state   FailedState        // nil for this node, and before a dead one's is recovered
	export  Export
	epoch   uint64
	attempt uint64
	ended   bool
}

// maxImportingBytes bounds the bytes of chunks on their way into the engine: all nodes send at once to a node that is new.
const maxImportingBytes = 64 << 20

// full reports whether a message as large as a chunk must be dropped: its sender sends it again.
func (t *transfers) full(message []byte) bool {
	return len(message) > 4<<10 && t.importing.Load() > maxImportingBytes
}

// apply executes a member's action on hosts.
func (t *transfers) apply(a member.Action) {
	switch a := a.(type) {
	case member.Drain:
		t.drain(a)
	case member.Read:
		t.inHolderLane(
			a.From,
			"read what is another's",
			func(ctx context.Context, h *holder) error { return t.read(ctx, h, a) },
		)
	case member.Forget:
		t.inHolderLane(a.From, "forget what has come to others",
			func(ctx context.Context, h *holder) error { return t.forget(ctx, h, a) })
	case member.Recover:
		t.startRecovery(a.Node)
	case member.CancelRecovery:
		t.cancelRecovery(a.Node)
	case member.AdoptOutbox:
		t.recovered = append(t.recovered, a.Node)
		t.inHolderLane(a.Node, "take over the links of a dead node", t.adoptOutbox)
	case member.Import:
		t.importing.Add(int64(len(a.Data)))
		t.lanes.putRequired("to/"+string(a.Transfer.From), "take what comes",
			func(ctx context.Context) error { return t.importChunk(ctx, a) })
	case member.Drop:
		t.lanes.putRequired("to/"+string(a.Transfer.From), "undo what has come", func(ctx context.Context) error {
			if err := t.cfg.Engine.Drop(ctx, a.Transfer); err != nil {
				return err
			}
			t.postEvent(ctx, member.Dropped(a))
			return nil
		})
	case member.Flush:
		t.flush(a)
	case member.Finalized:
		t.finalizeEpoch(a.Epoch)
	default:
		t.cfg.Runtime.Fail(fmt.Errorf("a member wants %T done, which this node cannot do", a))
	}
}

// inHolderLane runs f in the lane of the hosts that one node held.
func (t *transfers) inHolderLane(from strategy.Node, what string, f func(context.Context, *holder) error) {
	h := t.holders[from]
	if h == nil {
		return // it was released
	}
	t.lanes.putRequired("from/"+string(from), what, func(ctx context.Context) error { return f(ctx, h) })
}

// drain waits until the requests to hosts of other nodes have ended.
func (t *transfers) drain(a member.Drain) {
	t.cancelDrain()
	ctx, cancel := context.WithCancel(t.ctx)
	t.cancelDrain = cancel
	t.inHolderLane(t.cfg.Self, "end a reading", func(_ context.Context, h *holder) error { return h.end() })
	t.cfg.Runtime.Go(func(context.Context) {
		err := t.cfg.Engine.Drain(ctx, a.Hosts)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			t.cfg.Runtime.Fail(fmt.Errorf("wait for requests to hosts of others: %w", err))
		default:
			t.postEvent(ctx, member.Drained{Epoch: a.Epoch})
		}
	})
}

// flush waits until no link is in the outbox. One of the members receives the links that are left: it forwards them to
// the owners of their hosts.
func (t *transfers) flush(a member.Flush) {
	t.cancelFlush()
	ctx, cancel := context.WithCancel(t.ctx)
	t.cancelFlush = cancel
	if all := t.cfg.Member.Members().Members; len(all) > 0 {
		to := all[t.rng.IntN(len(all))].Node
		t.drainTarget.Store(&to)
	}
	t.cfg.Runtime.Go(func(context.Context) {
		for t.cfg.Runtime.Pause(ctx, PumpEvery) {
			if t.cfg.Record.Admitting() { // seeds may still enter the outbox, and scope seeds are to be reported
				continue
			}
			if links, _ := t.cfg.Engine.Outbox(); links == 0 {
				t.postEvent(ctx, member.Flushed(a))
				return
			}
		}
	})
}

// leaving reports whether links that are left go to another member. Any goroutine may call it.
func (t *transfers) leaving() bool { return t.drainTarget.Load() != nil }

func (t *transfers) read(ctx context.Context, h *holder, a member.Read) error {
	if h.export == nil && !h.ended || h.epoch != a.Epoch || h.attempt != a.Attempt {
		if err := t.begin(h, a); err != nil {
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
	t.postEvent(ctx, c)
	return nil
}

func (t *transfers) begin(h *holder, a member.Read) (err error) {
	if err := h.end(); err != nil {
		return err
	}
	h.epoch, h.attempt, h.ended = a.Epoch, a.Attempt, false
	switch {
	case h.node == t.cfg.Self:
		h.export, err = t.cfg.Engine.Export(a.Owner)
	case h.state == nil:
		h.ended = true // it was released: it has no hosts left
	default:
		h.export, err = h.state.Export(a.Owner)
	}
	return err
}

// end ends the reading of hosts, if there is one.
func (h *holder) end() error {
	if h.export == nil {
		return nil
	}
	err := h.export.Close()
	h.export, h.ended = nil, false
	return err
}

func (t *transfers) forget(ctx context.Context, h *holder, a member.Forget) error {
	if err := h.end(); err != nil {
		return err
	}
	switch {
	case h.node == t.cfg.Self:
		if err := t.cfg.Engine.Forget(ctx, a.Moved, a.Completed); err != nil {
			return err
		}
	case a.Moved != nil && h.state != nil:
		h.state.Forget(a.Moved)
	}
	t.postEvent(ctx, member.Forgotten{From: a.From, Epoch: a.Epoch})
	return nil
}

func (t *transfers) startRecovery(dead strategy.Node) {
	ctx, cancel := context.WithCancel(t.ctx)
	t.holders[dead] = &holder{node: dead, cancel: cancel}
	t.cfg.Log.Info("folding what a dead node held", "node", dead)
	t.inHolderLane(dead, "fold what a dead node held", func(all context.Context, h *holder) error {
		defer cancel()
		state := t.recover(ctx, dead)
		if state == nil {
			return nil // another node recovers it now, or this one ends
		}
		h.state = state
		t.postEvent(all, member.Recovered{Node: dead, Received: state.Received(), Forgotten: state.Forgotten()})
		return nil
	})
}

// recover tries until a dead node's state is recovered. It returns nil if ctx ends before. A full disk or an unreadable
// log does not end this node: one node after the other would end.
func (t *transfers) recover(ctx context.Context, dead strategy.Node) FailedState {
	for wait := t.cfg.Timing.Beat; ; wait = min(2*wait, time.Minute) {
		state, err := t.cfg.Failed.Recover(ctx, dead)
		if err == nil {
			return state
		}
		if ctx.Err() != nil {
			return nil
		}
		t.cfg.Log.Error("what a dead node held cannot be folded, and will be tried again", "node", dead, "in", wait,
			"err", err)
		if !t.cfg.Runtime.Pause(ctx, wait) {
			return nil
		}
	}
}

func (t *transfers) cancelRecovery(dead strategy.Node) {
	if h := t.holders[dead]; h != nil {
		h.cancel()
		t.inHolderLane(dead, "let go of what a dead node held", func(context.Context, *holder) error { return h.close() })
		delete(t.holders, dead)
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

// adoptOutbox takes over the links that a dead node had for others, and removes its state.
func (t *transfers) adoptOutbox(ctx context.Context, h *holder) error {
	if h.state != nil {
		err := h.state.OutboxLinks(func(data []byte) error { return t.cfg.Engine.AdoptLinks(ctx, data) })
		if err != nil {
			return err
		}
		if err := h.close(); err != nil {
			return err
		}
	}
	t.postEvent(ctx, member.OutboxAdopted{Node: h.node})
	return nil
}

// take passes a chunk to the engine, and waits concurrently until it is durable. Earlier chunks are durable when a
// later one is, so the order of the events does not matter.
func (t *transfers) importChunk(ctx context.Context, a member.Import) error {
	what := func(err error) error { return fmt.Errorf("chunk %d of %+v: %w", a.Seq, a.Transfer, err) }
	durable, err := t.cfg.Engine.Import(ctx, a.Transfer, a.Seq, a.Last, a.Data)
	if err != nil {
		return what(err)
	}
	t.cfg.Runtime.Go(func(ctx context.Context) {
		defer t.importing.Add(-int64(len(a.Data)))
		if err := durable(ctx); err == nil {
			t.postEvent(ctx, member.Imported{Transfer: a.Transfer, Seq: a.Seq})
		} else if ctx.Err() == nil {
			t.cfg.Runtime.Fail(what(err))
		}
	})
	return nil
}

// finalizeEpoch has the engine forget the epoch's transfers, and deletes the logs of released dead nodes. Before the end of
// the epoch, another node might have had to recover them again.
func (t *transfers) finalizeEpoch(epoch uint64) {
	for _, dead := range slices.Sorted(maps.Keys(t.holders)) {
		if dead != t.cfg.Self {
			t.cancelRecovery(dead)
		}
	}
	released := t.recovered
	t.recovered = nil
	t.lanes.putRequired("settled", "note that an epoch is settled", func(ctx context.Context) error {
		if err := t.cfg.Engine.FinalizeEpoch(ctx, epoch); err != nil {
			return err
		}
		for _, dead := range released {
			t.lanes.putRequired("delete/"+string(dead), "remove what a dead node has left", func(ctx context.Context) error {
				t.deleteLog(ctx, dead)
				return nil
			})
		}
		return nil
	})
}

// deleteLog tries until a dead node's log is deleted, or ctx ends.
func (t *transfers) deleteLog(ctx context.Context, dead strategy.Node) {
	for wait := t.cfg.Timing.Beat; ; wait = min(2*wait, 5*time.Minute) {
		err := t.cfg.Failed.DeleteLog(ctx, dead)
		if err == nil || ctx.Err() != nil {
			return
		}
		t.cfg.Log.Warn("what a dead node has left stays for now", "node", dead, "next_try_in", wait, "err", err)
		if !t.cfg.Runtime.Pause(ctx, wait) {
			return
		}
	}
}

// close ends all readings. It is called when all that Go was given has ended.
func (t *transfers) close() {
	t.cancelDrain()
	t.cancelFlush()
	for _, h := range t.holders {
		if err := h.close(); err != nil {
			t.cfg.Log.Warn("end a reading", "of", h.node, "err", err)
		}
	}
}
