package crawl

import (
	"cmp"

	"kumo/internal/base/stats"
	"kumo/internal/state/entry"
	"kumo/internal/state/frontier"
	"kumo/internal/state/ledger"
	"kumo/internal/state/statefile"
	"kumo/internal/state/transfer"
)

// batchWriter writes batches to the stores, the journal, and the views that must match the journal.
type batchWriter struct {
	hosts      *hosts
	known      *known
	admission  *admission
	outgoing   *outgoing
	claims     *claims
	ranks      *ranking
	scopeSeeds *scopeSeeds
	ends       *visitEnds
	counts     *journalCounts
	frontier   *frontier.Frontier
	transfer   *transfer.Endpoint
	deferred   *statefile.Deferred
	ledger     *ledger.Ledger
	stats      *stats.Counter
	listener   Listener
}

func (w *batchWriter) apply(b *batch) error {
	w.ranks.weighLinks(b, w.hosts.router != nil)
	w.outgoing.divert(b)
	w.admission.offer(b)
	for _, it := range b.refetch { // regardless of seen
		c := entry.Candidate{Host: it.Host(), Item: it}
		if w.hosts.ours(w.hosts.sliceOf(&c)) {
			w.admission.route(b, &c)
		}
	}
	rose := w.ranks.apply(b, w.hosts.sliceOf)
	var endings []*finishedURL
	if w.claims != nil {
		endings = w.claims.addFinished(b, w.ledger.Sequence())
	}
	err := w.ledger.Put(b.records, b.skips, func() []byte {
		w.counts.stats.Found(b.links)
		w.counts.offHosts.add(b.offs, w.counts.stats)
		for i, d := range b.done {
			w.known.refer(b.records[i], d)
			b.entries.Done(d)
			w.known.recordVisit(b, d.URL, &d.Meta)
		}
		if len(b.done) == 0 && !b.recrawlPlan.Due.IsZero() {
			w.known.recordVisit(b, cmp.Or(b.visitURL, b.itemURL()), &b.recrawlPlan)
		}
		if w.claims != nil && len(b.done) == 0 {
			w.known.recordEnded(b)
		}
		return b.entries.Writer
	})
	if err != nil {
		return err
	}
	if b.visitURL != "" {
		w.ends.add(b.visitURL)
	}
	for _, d := range b.done {
		w.stats.Visited(d.Visit)
	}
	for i := range b.skips {
		if b.skips[i].Rule != ruleFailed { // failures are counted separately
			w.stats.Skipped(b.skips[i].Rule)
		}
	}
	for i := range b.found {
		if it := &b.found[i].Item; it.ScopeSeed && !b.seedsRecorded {
			if err := w.scopeSeeds.add(it); err != nil {
				return err
			}
		}
		w.frontier.Push(w.hosts.sliceOf(&b.found[i]), b.found[i].Item)
	}
	w.promote(b, rose)
	w.transfer.Committed(b.found, b.done...)
	if len(endings) > 0 {
		w.claims.closeVisit(b, endings)
	}
	return w.deferred.Add(b.deferred)
}

// ruleFailed is the rule in skipped.jsonl of URLs that were not answered.
const ruleFailed = "failed"

// promote moves URLs whose rank rose forward in their hosts' queues.
func (w *batchWriter) promote(b *batch, all []promotion) {
	for len(all) > 0 {
		slice := all[0].slice
		b.ranks.moves = b.ranks.moves[:0]
		for len(all) > 0 && all[0].slice == slice {
			b.ranks.moves = append(b.ranks.moves, all[0].Move)
			all = all[1:]
		}
		w.frontier.Move(slice, b.ranks.moves)
	}
}
