// Package transfer moves the state of hosts between nodes.
//
// It encodes and decodes the chunks of a transfer, sends and receives them, and records the transfers that are not yet
// complete.
//
// # Handover
//
// The sender drains the hosts and exports them in chunks. The receiver writes each chunk to its journal, its frontier
// and its URL database, while it holds the ledger's gate once. After the last chunk the receiver owns the hosts, and
// the sender forgets them.
//
// Pending URLs are held by exactly one of the two nodes. The sender also retains its known URLs of a host. They are a
// subset of the new owner's. When the host comes back, its pending URLs come with it, and are not checked against the
// retained ones.
//
// If hosts are divided into slices, a slice is treated like a host here.
//
// # Hosts that are away
//
// A host that the frontier reports as away is not held here: it was forgotten, or its transfer was dropped, and no part
// of it has come back.
//
// If a host is already held here when it arrives, the node keeps it, whatever the outcome of the transfer. Its crawl
// continues meanwhile, and the arriving state is merged. The same applies if a URL of the host is found here during the
// transfer, for example when the URL database decides only then that a link was new. The sender does not know that URL.
package transfer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/cluster/member"
	"kumo/internal/content/cookies"
	"kumo/internal/content/policy"
	"kumo/internal/state/entry"
	"kumo/internal/state/frontier"
	"kumo/internal/state/ledger"
	"kumo/internal/state/seen"
	"kumo/internal/state/statefile"
)

// A Config is what an Endpoint works on, with others that do at the same time.
type Config struct {
	Ledger      *ledger.Ledger
	Frontier    *frontier.Frontier
	DB          *seen.DB
	Abandoned   *statefile.AbandonedQueue
	Quota       *policy.Quota // counts pages; nil where their number is not limited
	Now         func() time.Time
	IsOwn       func(host string) bool          // this node is the host's owner, or its slice's
	Hash        func(host string) uint64        // for which nobody can choose hosts
	Intern      func(s string) string           // of names of hosts, and of paths
	Reported    func(url string) bool           // skipped.jsonl has said that its host could not be had
	WaitForRoom func(ctx context.Context) error // for room for another chunk
	// is told of hosts, sorted, that are gone, and whose robots.txt waited there
	OnRemoved func(hosts []string, robots []item.Item)
	// is told which hosts have come with a transfer, sorted, when that has come whole, durably: once, but not again after
	// a crash. It must be quick; may be nil
	OnReceived func(t member.Transfer, hosts []string)

	Cookies *cookies.Jar // that the hosts' servers have set; nil: none are kept

	Rank         func(items []item.Item)  // gives items that come their ranks; nil: they have those that they have
	ImportWorths func(all []Worth)        // is told what links are worth to URLs that come; nil: nobody wants to know
	Worth        func(url string) float32 // says what they are worth to one that goes; nil: nothing
}

// An Endpoint is a node's end of transfers: it takes hosts that come, forgets those that went, and knows which
// transfers are not settled.
type Endpoint struct {
	Config
	arrivals

	opMu    sync.Mutex   // held by who takes, drops or forgets; taken before the ledger's gate
	reader  *ChunkReader // used with one held; nil until it is needed
	parked  map[member.Transfer][]string
	counted map[member.Transfer]map[uint64]bool // hosts whose pages are counted anew; nil without a limit
	plan    atomic.Pointer[mergePlan]           // of the chunk at hand; nil if nothing is to be merged
}

// ParkedFor is what hosts are parked for whose transfer is under way: they are not this node's yet.
const ParkedFor = "a transfer"

// ErrNoDB is a crawl that keeps nothing on the disk.
var ErrNoDB = errors.New("a crawl without a folder has no part in a handover")

// Take applies a chunk of another node's [Export]. A transfer's chunks come in order; one that was applied before is
// ignored. With the last one, which may be empty, this node owns the hosts. durable waits until the chunk is in the
// journal, while the next is taken. Invalid data changes nothing. Take waits for room, and needs a Run to commit.
func (r *Endpoint) Import(ctx context.Context, t member.Transfer, seq uint64, last bool,
	data []byte) (durable func(context.Context) error, err error) {
	if r.DB == nil {
		return nil, ErrNoDB
	}
	if err := r.WaitForRoom(ctx); err != nil {
		return nil, err
	}
	sequence, whole, err := r.receiveChunk(entry.Chunk{Transfer: t, Seq: seq, Last: last, Data: string(data)})
	if err != nil {
		return nil, fmt.Errorf("take a chunk from %s: %w", t.From, err)
	}
	return func(ctx context.Context) error {
		err := r.waitDurable(ctx, sequence)
		if err == nil && whole != nil && r.OnReceived != nil {
			r.OnReceived(t, whole.allHosts())
		}
		return err
	}, nil
}

