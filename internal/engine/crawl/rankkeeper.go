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

// A rankKeeper refreshes ranks by links, and sends changed ones to other nodes.
type rankKeeper struct {
	running  atomic.Bool // the crawl runs
	ranks    *ranking
	hosts    *hosts
	outgoing *outgoing
	ledger   *ledger.Ledger
}

// maintainRanks recomputes the ranks whenever enough links were added, until the context ends.
func (k *rankKeeper) maintainRanks(ctx context.Context) error {
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
			return fmt.Errorf("rank URLs by links: %w", err)
		}
		return nil
	})
}

// refresh recomputes the ranks. The frontier queries places itself when the generation has changed.
func refresh(ctx context.Context, r *ranker.Ranker) error {
	_, err := r.Refresh(ctx, func([]ranker.Change) error { return nil })
	return err
}

// resendWorths sends other nodes the worths of links to their URLs that a refresh has changed, as far as this node
// knows them.
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

// resendWorth puts a link into the outbox that carries the current worth of all links found to its URL.
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

// ensureRanks recomputes the ranks if the crawl is not running: the files have the links, but not their worths.
func (k *rankKeeper) ensureRanks(ctx context.Context) error {
	for r := k.ranks.Links; r != nil && !k.running.Load() && r.Due(); {
		if err := refresh(ctx, r); err != nil {
			return err
		}
	}
	return nil
}
