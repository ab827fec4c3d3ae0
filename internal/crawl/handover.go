package crawl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"kumo/internal/entry"
	"kumo/internal/frontier"
	"kumo/internal/item"
	"kumo/internal/ledger"
	"kumo/internal/policy"
	"kumo/internal/seen"
	"kumo/internal/statefile"

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

// A ReceiverConfig is what a Receiver works on, with others that do at the same time.
type ReceiverConfig struct {
	Ledger    *ledger.Ledger
	Frontier  *frontier.Frontier
	DB        *seen.DB
	Abandoned *statefile.Abandoned
	Quota     *policy.Quota // counts pages; nil where their number is not limited
	Now       func() time.Time
	Ours      func(host string) bool                   // this node is the host's owner
	Hash      func(host string) uint64                 // for which nobody can choose hosts
	Intern    func(s string) string                    // of names of hosts, and of paths
	Reported  func(url string) bool                    // skipped.jsonl has said that its host could not be had
	Wait      func(ctx context.Context) error          // for room for another chunk
	Removed   func(hosts []string, robots []item.Item) // is told of hosts, sorted, that are gone, and whose robots.txt waited there
	// is told which hosts have come with a transfer, sorted, when that has come whole, durably: once, but not again after
	// a crash. It must be quick; may be nil
	Received func(t member.Transfer, hosts []string)
}

// A Receiver is a node's end of transfers: it takes hosts that come, forgets those that went, and knows which transfers
// are not settled.
type Receiver struct {
	ReceiverConfig

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
func (r *Receiver) Take(ctx context.Context, t member.Transfer, seq uint64, last bool,
	data []byte) (durable func(context.Context) error, err error) {
	if r.DB == nil {
		return nil, errNoDB
	}
	if err := r.Wait(ctx); err != nil {
		return nil, err
	}
	sequence, whole, err := r.takeChunk(entry.Chunk{Transfer: t, Seq: seq, Last: last, Data: string(data)})
	if err != nil {
		return nil, fmt.Errorf("take a chunk from %s: %w", t.From, err)
	}
	return func(ctx context.Context) error {
		err := r.sure(ctx, sequence)
		if err == nil && whole != nil && r.Received != nil {
			r.Received(t, whole.all())
		}
		return err
	}, nil
}

// sure is safe without waiting for the next commit's time: who hands over waits for each answer.
func (r *Receiver) sure(ctx context.Context, sequence uint64) error {
	r.Ledger.Hurry()
	return r.Ledger.WaitDurable(ctx, sequence)
}

func (r *Receiver) takeChunk(c entry.Chunk) (sequence uint64, whole *arrival, err error) {
	r.one.Lock()
	defer r.one.Unlock()
	if r.unpack == nil {
		if r.unpack, err = newUnpacker(); err != nil {
			return 0, nil, err
		}
	}
	p, err := r.unpack.read([]byte(c.Data))
	if err != nil {
		return 0, nil, err
	}
	if next, err := r.arrivals.expects(c.Transfer, c.Seq); err != nil || !next {
		return r.Ledger.Sequence(), nil, err // what was taken before may not be durable yet
	}
	defer r.plan.Store(nil)
	for taken := false; !taken && err == nil; {
		m := r.planMerge(p, r.keep(c.Transfer, p))
		keeps := r.arrivals.keeps(c.Transfer, m.kept)
		err = r.Ledger.Within(func() error {
			if taken = slices.Equal(r.keep(c.Transfer, p), m.kept); taken { // or else more are held here by now
				whole = r.enter(&c, p, m, keeps)
				sequence = r.Ledger.Sequence()
			}
			return nil
		})
	}
	if err == nil && whole != nil {
		r.letGo(whole)
	}
	return sequence, whole, err
}

// enter enters a chunk into the journal and all that is a view of it. It is called within the ledger's gate, and
// reads nothing from the disk.
func (r *Receiver) enter(c *entry.Chunk, p *decodedChunk, m *mergePlan, keeps []string) (whole *arrival) {
	r.meet(c.Transfer, p, m.kept, r.Hash)
	c.Kept, c.Left = m.kept, m.leftOut(p)
	var enc entry.Encoder
	enc.Chunk(*c)
	r.Ledger.Enqueue(enc.Writer)
	p.leaveOut(c.Left)
	r.mu.Lock()
	whole = r.arrivals.take(c.Transfer, p, keeps, c.Last)
	r.mu.Unlock()
	r.receive(c.Transfer, p, m)
	return whole
}

// letGo lets the hosts of a transfer go that has come whole.
func (r *Receiver) letGo(whole *arrival) {
	for _, hosts := range [][]string{r.parked[whole.Transfer], whole.Kept} { // which another transfer may have parked
		for _, host := range hosts {
			r.Frontier.Unpark(host, arriving)
		}
	}
	r.end(whole.Transfer)
	r.nowKept(whole.Kept, true, r.Hash, r.arrivals.partial()...)
}

// end forgets what is in hand of a transfer.
func (r *Receiver) end(t member.Transfer) {
	delete(r.parked, t)
	delete(r.came, t)
	delete(r.met, t)
}

// receive enters what a chunk has. Until the transfer is whole, its hosts are parked, lest the frontier hands them out
// in vain; but not those that are kept.
func (r *Receiver) receive(t member.Transfer, p *decodedChunk, m *mergePlan) {
	items := int64(0)
	for i := range p.waiting {
		a := &p.waiting[i]
		a.host = r.Intern(a.host)
		for k := range a.items {
			a.items[k].Path = r.Intern(a.items[k].Path)
		}
		if isIn(m.kept, a.host) {
			a.clock = a.clock.merge(r.Frontier, a.host)
			r.DB.InsertKnown(asKnown(a.items))
		} else {
			r.Frontier.Park(a.host, arriving)
			r.park(t, a.host)
		}
		r.Frontier.Arrive(a.host, a.clock.asked, a.clock.wait, a.items...)
		items += int64(len(a.items))
	}
	r.Ledger.Weigh(items * itemWeight / 4) // a replay holds them in memory
	for i := range p.known {
		l := &p.known[i]
		if isIn(m.kept, l.host) {
			l.clock = l.clock.merge(r.Frontier, l.host)
		}
		r.Frontier.Arrive(l.host, l.clock.asked, l.clock.wait)
		r.countArrived(t, l, m)
		r.DB.Import(l.entries)
	}
}

func (r *Receiver) park(t member.Transfer, host string) {
	if r.parked == nil {
		r.parked = map[member.Transfer][]string{}
	}
	if all := r.parked[t]; len(all) == 0 || all[len(all)-1] != host {
		r.parked[t] = append(all, host)
	}
}

// countArrived counts the pages that a host has given elsewhere, where their number is limited. What it has given here
// before is among them, unless it is kept.
func (r *Receiver) countArrived(t member.Transfer, l *learnt, m *mergePlan) {
	if r.Quota == nil {
		return
	}
	if isIn(m.kept, l.host) {
		r.Quota.AddEarlier(l.host, m.newPages(l))
		return
	}
	if r.met == nil {
		r.met = map[member.Transfer]map[uint64]bool{}
	}
	if r.met[t] == nil {
		r.met[t] = map[uint64]bool{}
	}
	if k := r.Hash(l.host); !r.met[t][k] {
		r.met[t][k] = true
		r.Quota.Reset(l.host)
	}
	n := int64(0)
	for i := range l.entries {
		if l.entries[i].Answered() {
			n++
		}
	}
	r.Quota.AddEarlier(l.host, n)
}

// Drop undoes what was taken of a transfer that did not come whole, durably.
func (r *Receiver) Drop(ctx context.Context, t member.Transfer) error {
	r.one.Lock()
	sequence, err := r.drop(t)
	r.one.Unlock()
	if err != nil {
		return fmt.Errorf("drop what has come from %s: %w", t.From, err)
	}
	return r.sure(ctx, sequence)
}

func (r *Receiver) drop(t member.Transfer) (sequence uint64, err error) {
	defer r.end(t)
	for part := range slices.Chunk(r.arrivals.leaving(t), forgetStep) {
		if err := r.dropPart(part); err != nil {
			return 0, err
		}
	}
	err = r.Ledger.Within(func() error {
		var enc entry.Encoder
		enc.TransferDropped(t)
		r.Ledger.Enqueue(enc.Writer)
		sequence = r.Ledger.Sequence()
		r.mu.Lock()
		_, passed := r.arrivals.drop(t)
		r.mu.Unlock()
		for to, hosts := range passed {
			for _, host := range hosts {
				r.park(to, host)
			}
			r.nowKept(hosts, false, r.Hash, to)
		}
		return nil
	})
	return sequence, err
}

// dropPart undoes what came of some of a transfer's hosts, as if these had not been among it: so many that the
// ledger's gate is not held for long.
func (r *Receiver) dropPart(hosts []string) error {
	coming := r.arrivals.without(hosts)
	return r.remove(hosts, func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.arrivals.Coming = coming
		return nil
	})
}

