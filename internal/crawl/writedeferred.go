package crawl

import (
	"context"

	"kumo/internal/entry"
	"kumo/internal/page"
	"kumo/internal/seen"
)

// writeDeferred says of what was set aside that no better link came.
func (e *Engine) writeDeferred(ctx context.Context) error {
	if e.files.deferred == nil {
		return nil
	}
	if err := e.ledger.Commit(); err != nil { // which hands all to the operating system
		return err
	}
	var b batch
	upTo := e.files.deferredRead
	put := func() error {
		b.entries.DeferredRead(upTo)
		if err := e.commitBatch(&b); err != nil {
			return err
		}
		e.files.deferredRead = upTo
		b.reset()
		return nil
	}
	err := e.files.deferred.Read(e.files.deferredRead, func(s page.Skip, end int64) error {
		state, _, err := e.known.seen.Look(s.URL)
		if err == nil {
			err = ctx.Err() // there may be very many
		}
		if err != nil {
			return err
		}
		if upTo = end; state == seen.Deferred {
			b.entries.Skip(entry.SkipNew, &s)
			b.skips = append(b.skips, s)
		}
		if len(b.skips) < maxKept {
			return nil
		}
		return put()
	})
	if err != nil || upTo == e.files.deferredRead {
		return err
	}
	return put()
}
