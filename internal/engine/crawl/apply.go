package crawl

import (
	"kumo/internal/base/page"
	"kumo/internal/base/stats"
	"kumo/internal/state/entry"
	"kumo/internal/state/frontier"
	"kumo/internal/state/ledger"
	"kumo/internal/state/seen"
	"kumo/internal/state/statefile"
	"kumo/internal/state/transfer"
)

// batchWriter writes batches to the stores, the journal and the views of it.
type batchWriter struct {
	hosts     *hosts
	known     *known
	admission *admission
	outgoing  *outgoing
	claims    *claims
	ranks     *ranking
	roots     *scopeSeeds
	ends      *ends
	counts    *journalCounts
	frontier  *frontier.Frontier
	transfer  *transfer.Endpoint
	deferred  *statefile.Deferred
	ledger    *ledger.Ledger
	stats     *stats.Counter
	listener  Listener
}

// commitBatch makes a batch part of the crawl: what is news of it is found out, then it goes with the records that
// brought it to the stores and the journal, and to the frontier.
func (a *abandoner) commitBatch(b *batch) error {
	err := a.ledger.Within(func() error { return a.batches.apply(b) })
	if err != nil {
		return err
	}
	a.batches.tellSkips(b)
	return a.failAbandoned(b.found)
}

func (w *batchWriter) tellSkips(b *batch) {
	for i := range b.skips {
		w.listener.skipped(&b.skips[i])
	}
}

func (w *batchWriter) apply(b *batch) error {
	w.ranks.share(b, w.hosts.router != nil)
	w.outgoing.divert(b)
	w.admission.offer(b)
	w.takeAgain(b)
	rose := w.ranks.settle(b, w.hosts.sliceOf)
	var endings []*ending
	if w.claims != nil {
		endings = w.claims.end(b, w.ledger.Sequence())
	}
	err := w.ledger.Put(b.records, b.skips, func() []byte {
		w.counts.countLinks(b)
		for i, d := range b.done {
			w.known.refer(b.records[i], d)
			b.entries.Done(d)
			w.known.noteVisit(b, d.URL, &d.Meta)
		}
		if len(b.done) == 0 && !b.plan.Due.IsZero() {
			w.known.noteVisit(b, b.settles, &b.plan)
		}
		if w.claims != nil && len(b.done) == 0 {
			w.known.noteOver(b)
		}
		return b.entries.Writer
	})
	if err != nil {
		return err
	}
	if b.settles != "" {
		w.ends.add(b.settles)
	}
	for _, d := range b.done {
		w.stats.Visited(d.Visit)
	}
	for i := range b.skips {
		if b.skips[i].Rule != ruleFailed { // failures are counted as such
			w.stats.Skipped(b.skips[i].Rule)
		}
	}
	for i := range b.found {
		if it := &b.found[i].Item; it.Root && !b.rooted {
			if err := w.roots.addRoot(it); err != nil {
				return err
			}
		}
		w.frontier.Push(w.hosts.sliceOf(&b.found[i]), b.found[i].Item)
	}
	w.moveUp(b, rose)
	w.transfer.Committed(b.found, b.done...)
	if len(endings) > 0 {
		w.claims.closed(b, endings)
	}
	return w.deferred.Add(b.deferred)
}

// noteVisit keeps what a visit has found, and when the next is to be.
func (k *known) noteVisit(b *batch, url string, meta *seen.Meta) {
	if k.db == nil {
		return
	}
	k.db.UpdateMeta(url, *meta)
	if !meta.Due.IsZero() {
		b.entries.Due(url, meta)
	}
	if meta.From != "" {
		b.entries.From(url, meta.From)
	}
}

// noteOver keeps which URLs are not fetched any more that were not answered, nor failed for good.
func (k *known) noteOver(b *batch) {
	for _, url := range b.over() {
		b.entries.Ended(url)
		if k.db != nil {
			k.db.UpdateMeta(url, seen.Meta{Ended: true})
		}
	}
}

// failAbandoned takes back what was found at origins that were given up.
func (a *abandoner) failAbandoned(found []entry.Candidate) error {
	if !a.origins.anyAbandoned.Load() {
		return nil
	}
	for i := range found {
		origin := originOf(found[i].Item.URL)
		if l, ok := a.origins.isAbandoned(origin); ok {
			if err := a.abandonFound(&found[i], origin, l); err != nil {
				return err
			}
		}
	}
	return nil
}

// abandonFound is abandonOrigin for the slice in which something was found.
func (a *abandoner) abandonFound(c *entry.Candidate, origin string, l abandonment) error {
	if a.hosts.slices == nil {
		return a.abandonOrigin(origin, l)
	}
	return a.abandonAt(a.hosts.sliceOf(c), origin, l)
}

// ruleFailed is the rule in skipped.jsonl of what was not answered.
const ruleFailed = "failed"

// refer lets later records with the same payload refer to this one.
func (k *known) refer(rec *page.Record, d *entry.Done) {
	if rec.Place.ID == "" || rec.Revisit != nil || rec.Response == nil || rec.Response.PayloadLen() == 0 {
		return
	}
	d.Ref = page.Ref{URL: rec.URL, Time: rec.Response.Start, ID: rec.Place.ID, Chunked: rec.Place.Chunked}
	k.digests.Put(rec.Digest, seen.Ref(d.Ref))
}
