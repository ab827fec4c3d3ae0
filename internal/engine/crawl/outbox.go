package crawl

import (
	"kumo/internal/engine/exchange"
	"kumo/internal/state/entry"
	"kumo/internal/state/ledger"
)

// outgoing puts links for other nodes into the outbox.
type outgoing struct {
	outbox *exchange.Outbox // nil without a router
	full   valve            // shut while the outbox is too large

	cfg        *Config
	hosts      *hosts
	known      *known
	claims     *claims
	scopeSeeds *scopeSeeds
	ranks      *ranking
	ledger     *ledger.Ledger
}

// newOutgoing opens the outbox with the links that an earlier run has left.
func newOutgoing(o *outgoing, left entry.Links) *outgoing {
	if o.hosts.router != nil {
		o.outbox = exchange.New(exchange.Config{Links: o.cfg.Links, MaxBytes: o.cfg.Outbox, Hold: o.full.set,
			Depths: o.known.depths, Pages: o.claims != nil, Slices: o.hosts.slices, Ledger: o.ledger}, left)
	}
	return o
}

// divert moves candidates of other nodes, or that are to be claimed, from a batch to the outbox. It is called within
// the ledger's gate.
func (o *outgoing) divert(b *batch) {
	if o.hosts.router == nil || b.routed {
		return
	}
	if o.claims != nil {
		o.claim(b)
		return
	}
	kept := 0
	b.retain(func(i int, c *entry.Candidate) bool {
		if o.hosts.router.Ours(o.hosts.sliceOf(c)) {
			if len(b.ranks.cands) > 0 {
				b.ranks.cands[kept] = b.ranks.cands[i]
			}
			kept++
			return true
		}
		if c.Item.ScopeSeed && c.Rule == "" && !b.seedsRecorded {
			o.scopeSeeds.addForeign(&c.Item)
		}
		o.ranks.sendWorth(b, i)
		o.outbox.Put(&b.entries, c, nil)
		return false
	})
	b.ranks.cands = b.ranks.cands[:min(kept, len(b.ranks.cands))]
}

// claim moves all links of a batch that no rule filters to the outbox.
func (o *outgoing) claim(b *batch) {
	var known []bool
	if o.known.db != nil { // links known here were claimed before
		known = o.known.db.Remembers(b.urls, b.known[:0])
		b.known = known
	}
	var page *exchange.Page
	if b.visit != nil {
		page = b.visit.page
	}
	b.retain(func(i int, c *entry.Candidate) bool {
		if c.Rule == "" && c.Item.ScopeSeed && !b.seedsRecorded {
			o.scopeSeeds.addForeign(&c.Item)
		}
		if c.Rule == "" && (known == nil || !known[i]) {
			o.outbox.Put(&b.entries, c, page)
		}
		return c.Rule != ""
	})
}