// waitDurable is safe without waiting for the next commit's time: who hands over waits for each answer.
func (r *Endpoint) waitDurable(ctx context.Context, sequence uint64) error {
	r.Ledger.CommitSoon()
	return r.Ledger.WaitDurable(ctx, sequence)
}

func (r *Endpoint) receiveChunk(c entry.Chunk) (sequence uint64, whole *Incoming, err error) {
	r.opMu.Lock()
	defer r.opMu.Unlock()
	if r.reader == nil {
		if r.reader, err = NewChunkReader(r.Frontier.Slices()); err != nil {
			return 0, nil, err
		}
	}
	p, err := r.reader.Read([]byte(c.Data))
	if err != nil {
		return 0, nil, err
	}
	if next, err := r.expects(c.Transfer, c.Seq); err != nil || !next {
		return r.Ledger.Sequence(), nil, err // what was taken before may not be durable yet
	}
	defer r.plan.Store(nil)
	for taken := false; !taken && err == nil; {
		m := r.planMerge(p, r.keptHosts(c.Transfer, p))
		keeps, finds := r.keeps(c.Transfer, m.kept)
		// What others are about to put there makes a host kept: it is there before, or comes later and sees the transfer.
		err = r.Ledger.WithinExclusive(func() error {
			if taken = slices.Equal(r.keptHosts(c.Transfer, p), m.kept); taken { // or else more are held here by now
				if r.keptVersion != finds {
					keeps, _ = r.keeps(c.Transfer, m.kept)
				}
				whole = r.applyChunk(&c, p, m, keeps)
				sequence = r.Ledger.Sequence()
			}
			return nil
		})
	}
	if err == nil && whole != nil {
		r.finish(whole)
	}
	return sequence, whole, err
}

// applyChunk enters a chunk into the journal and all that is a view of it. It is called alone within the ledger's gate, and
// reads nothing from the disk.
func (r *Endpoint) applyChunk(c *entry.Chunk, p *Chunk, m *mergePlan, keeps []string) (whole *Incoming) {
	r.recordHosts(c.Transfer, p, m.kept)
	c.Kept, c.Excluded = m.kept, m.excluded(p)
	var enc entry.Encoder
	enc.Chunk(*c)
	r.Ledger.Enqueue(enc.Writer)
	p.Exclude(c.Excluded)
	r.mu.Lock()
	whole = r.Unsettled.Add(c.Transfer, p, keeps, c.Last)
	r.mu.Unlock()
	if r.ImportWorths != nil {
		r.ImportWorths(p.Worths) // those of what waits here already, too
	}
	r.importChunk(c.Transfer, p, m)
	return whole
}

func (r *Endpoint) finish(whole *Incoming) {
	for _, hosts := range [][]string{r.parked[whole.Transfer], whole.Kept} { // which another transfer may have parked
		for _, host := range hosts {
			r.Frontier.Unpark(host, ParkedFor)
		}
	}
	r.forgetTransfer(whole.Transfer)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.setKept(whole.Kept, true, r.Unsettled.Partial()...)
}

func (r *Endpoint) forgetTransfer(t member.Transfer) {
	delete(r.parked, t)
	delete(r.counted, t)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.hostsByTransfer, t)
}

// importChunk enters what a chunk has. Until the transfer is whole, its hosts are parked, lest the frontier hands them out
// in vain; but not those that are kept.
func (r *Endpoint) importChunk(t member.Transfer, p *Chunk, m *mergePlan) {
	for _, c := range p.Cookies { // they stay if the transfer is dropped: a server may take them as before
		r.Cookies.Import(c)
	}
	items := int64(0)
	for i := range p.Pending {
		a := &p.Pending[i]
		a.Host = r.Intern(a.Host)
		for k := range a.Items {
			a.Items[k].Path = r.Intern(a.Items[k].Path)
		}
		if r.Rank != nil {
			r.Rank(a.Items)
		}
		if isIn(m.kept, a.Host) {
			a.Timing = a.Timing.Merge(r.Frontier, a.Host)
			r.DB.InsertKnown(KnownURLs(a.Items))
		} else {
			r.Frontier.Park(a.Host, ParkedFor)
			r.park(t, a.Host)
		}
		r.Frontier.Import(a.Host, a.Timing.RequestedDelay, a.Timing.Wait, a.Items...)
		items += int64(len(a.Items))
	}
	r.Ledger.AddReplayCost(items * item.Weight / 4) // a replay holds them in memory
	for i := range p.Known {
		l := &p.Known[i]
		if isIn(m.kept, l.Host) {
			l.Timing = l.Timing.Merge(r.Frontier, l.Host)
		}
		r.Frontier.Import(l.Host, l.Timing.RequestedDelay, l.Timing.Wait)
		r.countPages(t, l, m)
		r.DB.Import(l.Entries)
	}
}

