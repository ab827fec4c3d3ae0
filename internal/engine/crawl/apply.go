package crawl

import (
	"kumo/internal/base/page"
	"kumo/internal/state/entry"
	"kumo/internal/state/seen"
)

// commitBatch makes a batch part of the crawl: what is news of it is found out, then it goes with the records that
// brought it to the stores and the journal, and to the frontier.
func (e *Engine) commitBatch(b *batch) error {
	err := e.ledger.Within(func() error { return e.apply(b) })
	if err != nil {
		return err
	}
	e.tellSkips(b)
	return e.failAbandoned(b.found)
}

func (e *Engine) tellSkips(b *batch) {
	for i := range b.skips {
		e.listener.skipped(&b.skips[i])
	}
}

func (e *Engine) apply(b *batch) error {
	e.ranks.share(b, e.peers.router != nil)
	e.divert(b)
	e.offer(b)
	e.takeAgain(b)
	rose := e.ranks.settle(b, e.sliceOf)
	var endings []*ending
	if e.claims != nil {
		endings = e.claims.end(b, e.ledger.Sequence())
	}
	err := e.ledger.Put(b.records, b.skips, func() []byte {
		e.countLinks(b)
		for i, d := range b.done {
			e.refer(b.records[i], d)
			b.entries.Done(d)
			e.noteVisit(b, d.URL, &d.Meta)
		}
		if len(b.done) == 0 && !b.plan.Due.IsZero() {
			e.noteVisit(b, b.settles, &b.plan)
		}
		if e.claims != nil && len(b.done) == 0 {
			e.noteOver(b)
		}
		return b.entries.Writer
	})
	if err != nil {
		return err
	}
	if b.settles != "" {
		e.ends.add(b.settles)
	}
	for _, d := range b.done {
		e.stats.Visited(d.Visit)
	}
	for i := range b.skips {
		if b.skips[i].Rule != ruleFailed { // failures are counted as such
			e.stats.Skipped(b.skips[i].Rule)
		}
	}
	for i := range b.found {
		if it := &b.found[i].Item; it.Root && !b.rooted {
			if err := e.addRoot(it); err != nil {
				return err
			}
		}
		e.frontier.Push(e.sliceOf(&b.found[i]), b.found[i].Item)
	}
	e.moveUp(b, rose)
	e.peers.transfer.Committed(b.found, b.done...)
	if len(endings) > 0 {
		e.claims.closed(b, endings)
	}
	return e.files.deferred.Add(b.deferred)
}

// noteVisit keeps what a visit has found, and when the next is to be.
func (e *Engine) noteVisit(b *batch, url string, meta *seen.Meta) {
	if e.known.db == nil {
		return
	}
	e.known.db.UpdateMeta(url, *meta)
	if !meta.Due.IsZero() {
		b.entries.Due(url, meta)
	}
	if meta.From != "" {
		b.entries.From(url, meta.From)
	}
}

// noteOver keeps which URLs are not fetched any more that were not answered, nor failed for good.
func (e *Engine) noteOver(b *batch) {
	for _, url := range b.over() {
		b.entries.Ended(url)
		if e.known.db != nil {
			e.known.db.UpdateMeta(url, seen.Meta{Ended: true})
		}
	}
}

// failAbandoned takes back what was found at origins that were given up.
func (e *Engine) failAbandoned(found []entry.Candidate) error {
	if !e.origins.anyAbandoned.Load() {
		return nil
	}
	for i := range found {
		origin := originOf(found[i].Item.URL)
		if l, ok := e.origins.isAbandoned(origin); ok {
			if err := e.abandonFound(&found[i], origin, l); err != nil {
				return err
			}
		}
	}
	return nil
}

// abandonFound is abandonOrigin for the slice in which something was found.
func (e *Engine) abandonFound(c *entry.Candidate, origin string, l abandonment) error {
	if e.slices == nil {
		return e.abandonOrigin(origin, l)
	}
	return e.abandonAt(e.sliceOf(c), origin, l)
}

// ruleFailed is the rule in skipped.jsonl of what was not answered.
const ruleFailed = "failed"

// refer lets later records with the same payload refer to this one.
func (e *Engine) refer(rec *page.Record, d *entry.Done) {
	if rec.Place.ID == "" || rec.Revisit != nil || rec.Response == nil || rec.Response.PayloadLen() == 0 {
		return
	}
	d.Ref = page.Ref{URL: rec.URL, Time: rec.Response.Start, ID: rec.Place.ID, Chunked: rec.Place.Chunked}
	e.known.digests.Put(rec.Digest, seen.Ref(d.Ref))
}
