package crawl

import (
	"context"
	"fmt"
	"strings"

	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/engine/exchange"
	"kumo/internal/state/entry"
	"kumo/internal/state/frontier"
	"kumo/internal/state/seen"
)

// TakeLinks takes links in that another node has found, a [member.Batch]'s data. It returns which of them, counted from
// 0, it refuses because their hosts are not this node's; the others are in its journal, and that is shipped, when it
// returns. The same links may come again. data that is no batch is an error and changes nothing; after another error
// nobody knows, and the links are to be sent again. It waits for room, and needs a Run to commit. Calls at the same
// time share their commits.
func (e *Engine) TakeLinks(ctx context.Context, data []byte) (refused []int, err error) {
	return e.takeFrom(ctx, data, true)
}

// Inherit is TakeLinks for links that a dead node had for others: those whose hosts are not this node's go into its
// outbox.
func (e *Engine) Inherit(ctx context.Context, data []byte) error {
	_, err := e.takeFrom(ctx, data, false)
	return err
}

func (e *Engine) takeFrom(ctx context.Context, data []byte, refuses bool) ([]int, error) {
	w := e.workers.take(e)
	defer e.workers.rest(w)
	w.batch.reset()
	e.workers.getBuffers(&w.batch)
	if err := w.batch.read(data); err != nil {
		return nil, fmt.Errorf("take links from another node: %w", err)
	}
	e.control.disk.await(ctx)
	e.await(ctx)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	all := len(w.batch.cands)
	e.peers.received.Add(1)
	refused, sequence, err := e.takeIn(&w.batch, refuses, nil)
	if err == nil && len(refused) < all {
		err = e.ledger.WaitDurable(ctx, sequence)
	}
	return refused, err
}

// takeIn takes links in that come from elsewhere. It returns the sequence of their batch, to which also may add.
func (e *Engine) takeIn(b *batch, refuses bool, also func(refused []int)) (refused []int, sequence uint64, err error) {
	err = e.ledger.Within(func() error {
		if refuses {
			refused = e.refuse(b)
		}
		b.dropStrange()
		e.admitRoots(b)
		if err := e.apply(b); err != nil {
			return err
		}
		if also != nil {
			also(refused)
		}
		sequence = e.ledger.Sequence()
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	e.peers.taken.Add(int64(len(b.found)))
	e.tellSkips(b)
	return refused, sequence, e.failAbandoned(b.found)
}

// refuse takes those out of a batch that are not this node's. It is called within the ledger's gate: who waits,
// after the owners have changed, for what is put there, knows that nothing of others' is put any more.
func (e *Engine) refuse(b *batch) (refused []int) {
	b.routed = true
	kept := 0
	for i := range b.cands {
		if c := &b.cands[i]; frontier.Belongs(c.Host, c.Item.URL) && !e.ours(e.sliceOf(c)) {
			e.peers.outbox.Want(e.sliceOf(c))
			refused = append(refused, i)
			continue
		}
		b.cands[kept], b.urls[kept] = b.cands[i], b.urls[i]
		kept++
	}
	clear(b.cands[kept:])
	b.cands, b.urls = b.cands[:kept], b.urls[:kept]
	return refused
}

// admitRoots takes the seeds of other nodes, and where such have redirected to, into scope.
func (e *Engine) admitRoots(b *batch) {
	for i := range b.cands {
		if it := &b.cands[i].Item; it.Root && b.cands[i].Rule == "" {
			if u, err := weburl.Parse(strings.Clone(it.URL)); err == nil {
				e.admit(u, it.Kind == page.Seed && e.asWritten())
			}
		}
	}
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

// takeLeft takes in what an earlier run, which had others beside it, has left for them.
func (e *Engine) takeLeft() error {
	if len(e.resumed.outbox) == 0 {
		return nil
	}
	err := e.resumed.outbox.Batches(func(data []byte) error {
		var b batch
		if err := b.read(data); err != nil {
			return err
		}
		b.back = true
		_, _, err := e.takeIn(&b, false, nil)
		return err
	})
	if err != nil {
		return err
	}
	numbers := e.resumed.outbox.Numbers()
	e.resumed.outbox = nil
	return e.ledger.Within(func() error {
		var enc entry.Encoder
		enc.Delivered(numbers[0], numbers[len(numbers)-1])
		e.ledger.Enqueue(enc.Writer)
		return nil
	})
}
