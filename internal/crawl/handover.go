package crawl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"kumo/internal/entry"

	"kumo/internal/member"
)

// A handover moves hosts from one node to another: the sender drains them, and exports them in chunks; the receiver
// takes each into its journal, its frontier and its URL database, within one hold of the ledger's gate; when it has
// the last, the hosts are its own, and the sender forgets them. What waits is held by one of the two. What is known
// stays with the sender, too; it is less than what the new owner knows, and when the host comes back, what waits comes
// with it and is not asked for there.
//
// A host of which the frontier says that it is away is not held here: it was forgotten, or its transfer dropped, and
// nothing of it has come back. One that is held here when it comes is kept, whatever becomes of its transfer, and goes
// on meanwhile: what comes is merged.

// handing is what the engine has in hand of handovers.
type handing struct {
	one    sync.Mutex // held by who takes, drops or forgets; taken before the ledger's gate
	unpack *unpacker  // used with one held; nil until it is needed
	parked map[member.Transfer][]string
	came   map[member.Transfer]map[uint64]bool // hosts, and whether they are kept
	met    map[member.Transfer]map[uint64]bool // hosts whose pages are counted anew; nil without a limit
	plan   atomic.Pointer[mergePlan]           // of the chunk at hand; nil if nothing is to be merged

	mu       sync.Mutex // guards arrivals, which change with one and the ledger's gate held, too
	arrivals arrivals
}

// arriving is what hosts are parked for whose transfer is under way: they are not this node's yet.
const arriving = "a transfer"

var errNoDB = errors.New("a crawl without a folder has no part in a handover")

// Take takes a chunk of a transfer in, from an [Export] of another node. Chunks of a transfer come in order, one after
// the other; one that was taken before is ignored. With the last one, which may be empty, the hosts of all of them are
// this node's. durable waits until the chunk is in the journal, and that is shipped, while the next one is taken. data
// that is no chunk is an error and changes nothing. It waits for room, and needs a Run to commit.
func (e *Engine) Take(ctx context.Context, t member.Transfer, seq uint64, last bool,
	data []byte) (durable func(context.Context) error, err error) {
	if e.known.db == nil {
		return nil, errNoDB
	}
	e.control.disk.await(ctx)
	e.await(ctx)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	e.peers.received.Add(1)
	sequence, whole, err := e.takeChunk(entry.Chunk{Transfer: t, Seq: seq, Last: last, Data: string(data)})
	if err != nil {
		return nil, fmt.Errorf("take a chunk from %s: %w", t.From, err)
	}
	return func(ctx context.Context) error {
		err := e.sure(ctx, sequence)
		if err == nil && whole != nil && e.peers.arrived != nil {
			e.peers.arrived(t, whole.all())
		}
		return err
	}, nil
}

// sure is safe without waiting for the next commit's time: who hands over waits for each answer.
func (e *Engine) sure(ctx context.Context, sequence uint64) error {
	e.ledger.Hurry()
	return e.ledger.WaitDurable(ctx, sequence)
}

func (e *Engine) takeChunk(c entry.Chunk) (sequence uint64, whole *arrival, err error) {
	h := &e.peers.transfer
	h.one.Lock()
	defer h.one.Unlock()
	if h.unpack == nil {
		if h.unpack, err = newUnpacker(); err != nil {
			return 0, nil, err
		}
	}
	p, err := h.unpack.read([]byte(c.Data))
	if err != nil {
		return 0, nil, err
	}
	if next, err := h.arrivals.expects(c.Transfer, c.Seq); err != nil || !next {
		return e.ledger.Sequence(), nil, err // what was taken before may not be durable yet
	}
	defer h.plan.Store(nil)
	for taken := false; !taken && err == nil; {
		m := e.planMerge(p, e.keep(c.Transfer, p))
		keeps := h.arrivals.keeps(c.Transfer, m.kept)
		err = e.ledger.Within(func() error {
			if taken = slices.Equal(e.keep(c.Transfer, p), m.kept); taken { // or else more are held here by now
				whole = e.enter(&c, p, m, keeps)
				sequence = e.ledger.Sequence()
			}
			return nil
		})
	}
	if err == nil && whole != nil {
		e.letGo(whole)
	}
	return sequence, whole, err
}

// enter enters a chunk into the journal and all that is a view of it. It is called within the ledger's gate, and
// reads nothing from the disk.
func (e *Engine) enter(c *entry.Chunk, p *decodedChunk, m *mergePlan, keeps []string) (whole *arrival) {
	h := &e.peers.transfer
	h.meet(c.Transfer, p, m.kept, e.origins.hash)
	c.Kept, c.Left = m.kept, m.leftOut(p)
	var enc entry.Encoder
	enc.Chunk(*c)
	e.ledger.Enqueue(enc.Writer)
	p.leaveOut(c.Left)
	h.mu.Lock()
	whole = h.arrivals.take(c.Transfer, p, keeps, c.Last)
	h.mu.Unlock()
	e.receive(c.Transfer, p, m)
	return whole
}

// letGo lets the hosts of a transfer go that has come whole.
func (e *Engine) letGo(whole *arrival) {
	h := &e.peers.transfer
	for _, hosts := range [][]string{h.parked[whole.Transfer], whole.Kept} { // which another transfer may have parked
		for _, host := range hosts {
			e.frontier.Unpark(host, arriving)
		}
	}
	h.end(whole.Transfer)
	h.nowKept(whole.Kept, true, e.origins.hash, h.arrivals.partial()...)
}

// end forgets what is in hand of a transfer.
func (h *handing) end(t member.Transfer) {
	delete(h.parked, t)
	delete(h.came, t)
	delete(h.met, t)
}

