package crawl

import (
	"context"
	"slices"

	"kumo/internal/base/page"
	"kumo/internal/state/entry"
	"kumo/internal/state/ledger"
	"kumo/internal/state/seen"
	"kumo/internal/state/statefile"
)

// deferredChunk is how many deferred URLs are looked up at once, at some 1,200 bytes each.
const deferredChunk = 1 << 13

// skipReports writes skips that belong to no page's batch: of deferred URLs to which no better link was found, and of
// URLs that a merge in an earlier run has decided.
type skipReports struct {
	deferred  *deferredURLs
	filtered  []entry.Candidate // new filtered URLs whose skips are not written yet
	known     *known
	admission *admission
	abandons  *abandoner
	ledger    *ledger.Ledger
}

// writeDeferred writes skips for the deferred URLs to which no better link was found.
func (r *skipReports) writeDeferred(ctx context.Context) error {
	if r.deferred.file == nil {
		return nil
	}
	if err := r.ledger.Commit(); err != nil { // flushes the file to the operating system
		return err
	}
	var b batch
	put := func(skips []page.Skip, upTo int64) error {
		for i := range skips {
			b.entries.Skip(entry.SkipNew, &skips[i])
		}
		b.skips = append(b.skips, skips...)
		b.entries.DeferredRead(upTo)
		if err := r.abandons.commitBatch(&b, nil); err != nil {
			return err
		}
		r.deferred.upTo = upTo
		b.reset()
		return ctx.Err() // there may be very many
	}
	// Looking up a sorted chunk reads each block on the disk once.
	var skips []page.Skip
	var urls []string
	var ends []int64
	flush := func() error {
		states, err := r.known.seen.States(urls)
		if err != nil {
			return err
		}
		var part []page.Skip
		met := map[string]bool{}
		for i, state := range states {
			if state == seen.Deferred && !met[urls[i]] {
				part, met[urls[i]] = append(part, skips[i]), true
			}
			if len(part) == maxBatchLinks || i == len(states)-1 {
				if err := put(part, ends[i]); err != nil {
					return err
				}
				part = part[:0]
			}
		}
		skips, urls, ends = skips[:0], urls[:0], ends[:0]
		return nil
	}
	err := r.deferred.file.Read(r.deferred.upTo, func(s page.Skip, end int64) error {
		skips, urls, ends = append(skips, s), append(urls, s.URL), append(ends, end)
		if len(skips) < deferredChunk {
			return ctx.Err()
		}
		return flush()
	})
	if err != nil || len(skips) == 0 {
		return err
	}
	return flush()
}

// deferredURLs is the file of deferred URLs.
type deferredURLs struct {
	file *statefile.Deferred // may be nil
	upTo int64               // offset up to which skips were written, by earlier runs and this one
}

// reportFiltered writes the skips of filtered URLs that were undecided when the last process ended, and are new without
// a merge.
func (r *skipReports) reportFiltered() error {
	for part := range slices.Chunk(r.filtered, maxBatchLinks) {
		var b batch
		for i := range part {
			r.admission.route(&b, &part[i])
		}
		if err := r.abandons.commitBatch(&b, nil); err != nil {
			return err
		}
	}
	r.filtered = nil
	return nil
}
