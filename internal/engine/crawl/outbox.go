package crawl

import (
	"slices"
	"time"

	"kumo/internal/base/weburl"
	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
	"kumo/internal/engine/exchange"
	"kumo/internal/state/entry"
)

// openOutbox makes the outbox with what an earlier run has left for others; where there are none, that is to be taken
// in here.
func (e *Engine) openOutbox(left entry.Links) {
	if e.peers.router == nil {
		e.resumed.outbox = left
		return
	}
	e.peers.outbox = exchange.New(exchange.Config{Links: e.cfg.Links, Most: e.cfg.Outbox, Hold: e.peers.full.set,
		Depths: e.depths, Pages: e.claims != nil, Slices: e.slices, Ledger: e.ledger}, left)
}

// divert takes the candidates out of a batch that are other nodes' business, or are to be claimed, and puts them into
// the outbox. It is called within the ledger's gate.
func (e *Engine) divert(b *batch) {
	if e.peers.router == nil || b.routed {
		return
	}
	if e.claims != nil {
		e.claim(b)
		return
	}
	kept := 0
	for i := range b.cands {
		c := &b.cands[i]
		if e.peers.router.Ours(e.sliceOf(c)) {
			b.cands[kept], b.urls[kept] = *c, b.urls[i]
			b.ranks.keep(kept, i)
			kept++
			continue
		}
		if c.Item.Root && c.Rule == "" && !b.rooted {
			e.divertRoot(&c.Item)
		}
		e.ranks.tell(b, i)
		e.peers.outbox.Put(&b.entries, c, nil)
	}
	clear(b.cands[kept:])
	b.cands, b.urls = b.cands[:kept], b.urls[:kept]
	b.ranks.cut(kept)
}

// Batches returns the links that are to be sent now to those who own their hosts, in batches that their TakeLinks
// understands, and first those that have had no answer for too long. owner says who that is; it is not asked for hosts
// that are this node's, and false, as for hosts that will be, lets links wait. Where links are claimed, it says who
// remembers a host's URLs, and is asked for all hosts. It is called again and again; the more seldom, the fuller are
// the batches.
func (e *Engine) Batches(now time.Time, owner func(host string) (strategy.Node, bool)) []member.Batch {
	if e.peers.outbox == nil {
		return nil
	}
	if e.claims != nil {
		return e.peers.outbox.Batches(now, owner)
	}
	all := e.peers.outbox.Batches(now, func(host string) (strategy.Node, bool) {
		if e.ours(host) {
			return here, true
		}
		return owner(host)
	})
	return slices.DeleteFunc(all, func(b member.Batch) bool {
		if b.To == here {
			_ = e.takeBack(b, now) // after an error nothing more is committed, and the run ends with it
		}
		return b.To == here
	})
}

// here is the owner of hosts that became this node's while links to them waited.
const here strategy.Node = ""

// Answered tells what a node answered to a batch: see [exchange.Outbox].
func (e *Engine) Answered(from strategy.Node, batch uint64, refused []int, now time.Time) {
	if e.peers.outbox != nil && from != here {
		e.peers.outbox.Answered(from, batch, refused, now)
	}
}

// takeBack takes links in that have turned out to be this node's.
func (e *Engine) takeBack(from member.Batch, now time.Time) error {
	var b batch
	if err := b.read(from.Data); err != nil {
		return err
	}
	b.back = true
	_, _, err := e.takeIn(&b, true, func(refused []int) { e.peers.outbox.Answered(here, from.Number, refused, now) })
	return err
}

// Taken is how many URLs this process has taken from outboxes, its own among them, and queued at once: those that were
// news.
func (e *Engine) Taken() int64 { return e.peers.taken.Load() }

// Wanted are the hosts whose owners are to be found out, as a [member.Outbox] has them.
func (e *Engine) Wanted() (hosts []string, links []int) { return e.peers.outbox.Wanted() }

// WaitingFor is how many links to a URL's host, or to the slice of it that the URL is in, wait until it is known whose
// that is.
func (e *Engine) WaitingFor(u weburl.URL) int {
	return e.peers.outbox.Waiting(e.slices.At(u.Host(), u.String()))
}

// Wake lets links be routed at the next call of Batches that rest for hosts whose owners have become known; all of them
// if hosts is nil.
func (e *Engine) Wake(hosts []string) { e.peers.outbox.Wake(hosts) }

// Outbox is how many links wait for other nodes to take them, and the memory that they take, about.
func (e *Engine) Outbox() (links int, bytes int64) { return e.peers.outbox.Size() }
