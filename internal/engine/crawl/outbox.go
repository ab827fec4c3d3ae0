package crawl

import (
	"slices"
	"time"

	"kumo/internal/base/weburl"
	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
	"kumo/internal/engine/exchange"
	"kumo/internal/state/entry"
	"kumo/internal/state/ledger"
)

// outgoing puts links that are for other nodes into the outbox.
type outgoing struct {
	outbox *exchange.Outbox // nil without a router
	full   valve            // shut while the outbox has more than it may

	cfg    *Config
	hosts  *hosts
	known  *known
	claims *claims
	roots  *scopeSeeds
	ranks  *ranking
	ledger *ledger.Ledger
}

// newOutgoing opens the outbox with what an earlier run has left for others.
func newOutgoing(o *outgoing, left entry.Links) *outgoing {
	if o.hosts.router != nil {
		o.outbox = exchange.New(exchange.Config{Links: o.cfg.Links, Most: o.cfg.Outbox, Hold: o.full.set,
			Depths: o.known.depths, Pages: o.claims != nil, Slices: o.hosts.slices, Ledger: o.ledger}, left)
	}
	return o
}

// divert takes the candidates out of a batch that are other nodes' business, or are to be claimed, and puts them into
// the outbox. It is called within the ledger's gate.
func (o *outgoing) divert(b *batch) {
	if o.hosts.router == nil || b.routed {
		return
	}
	if o.claims != nil {
		o.claim(b)
		return
	}
	kept := 0
	for i := range b.cands {
		c := &b.cands[i]
		if o.hosts.router.Ours(o.hosts.sliceOf(c)) {
			b.cands[kept], b.urls[kept] = *c, b.urls[i]
			b.ranks.keep(kept, i)
			kept++
			continue
		}
		if c.Item.Root && c.Rule == "" && !b.rooted {
			o.roots.divertRoot(&c.Item)
		}
		o.ranks.tell(b, i)
		o.outbox.Put(&b.entries, c, nil)
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
func (l *Links) Batches(now time.Time, owner func(host string) (strategy.Node, bool)) []member.Batch {
	if l.outbox == nil {
		return nil
	}
	if l.claims != nil {
		return l.outbox.Batches(now, owner)
	}
	all := l.outbox.Batches(now, func(host string) (strategy.Node, bool) {
		if l.hosts.ours(host) {
			return here, true
		}
		return owner(host)
	})
	return slices.DeleteFunc(all, func(b member.Batch) bool {
		if b.To == here {
			_ = l.takeBack(b, now) // after an error nothing more is committed, and the run ends with it
		}
		return b.To == here
	})
}

// here is the owner of hosts that became this node's while links to them waited.
const here strategy.Node = ""

// Answered tells what a node answered to a batch: see [exchange.Outbox].
func (l *Links) Answered(from strategy.Node, batch uint64, refused []int, now time.Time) {
	if l.outbox != nil && from != here {
		l.outbox.Answered(from, batch, refused, now)
	}
}

// takeBack takes links in that have turned out to be this node's.
func (l *Links) takeBack(from member.Batch, now time.Time) error {
	var b batch
	if err := b.read(from.Data); err != nil {
		return err
	}
	b.back = true
	_, _, err := l.takeIn(&b, true, func(refused []int) { l.outbox.Answered(here, from.Number, refused, now) })
	return err
}

// Taken is how many URLs this process has taken from outboxes, its own among them, and queued at once: those that were
// news.
func (l *Links) Taken() int64 { return l.taken.Load() }

// Wanted are the hosts whose owners are to be found out, as a [member.Outbox] has them.
func (l *Links) Wanted() (hosts []string, links []int) { return l.outbox.Wanted() }

// WaitingFor is how many links to a URL's host, or to the slice of it that the URL is in, wait until it is known whose
// that is.
func (l *Links) WaitingFor(u weburl.URL) int {
	return l.outbox.Waiting(l.hosts.slices.At(u.Host(), u.String()))
}

// Wake lets links be routed at the next call of Batches that rest for hosts whose owners have become known; all of them
// if hosts is nil.
func (l *Links) Wake(hosts []string) { l.outbox.Wake(hosts) }

// Outbox is how many links wait for other nodes to take them, and the memory that they take, about.
func (l *Links) Outbox() (links int, bytes int64) { return l.outbox.Size() }