// receive enters what a chunk has. Until the transfer is whole, its hosts are parked, lest the frontier hands them out
// in vain; but not those that are kept.
func (e *Engine) receive(t member.Transfer, p *decodedChunk, m *mergePlan) {
	items := int64(0)
	for i := range p.waiting {
		a := &p.waiting[i]
		a.host = e.names.intern(a.host)
		for k := range a.items {
			a.items[k].Path = e.names.intern(a.items[k].Path)
		}
		if isIn(m.kept, a.host) {
			a.clock = a.clock.merge(e.frontier, a.host)
			e.known.db.InsertKnown(asKnown(a.items))
		} else {
			e.frontier.Park(a.host, arriving)
			e.peers.transfer.park(t, a.host)
		}
		e.frontier.Arrive(a.host, a.clock.asked, a.clock.wait, a.items...)
		items += int64(len(a.items))
	}
	e.ledger.Weigh(items * itemWeight / 4) // a replay holds them in memory
	for i := range p.known {
		l := &p.known[i]
		if isIn(m.kept, l.host) {
			l.clock = l.clock.merge(e.frontier, l.host)
		}
		e.frontier.Arrive(l.host, l.clock.asked, l.clock.wait)
		e.countArrived(t, l, m)
		e.known.db.Import(l.entries)
	}
}

func (h *handing) park(t member.Transfer, host string) {
	if h.parked == nil {
		h.parked = map[member.Transfer][]string{}
	}
	if all := h.parked[t]; len(all) == 0 || all[len(all)-1] != host {
		h.parked[t] = append(all, host)
	}
}

// countArrived counts the pages that a host has given elsewhere, where their number is limited. What it has given here
// before is among them, unless it is kept.
func (e *Engine) countArrived(t member.Transfer, l *learnt, m *mergePlan) {
	if e.cfg.PagesPerHost == 0 {
		return
	}
	if isIn(m.kept, l.host) {
		e.limits.quota.AddEarlier(l.host, m.newPages(l))
		return
	}
	if e.peers.transfer.met == nil {
		e.peers.transfer.met = map[member.Transfer]map[uint64]bool{}
	}
	if e.peers.transfer.met[t] == nil {
		e.peers.transfer.met[t] = map[uint64]bool{}
	}
	if k := e.origins.hash(l.host); !e.peers.transfer.met[t][k] {
		e.peers.transfer.met[t][k] = true
		e.limits.quota.Reset(l.host)
	}
	n := int64(0)
	for i := range l.entries {
		if answered(&l.entries[i]) {
			n++
		}
	}
	e.limits.quota.AddEarlier(l.host, n)
}

// Drop undoes what was taken of a transfer that did not come whole, durably.
func (e *Engine) Drop(ctx context.Context, t member.Transfer) error {
	e.peers.transfer.one.Lock()
	sequence, err := e.drop(t)
	e.peers.transfer.one.Unlock()
	if err != nil {
		return fmt.Errorf("drop what has come from %s: %w", t.From, err)
	}
	return e.sure(ctx, sequence)
}

func (e *Engine) drop(t member.Transfer) (sequence uint64, err error) {
	h := &e.peers.transfer
	defer h.end(t)
	for part := range slices.Chunk(h.arrivals.leaving(t), forgetStep) {
		if err := e.dropPart(part); err != nil {
			return 0, err
		}
	}
	err = e.ledger.Within(func() error {
		var enc entry.Encoder
		enc.TransferDropped(t)
		e.ledger.Enqueue(enc.Writer)
		sequence = e.ledger.Sequence()
		h.mu.Lock()
		_, passed := h.arrivals.drop(t)
		h.mu.Unlock()
		for to, hosts := range passed {
			for _, host := range hosts {
				h.park(to, host)
			}
			h.nowKept(hosts, false, e.origins.hash, to)
		}
		return nil
	})
	return sequence, err
}

// dropPart undoes what came of some of a transfer's hosts, as if these had not been among it: so many that the
// ledger's gate is not held for long.
func (e *Engine) dropPart(hosts []string) error {
	r := removed{hosts: hosts}
	coming := e.peers.transfer.arrivals.without(hosts)
	err := e.ledger.Within(func() error {
		var enc entry.Encoder
		enc.HostsForgotten(hosts)
		e.ledger.Enqueue(enc.Writer)
		e.peers.transfer.mu.Lock()
		e.peers.transfer.arrivals.Coming = coming
		e.peers.transfer.mu.Unlock()
		e.frontier.Remove(hosts...)
		return nil
	})
	if err == nil {
		err = e.afterRemoval(&r)
	}
	return err
}

// Arrived are the transfers that came whole since an epoch was settled.
func (e *Engine) Arrived() []member.Transfer {
	e.peers.transfer.mu.Lock()
	defer e.peers.transfer.mu.Unlock()
	return slices.Clone(e.peers.transfer.arrivals.Whole)
}

// Partial are the transfers of which something has come, and that have not come whole.
func (e *Engine) Partial() []member.Transfer {
	e.peers.transfer.mu.Lock()
	defer e.peers.transfer.mu.Unlock()
	return e.peers.transfer.arrivals.partial()
}

// Settled forgets, durably, which transfers came whole under epochs up to one.
func (e *Engine) Settled(ctx context.Context, epoch uint64) error {
	e.peers.transfer.one.Lock()
	var sequence uint64
	err := e.ledger.Within(func() error {
		var enc entry.Encoder
		enc.EpochSettled(epoch)
		e.ledger.Enqueue(enc.Writer)
		sequence = e.ledger.Sequence()
		e.peers.transfer.mu.Lock()
		defer e.peers.transfer.mu.Unlock()
		e.peers.transfer.arrivals.settle(epoch)
		return nil
	})
	e.peers.transfer.one.Unlock()
	if err != nil {
		return err
	}
	return e.sure(ctx, sequence)
}
