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

// A Config contains the data of the node on which an Endpoint works. Other parts use it concurrently.
type Config struct {
	Ledger    *ledger.Ledger
	Frontier  *frontier.Frontier
	DB        *seen.DB
	Abandoned *statefile.AbandonedQueue
	Quota     *policy.Quota // counts pages; nil if their number is not limited
	Now       func() time.Time
	IsOwn     func(host string) bool   // reports whether this node owns the host or slice
	Hash      func(host string) uint64 // hash that others cannot predict
	Intern    func(s string) string    // interns names of hosts, and paths
	// reports whether skipped.jsonl has reported the URL as failed with its host
	Reported    func(url string) bool
	WaitForRoom func(ctx context.Context) error // waits for space for another chunk
	// OnRemoved is called with hosts, sorted, that were removed, and the robots.txt fetches that were in their queues.
	OnRemoved func(hosts []string, robots []item.Item)
	// OnReceived is called with the hosts of a transfer, sorted, when it was received completely and is durable: once,
	// but not again after a crash. It must be quick; may be nil.
	OnReceived func(t member.Transfer, hosts []string)

	Cookies *cookies.Jar // cookies set by servers; nil if they are not stored

	Rank         func(items []item.Item)  // sets the ranks of received items; nil if they keep theirs
	ImportWorths func(all []Worth)        // receives the worth of links to received URLs; may be nil
	Worth        func(url string) float32 // returns the worth of links to a URL that is sent; may be nil
}

// An Endpoint is a node's side of transfers. It receives hosts, forgets hosts that were sent, and records the unsettled
// transfers.
type Endpoint struct {
	Config
	arrivals

	opMu       sync.Mutex   // held while receiving, dropping or forgetting; acquired before the ledger's gate
	reader     *ChunkReader // used with opMu held; nil until needed
	parked     map[member.Transfer][]string
	counted    map[member.Transfer]map[uint64]bool // hosts whose page count was reset for a transfer; nil without a limit
	duplicates atomic.Int64                        // pages fetched here and by senders
	plan       atomic.Pointer[mergePlan]           // of the current chunk; nil if there is nothing to merge
}

// ParkedFor is the origin for which hosts of an incoming transfer are parked, because this node does not own them yet.
const ParkedFor = "a transfer"

// ErrNoDB reports a crawl without persistent state.
var ErrNoDB = errors.New("a crawl without a folder cannot transfer hosts")

// Import applies a chunk of another node's [Export]. The chunks of a transfer arrive in order; a chunk that was applied
// before is ignored. With the last one, which may be empty, this node becomes the owner of the hosts. durable waits
// until the chunk is durable; the next chunk may be taken meanwhile. Invalid data changes nothing. Import waits for
// space, and needs an active Run of the ledger.
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
		return nil, fmt.Errorf("receive a chunk from %s: %w", t.From, err)
	}
	return func(ctx context.Context) error {
		err := r.waitDurable(ctx, sequence)
		if err == nil && whole != nil && r.OnReceived != nil {
			r.OnReceived(t, whole.allHosts())
		}
		return err
	}, nil
}

// waitDurable waits until a batch is durable. It starts the commit at once, because the sender waits for each reply.
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
		return r.Ledger.Sequence(), nil, err // the earlier chunk may not be durable yet
	}
	defer r.plan.Store(nil)
	for taken := false; !taken && err == nil; {
		m := r.planMerge(p, r.keptHosts(c.Transfer, p))
		keeps, finds := r.keeps(c.Transfer, m.kept)
		// Puts that others are about to make keep a host: they are either complete before this, or come later and find
		// the transfer.
		err = r.Ledger.WithinExclusive(func() error {
			// otherwise this node holds more of the hosts by now
			if taken = slices.Equal(r.keptHosts(c.Transfer, p), m.kept); taken {
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

// applyChunk writes a chunk to the journal and its views. Call it within the ledger's exclusive gate. It does not read
// the disk.
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
		r.ImportWorths(p.Worths) // also for URLs that are already pending here
	}
	r.importChunk(c.Transfer, p, m)
	return whole
}

func (r *Endpoint) finish(whole *Incoming) {
	for _, hosts := range [][]string{r.parked[whole.Transfer], whole.Kept} { // another transfer may have parked them
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

// importChunk adds the contents of a chunk to the views. Until the transfer is complete, its hosts are parked, so that
// the frontier does not hand their URLs out, except those that are kept.
func (r *Endpoint) importChunk(t member.Transfer, p *Chunk, m *mergePlan) {
	for _, c := range p.Cookies { // they stay if the transfer is dropped, as servers may still accept them
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
			r.countDuplicates(l, m)
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

// countPages counts the pages that a host has returned at other nodes, if their number is limited. These include its
// pages at this node, unless the host is kept.
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
		if r.Frontier.Slices() == nil { // otherwise its other slices may have been here all along
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

// Drop undoes an incomplete transfer, durably.
func (r *Endpoint) Drop(ctx context.Context, t member.Transfer) error {
	what := fmt.Sprint("drop the transfer from ", t.From)
	return r.durably(ctx, what, func() (uint64, error) { return r.drop(t) })
}

// durably calls f with opMu held, and waits until its changes are durable.
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

// change changes the unsettled transfers and the journal within the ledger's gate.
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

// DropPart removes some of a transfer's hosts, sorted, as if they were not part of it. There should be few, because the
// ledger's gate is held meanwhile. Hosts that have become kept stay.
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

// FinalizeEpoch drops, durably, the records of complete transfers up to an epoch.
func (r *Endpoint) FinalizeEpoch(ctx context.Context, epoch uint64) error {
	return r.durably(ctx, "settle transfers", func() (uint64, error) {
		return r.change(r.Ledger.Within, func(enc *entry.Encoder) {
			enc.EpochSettled(epoch)
			r.Unsettled.Settle(epoch)
		})
	})
}

// New returns a node's endpoint, with its unsettled transfers.
func New(cfg Config, unsettled Unsettled) *Endpoint {
	r := &Endpoint{Config: cfg, arrivals: arrivals{hash: cfg.Hash, Unsettled: unsettled.Clone(),
		hostsByTransfer: map[member.Transfer]map[uint64]bool{}}}
	for _, t := range unsettled.Partial() {
		r.hostsOf(t)
	}
	return r
}
