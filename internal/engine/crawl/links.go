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

// Links exchanges links with other nodes: it sends those in the outbox, and takes in those that others have found.
type Links struct {
	hosts      *hosts
	outbox     *exchange.Outbox // nil without a router
	leftovers  entry.Links      // for other nodes, of an earlier run that had a router; taken in here if this one has none
	taken      atomic.Int64     // new URLs that were taken from outboxes
	claims     *claims
	holds      *holds
	pool       *batchPool
	scopeSeeds *scopeSeeds
	batches    *batchWriter
	abandons   *abandoner
	ledger     *ledger.Ledger
}

// TakeLinks admits links that another node has found, a [member.Batch]'s data. It returns the indexes of those that it
// refuses because their hosts are not this node's; the others are durable in its journal, and that is shipped. The same
// links may come again, and are to be after an error. It waits for room, and needs a Run to commit.
func (l *Links) TakeLinks(ctx context.Context, data []byte) (refused []int, err error) {
	return l.admitFrom(ctx, data, true)
}

// AdoptLinks is TakeLinks for links that a dead node had for others: those whose hosts are not this node's go into its
// outbox.
func (l *Links) AdoptLinks(ctx context.Context, data []byte) error {
	_, err := l.admitFrom(ctx, data, false)
	return err
}

func (l *Links) admitFrom(ctx context.Context, data []byte, refuses bool) ([]int, error) {
	b := l.pool.take()
	defer l.pool.put(b)
	if err := b.read(data); err != nil {
		return nil, fmt.Errorf("take links from another node: %w", err)
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

// admit takes links in that come from elsewhere. It returns the sequence of their batch, to which also may add.
func (l *Links) admit(b *batch, refuses bool, also func(refused []int)) (refused []int, sequence uint64, err error) {
	err = l.abandons.commitBatch(b, func() error {
		if refuses {
			refused = l.refuse(b)
		}
		// What nobody can fetch counts as taken in: its finder is to send it no more.
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

// refuse takes those out of a batch that are not this node's. It is called within the ledger's gate: who waits,
// after the owners have changed, for what is put there, knows that nothing of others' is put any more.
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

// read fills a batch with links that outboxes have written. Strings are parts of one copy of data.
func (b *batch) read(data []byte) error {
	b.foreign = true
	return exchange.Read(data, func(c entry.Candidate, written []byte) {
		b.cands = append(b.cands, c)
		b.urls = append(b.urls, seen.URL{URL: c.Item.URL, Depth: c.Item.Depth, State: entry.StateFor(c.Verdict),
			Payload: written})
	})
}

// admitLeft admits the links that an earlier run, which had a router, has left in its outbox.
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

// Batches returns the links to send to the owners of their hosts now, in batches for their TakeLinks; first those that
// had no answer for too long. owner returns the owner of a host that is not this node's, or false if the links are to
// wait. Where links are claimed, it is called for all hosts and returns who remembers their URLs. The more seldom
// Batches is called, the fuller are the batches.
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

// thisNode is the owner of hosts that became this node's while links to them waited.
const thisNode strategy.Node = ""

// Answered tells what a node answered to a batch: see [exchange.Outbox].
func (l *Links) Answered(from strategy.Node, batch uint64, refused []int, now time.Time) {
	if l.outbox != nil && from != thisNode {
		l.outbox.Answered(from, batch, refused, now)
	}
}

// reclaim takes links in that have turned out to be this node's.
func (l *Links) reclaim(from member.Batch, now time.Time) error {
	var b batch
	if err := b.read(from.Data); err != nil {
		return err
	}
	b.returned = true
	_, _, err := l.admit(&b, true, func(refused []int) { l.outbox.Answered(thisNode, from.Number, refused, now) })
	return err
}

// Taken is how many URLs this process has taken from outboxes, its own among them, and queued at once: those that were
// news.
func (l *Links) Taken() int64 { return l.taken.Load() }

// Unrouted are the hosts whose owners are to be found out, as a [member.Outbox] has them.
func (l *Links) Unrouted() (hosts []string, links []int) { return l.outbox.Wanted() }

// WaitingFor is how many links to a URL's host, or to the slice of it that the URL is in, wait until it is known whose
// that is.
func (l *Links) WaitingFor(u weburl.URL) int {
	return l.outbox.Waiting(l.hosts.slices.OfHost(u.Host(), u.String()))
}

// RetryDeferred lets links be routed at the next call of Batches that rest for hosts whose owners have become known; all of them
// if hosts is nil.
func (l *Links) RetryDeferred(hosts []string) { l.outbox.Wake(hosts) }

// Outbox is how many links wait for other nodes to take them, and the memory that they take, about.
func (l *Links) Outbox() (links int, bytes int64) { return l.outbox.Size() }
