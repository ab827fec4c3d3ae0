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

// transfers guards the hosts that this node holds, and those of dead nodes that it has recovered. It executes the
// member's actions that read, import, forget and release them.
//
// Invariants: actions on the hosts of one node run sequentially, and so do actions on the hosts from one sender. Only
// the last Drain and the last Flush are answered. The bytes of chunks being imported are bounded: the senders repeat
// the rest.
type transfers struct {
	cfg       *Config
	ctx       context.Context // ends with the node
	rng       *rand.Rand
	lanes     *lanes
	postEvent func(context.Context, member.Event) // adds an event for the member, from any goroutine

	holders     map[strategy.Node]*holder // by the node that held the hosts
	cancelDrain context.CancelFunc        // cancels the last Drain
	cancelFlush context.CancelFunc        // cancels the last Flush
	recovered   []strategy.Node           // recovered nodes whose logs are deleted when the epoch is finalized
	importing   atomic.Int64              // bytes of chunks that the engine is importing
	drainTarget atomic.Pointer[strategy.Node]
}

func newTransfers(cfg *Config, l *lanes, tell func(context.Context, member.Event)) *transfers {
	return &transfers{cfg: cfg, rng: rand.New(rand.NewPCG(cfg.Seed, 1)), lanes: l, postEvent: tell, cancelDrain: func() {},
		cancelFlush: func() {}, holders: map[strategy.Node]*holder{cfg.Self: {node: cfg.Self}}}
}

// A holder has the hosts that one node held. Only functions of its lane use it.
type holder struct {
	node    strategy.Node
	cancel  context.CancelFunc // cancels recovery
	state   FailedState        // nil for this node, and until a dead node is recovered
	export  Export
	epoch   uint64
	attempt uint64
	ended   bool
}

// maxImportingBytes bounds the bytes of chunks that the engine is importing: all nodes send to a new node at once.
const maxImportingBytes = 64 << 20

// full reports whether a message of the size of a chunk must be dropped; its sender repeats it.
func (t *transfers) full(message []byte) bool {
	return len(message) > 4<<10 && t.importing.Load() > maxImportingBytes
}

// apply executes a member's action on hosts.
func (t *transfers) apply(a member.Action) {
	switch a := a.(type) {
	case member.Drain:
		t.drain(a)
	case member.Read:
		t.inHolderLane(a.From, "read hosts of other owners",
			func(ctx context.Context, h *holder) error { return t.read(ctx, h, a) })
	case member.Forget:
		t.inHolderLane(a.From, "forget hosts that have moved",
			func(ctx context.Context, h *holder) error { return t.forget(ctx, h, a) })
	case member.Recover:
		t.startRecovery(a.Node)
	case member.CancelRecovery:
		t.cancelRecovery(a.Node)
	case member.AdoptOutbox:
		t.recovered = append(t.recovered, a.Node)
		t.inHolderLane(a.Node, "adopt the links of a dead node", t.adoptOutbox)
	case member.Import:
		t.importing.Add(int64(len(a.Data)))
		t.lanes.putRequired("to/"+string(a.Transfer.From), "import hosts",
			func(ctx context.Context) error { return t.importChunk(ctx, a) })
	case member.Drop:
		t.lanes.putRequired("to/"+string(a.Transfer.From), "undo an incomplete transfer", func(ctx context.Context) error {
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
		t.cfg.Runtime.Fail(fmt.Errorf("unknown action of the member: %T", a))
	}
}

// inHolderLane runs f in the lane of the hosts that one node held.
func (t *transfers) inHolderLane(from strategy.Node, what string, f func(context.Context, *holder) error) {
	h := t.holders[from]
	if h == nil {
		return // its state is transferred
	}
	t.lanes.putRequired("from/"+string(from), what, func(ctx context.Context) error { return f(ctx, h) })
}

// drain waits until the requests to hosts of other nodes have ended.
func (t *transfers) drain(a member.Drain) {
	t.cancelDrain()
	ctx, cancel := context.WithCancel(t.ctx)
	t.cancelDrain = cancel
	t.inHolderLane(t.cfg.Self, "close an export", func(_ context.Context, h *holder) error { return h.end() })
	t.cfg.Runtime.Go(func(context.Context) {
		err := t.cfg.Engine.Drain(ctx, a.Hosts)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			t.cfg.Runtime.Fail(fmt.Errorf("wait for requests to hosts of other nodes: %w", err))
		default:
			t.postEvent(ctx, member.Drained{Epoch: a.Epoch})
		}
	})
}

// flush waits until the outbox is empty. A random member receives the remaining links, and forwards them to the owners
// of their hosts.
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
			if t.cfg.Record.Admitting() { // seeds may still add links to the outbox, and scope seeds must be reported
				continue
			}
			if links, _ := t.cfg.Engine.Outbox(); links == 0 {
				t.postEvent(ctx, member.Flushed(a))
				return
			}
		}
	})
}