func (r *Endpoint) park(t member.Transfer, host string) {
	if r.parked == nil {
		r.parked = map[member.Transfer][]string{}
	}
	if all := r.parked[t]; len(all) == 0 || all[len(all)-1] != host {
		r.parked[t] = append(all, host)
	}
}

// countPages counts the pages that a host has given elsewhere, where their number is limited. What it has given here
// before is among them, unless it is kept.
func (r *Endpoint) countPages(t member.Transfer, l *HostKnown, m *mergePlan) {
	if r.Quota == nil {
		return
	}
	if isIn(m.kept, l.Host) {
		r.Quota.AddEarlier(item.HostOfSlice(l.Host), m.newPages(l))
		return
	}
	if r.counted == nil {
		r.counted = map[member.Transfer]map[uint64]bool{}
	}
	if r.counted[t] == nil {
		r.counted[t] = map[uint64]bool{}
	}
	host := item.HostOfSlice(l.Host)
	if k := r.Hash(l.Host); !r.counted[t][k] {
		r.counted[t][k] = true
		if r.Frontier.Slices() == nil { // or else others of its slices may have been here all along
			r.Quota.Reset(host)
		}
	}
	n := int64(0)
	for i := range l.Entries {
		if l.Entries[i].Answered() {
			n++
		}
	}
	r.Quota.AddEarlier(host, n)
}

// Drop undoes what was taken of a transfer that did not come whole, durably.
func (r *Endpoint) Drop(ctx context.Context, t member.Transfer) error {
	what := fmt.Sprint("drop what has come from ", t.From)
	return r.durably(ctx, what, func() (uint64, error) { return r.drop(t) })
}

// durably does something by itself, and waits until the journal has it.
func (r *Endpoint) durably(ctx context.Context, what string, f func() (sequence uint64, err error)) error {
	r.opMu.Lock()
	sequence, err := f()
	r.opMu.Unlock()
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return r.waitDurable(ctx, sequence)
}

func (r *Endpoint) drop(t member.Transfer) (sequence uint64, err error) {
	for part := range slices.Chunk(r.droppedHosts(t), ForgetStep) {
		if err := r.DropPart(part); err != nil {
			return 0, err
		}
	}
	sequence, err = r.change(r.Ledger.WithinExclusive, func(enc *entry.Encoder) {
		enc.TransferDropped(t)
		_, passed := r.Unsettled.Drop(t)
		for to, hosts := range passed {
			for _, host := range hosts {
				r.park(to, host)
			}
			r.setKept(hosts, false, to)
		}
	})
	if err == nil {
		r.forgetTransfer(t)
	}
	return sequence, err
}

// change changes what is unsettled, and the journal, within the ledger's gate.
func (r *Endpoint) change(gate func(func() error) error, f func(*entry.Encoder)) (sequence uint64, err error) {
	err = gate(func() error {
		var enc entry.Encoder
		r.mu.Lock()
		f(&enc)
		r.mu.Unlock()
		r.Ledger.Enqueue(enc.Writer)
		sequence = r.Ledger.Sequence()
		return nil
	})
	return sequence, err
}

// DropPart undoes what came of some of a transfer's hosts, sorted, as if these had not been among it: so many that the
// ledger's gate is not held for long. Those that have become kept meanwhile stay.
func (r *Endpoint) DropPart(hosts []string) error {
	hosts, coming, finds := r.without(hosts)
	return r.remove(func() ([]string, error) {
		if r.keptVersion != finds {
			hosts, coming, _ = r.without(hosts)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.Unsettled.Coming = coming
		return hosts, nil
	})
}

// FinalizeEpoch forgets, durably, which transfers came whole under epochs up to one.
func (r *Endpoint) FinalizeEpoch(ctx context.Context, epoch uint64) error {
	return r.durably(ctx, "forget what is settled", func() (uint64, error) {
		return r.change(r.Ledger.Within, func(enc *entry.Encoder) {
			enc.EpochSettled(epoch)
			r.Unsettled.Settle(epoch)
		})
	})
}

// New makes a node's end of transfers, with those that are not settled.
func New(cfg Config, unsettled Unsettled) *Endpoint {
	r := &Endpoint{Config: cfg, arrivals: arrivals{hash: cfg.Hash, Unsettled: unsettled.Clone(),
		hostsByTransfer: map[member.Transfer]map[uint64]bool{}}}
	for _, t := range unsettled.Partial() {
		r.hostsOf(t)
	}
	return r
}
