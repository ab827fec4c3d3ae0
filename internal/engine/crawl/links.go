package crawl

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"kumo/internal/base/weburl"
	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
	"kumo/internal/engine/exchange"
	"kumo/internal/state/entry"
	"kumo/internal/state/frontier"
	"kumo/internal/state/ledger"
	"kumo/internal/state/seen"
)

// Links exchanges links with other nodes: it sends those in the outbox, and admits those that others have found.
type Links struct {
	hosts      *hosts
	outbox     *exchange.Outbox // nil without a router
	leftovers  entry.Links      // outbox of an earlier run with a router; admitted here if this run has none
	taken      atomic.Int64     // new URLs queued from outboxes
	claims     *claims
	holds      *holds
	pool       *batchPool
	scopeSeeds *scopeSeeds
	batches    *batchWriter
	abandons   *abandoner
	ledger     *ledger.Ledger
}

// TakeLinks admits links that another node has found, a [member.Batch]'s data. It returns the indexes of those that it
// refuses because their hosts are not this node's; the others are durable in its journal, which is replicated. The same
// links may come again, and must after an error. It waits for room, and needs a Run to commit.
func (l *Links) TakeLinks(ctx context.Context, data []byte) (refused []int, err error) {
	return l.admitFrom(ctx, data, true)
}

// AdoptLinks is TakeLinks for the outbox of a dead node: links whose hosts are not this node's go into its own outbox.
func (l *Links) AdoptLinks(ctx context.Context, data []byte) error {
	_, err := l.admitFrom(ctx, data, false)
	return err
}

func (l *Links) admitFrom(ctx context.Context, data []byte, refuses bool) ([]int, error) {
	b := l.pool.acquire()
	defer l.pool.put(b)
	if err := b.read(data); err != nil {
		return nil, fmt.Errorf("read links from another node: %w", err)
	}
	if err := l.holds.admit(ctx); err != nil {
		return nil, err
	}
	all := len(b.cands)
	refused, sequence, err := l.admit(b, refuses, nil)
	if err == nil && len(refused) < all {
		err = l.ledger.WaitDurable(ctx, sequence)
	}
	return refused, err
}

// admit admits links from another node or an earlier run. It returns the sequence of their batch, to which also may
// add.
func (l *Links) admit(b *batch, refuses bool, also func(refused []int)) (refused []int, sequence uint64, err error) {
	err = l.abandons.commitBatch(b, func() error {
		if refuses {
			refused = l.refuse(b)
		}
		// Links that cannot be fetched count as admitted, so that their finder sends them no more.
		b.retain(func(_ int, c *entry.Candidate) bool { return frontier.Belongs(c.Host, c.Item.URL) })
		l.scopeSeeds.admitAll(b)
		if err := l.batches.apply(b); err != nil {
			return err
		}
		if also != nil {
			also(refused)
		}
		l.taken.Add(int64(len(b.found)))
		sequence = l.ledger.Sequence()
		return nil
	})
	return refused, sequence, err
}

// refuse removes links that are not this node's from a batch. It is called within the ledger's gate: so after the
// owners have changed and the gate was free once, no foreign links are written any more.
func (l *Links) refuse(b *batch) (refused []int) {
	b.routed = true
	b.retain(func(i int, c *entry.Candidate) bool {
		if frontier.Belongs(c.Host, c.Item.URL) && !l.hosts.ours(l.hosts.sliceOf(c)) {
			l.outbox.Want(l.hosts.sliceOf(c))
			refused = append(refused, i)
			return false
		}
		return true
	})
	return refused
}

// read fills a batch with links that an outbox has written. Strings are parts of one copy of data.
func (b *batch) read(data []byte) error {
	b.foreign = true
	return exchange.Read(data, func(c entry.Candidate, written []byte) {
		b.cands = append(b.cands, c)
		b.urls = append(b.urls, seen.URL{URL: c.Item.URL, Depth: c.Item.Depth, State: entry.StateFor(c.Verdict),
			Payload: written})
	})
}

// admitLeft admits the links in the outbox of an earlier run, which had a router.
func (l *Links) admitLeft() error {
	if len(l.leftovers) == 0 {
		return nil
	}
	err := l.leftovers.Batches(func(data []byte) error {
		var b batch
		if err := b.read(data); err != nil {
			return err
		}
		b.returned = true
		_, _, err := l.admit(&b, false, nil)
		return err
	})
	if err != nil {
		return err
	}
	numbers := l.leftovers.Numbers()
	l.leftovers = nil
	return l.ledger.Within(func() error {
		var enc entry.Encoder
		enc.Delivered(numbers[0], numbers[len(numbers)-1])
		l.ledger.Enqueue(enc.Writer)
		return nil
	})
}

// Batches returns the links to send to the owners of their hosts now, in batches for their TakeLinks; those that were
// unanswered for too long come first. owner returns the owner of a host that is not this node's, or false if the links
// are to wait. Where links are claimed, it is called for all hosts and returns the node that remembers their URLs. The
// less often Batches is called, the fuller the batches are.
func (l *Links) Batches(now time.Time, owner func(host string) (strategy.Node, bool)) []member.Batch {
	if l.outbox == nil {
		return nil
	}
	if l.claims != nil {
		return l.outbox.Batches(now, owner)
	}
	all := l.outbox.Batches(now, func(host string) (strategy.Node, bool) {
		if l.hosts.ours(host) {
			return thisNode, true
		}
		return owner(host)
	})
	return slices.DeleteFunc(all, func(b member.Batch) bool {
		if b.To == thisNode {
			_ = l.reclaim(b, now) // after an error nothing more is committed, and the run ends with it
		}
		return b.To == thisNode
	})
}

// thisNode is the owner of hosts that became this node's while links to them were in the outbox.
const thisNode strategy.Node = ""

// Answered records a node's answer to a batch: see [exchange.Outbox].
func (l *Links) Answered(from strategy.Node, batch uint64, refused []int, now time.Time) {
	if l.outbox != nil && from != thisNode {
		l.outbox.Answered(from, batch, refused, now)
	}
}

// reclaim admits links from the outbox whose hosts are this node's by now.
func (l *Links) reclaim(from member.Batch, now time.Time) error {
	var b batch
	if err := b.read(from.Data); err != nil {
		return err
	}
	b.returned = true
	_, _, err := l.admit(&b, true, func(refused []int) { l.outbox.Answered(thisNode, from.Number, refused, now) })
	return err
}

// Taken returns how many new URLs this process has queued from outboxes, its own included.
func (l *Links) Taken() int64 { return l.taken.Load() }

// Unrouted returns the hosts whose owners are unknown, as [member.Outbox] does.
func (l *Links) Unrouted() (hosts []string, links []int) { return l.outbox.Wanted() }

// WaitingFor returns how many links to a URL's host, or to its slice, wait until the owner is known.
func (l *Links) WaitingFor(u weburl.URL) int {
	return l.outbox.Waiting(l.hosts.slices.OfHost(u.Host(), u.String()))
}

// RetryDeferred lets the next call of Batches route links whose owners have become known: those to hosts, or all if
// hosts is nil.
func (l *Links) RetryDeferred(hosts []string) { l.outbox.Wake(hosts) }

// Outbox returns how many links are in the outbox, and about how much memory they take.
func (l *Links) Outbox() (links int, bytes int64) { return l.outbox.Size() }