// leaving reports whether the remaining links go to another member. Any goroutine may call it.
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
		h.ended = true // its state is transferred: it has no hosts left
	default:
		h.export, err = h.state.Export(a.Owner)
	}
	return err
}

// end closes the current export, if there is one.
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
	t.cfg.Log.Info("recovering the state of a dead node", "node", dead)
	t.inHolderLane(dead, "recover the state of a dead node", func(all context.Context, h *holder) error {
		defer cancel()
		state := t.recover(ctx, dead)
		if state == nil {
			return nil // another node has become the takeover node, or this node ends
		}
		h.state = state
		t.postEvent(all, member.Recovered{Node: dead, Received: state.Received(), Forgotten: state.Forgotten()})
		return nil
	})
}

// recover retries until a dead node's state is recovered. It returns nil if ctx ends first. A full disk or an
// unreadable log does not end this node: otherwise one node after the other would end.
func (t *transfers) recover(ctx context.Context, dead strategy.Node) FailedState {
	for wait := t.cfg.Timing.Beat; ; wait = min(2*wait, time.Minute) {
		state, err := t.cfg.Failed.Recover(ctx, dead)
		if err == nil {
			return state
		}
		if ctx.Err() != nil {
			return nil
		}
		t.cfg.Log.Error("cannot recover the state of a dead node, will retry", "node", dead, "in", wait,
			"err", err)
		if !t.cfg.Runtime.Pause(ctx, wait) {
			return nil
		}
	}
}

func (t *transfers) cancelRecovery(dead strategy.Node) {
	if h := t.holders[dead]; h != nil {
		h.cancel()
		t.inHolderLane(dead, "discard the state of a dead node", func(context.Context, *holder) error { return h.close() })
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

// adoptOutbox adopts the links that a dead node had for other nodes, and discards its state.
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

// importChunk passes a chunk to the engine, and waits concurrently until it is durable. When a chunk is durable, all
// earlier ones are, so the order of the events does not matter.
func (t *transfers) importChunk(ctx context.Context, a member.Import) error {
	what := func(err error) error { return fmt.Errorf("import chunk %d of %+v: %w", a.Seq, a.Transfer, err) }
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

// finalizeEpoch has the engine drop its records of the epoch's transfers, and deletes the logs of recovered nodes.
// Until the end of the epoch, another node might have had to recover them again.
func (t *transfers) finalizeEpoch(epoch uint64) {
	for _, dead := range slices.Sorted(maps.Keys(t.holders)) {
		if dead != t.cfg.Self {
			t.cancelRecovery(dead)
		}
	}
	released := t.recovered
	t.recovered = nil
	t.lanes.putRequired("settled", "finalize an epoch", func(ctx context.Context) error {
		if err := t.cfg.Engine.FinalizeEpoch(ctx, epoch); err != nil {
			return err
		}
		for _, dead := range released {
			t.lanes.putRequired("delete/"+string(dead), "delete the log of a dead node", func(ctx context.Context) error {
				t.deleteLog(ctx, dead)
				return nil
			})
		}
		return nil
	})
}

// deleteLog retries until a dead node's log is deleted, or ctx ends.
func (t *transfers) deleteLog(ctx context.Context, dead strategy.Node) {
	for wait := t.cfg.Timing.Beat; ; wait = min(2*wait, 5*time.Minute) {
		err := t.cfg.Failed.DeleteLog(ctx, dead)
		if err == nil || ctx.Err() != nil {
			return
		}
		t.cfg.Log.Warn("cannot delete the log of a dead node, will retry", "node", dead, "next_try_in", wait, "err", err)
		if !t.cfg.Runtime.Pause(ctx, wait) {
			return
		}
	}
}

// close closes all exports. It is called when all functions passed to Go have returned.
func (t *transfers) close() {
	t.cancelDrain()
	t.cancelFlush()
	for _, h := range t.holders {
		if err := h.close(); err != nil {
			t.cfg.Log.Warn("close an export", "of", h.node, "err", err)
		}
	}
}