// Arrived are the transfers that came whole since an epoch was settled.
func (r *Receiver) Arrived() []member.Transfer {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.arrivals.Whole)
}

// Partial are the transfers of which something has come, and that have not come whole.
func (r *Receiver) Partial() []member.Transfer {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.arrivals.partial()
}

// Settled forgets, durably, which transfers came whole under epochs up to one.
func (r *Receiver) Settled(ctx context.Context, epoch uint64) error {
	r.one.Lock()
	var sequence uint64
	err := r.Ledger.Within(func() error {
		var enc entry.Encoder
		enc.EpochSettled(epoch)
		r.Ledger.Enqueue(enc.Writer)
		sequence = r.Ledger.Sequence()
		r.mu.Lock()
		defer r.mu.Unlock()
		r.arrivals.settle(epoch)
		return nil
	})
	r.one.Unlock()
	if err != nil {
		return err
	}
	return r.sure(ctx, sequence)
}

func newReceiver(cfg ReceiverConfig, unsettled arrivals) *Receiver {
	return &Receiver{ReceiverConfig: cfg, arrivals: unsettled.copy()}
}

// unsettled are the transfers that are not settled, for a checkpoint's note; nil if there are none.
func (r *Receiver) unsettled() *arrivals {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.arrivals.Coming)+len(r.arrivals.Whole)+len(r.arrivals.Went) == 0 {
		return nil
	}
	a := r.arrivals.copy()
	return &a
}
