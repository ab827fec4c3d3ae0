package crawl

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/state/entry"
	"kumo/internal/state/ledger"
	"kumo/internal/state/rank/ranker"
)

// A rankKeeper refreshes ranks that go by links, and reports those that have changed to other nodes.
type rankKeeper struct {
	running  atomic.Bool // the crawl runs
	ranks    *ranking
	hosts    *hosts
	outgoing *outgoing
	ledger   *ledger.Ledger
}

// keepRanks computes ranks again whenever links have become more by enough, until the context ends.
func (k *rankKeeper) keepRanks(ctx context.Context) error {
	r := k.ranks.Links
	if r == nil {
		return nil
	}
	return every(ctx, time.Second, func() error {
		if !r.Due() {
			return nil
		}
		err := refresh(ctx, r)
		if err == nil {
			err = k.resendWorths(ctx)
		}
		if err != nil && !canceled(err) {
			return fmt.Errorf("rank URLs by the links between them: %w", err)
		}
		return nil
	})
}

// refresh computes ranks again. The frontier asks for places by itself, once the generation is another.
func refresh(ctx context.Context, r *ranker.Ranker) error {
	_, err := r.Refresh(ctx, func([]ranker.Change) error { return nil })
	return err
}

// resendWorths tells other nodes of their URLs that a refresh has given another importance, as far as this node knows.
func (k *rankKeeper) resendWorths(ctx context.Context) error {
	if k.hosts.router == nil {
		return nil
	}
	return k.ranks.Links.ReportAgain(ctx, func(all []ranker.RemoteURL) error {
		k.outgoing.full.await(ctx)
		if err := ctx.Err(); err != nil {
			return err
		}
		return k.ledger.Within(func() error {
			var enc entry.Encoder
			for i := range all {
				k.resendWorth(&enc, &all[i])
			}
			k.ledger.Enqueue(enc.Writer)
			return nil
		})
	})
}

// resendWorth puts a link into the outbox that says what all that were found to its URL are worth by now.
func (k *rankKeeper) resendWorth(enc *entry.Encoder, u *ranker.RemoteURL) {
	c := entry.Candidate{Host: item.HostOf(u.Address),
		Item: item.Item{URL: u.Address, Depth: u.Depth, Kind: page.Anchor}}
	if k.hosts.router.Ours(k.hosts.sliceOf(&c)) {
		return
	}
	var err error
	if c.Worth, err = k.ranks.Links.ReportDelta(u, 0); err == nil && c.Worth != 0 {
		k.outgoing.outbox.Put(enc, &c, nil)
	}
}

// ensureRanks computes ranks as they were when the crawl ran: what the links were worth by then is not written down.
func (k *rankKeeper) ensureRanks(ctx context.Context) error {
	for r := k.ranks.Links; r != nil && !k.running.Load() && r.Due(); {
		if err := refresh(ctx, r); err != nil {
			return err
		}
	}
	return nil
}
