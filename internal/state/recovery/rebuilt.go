package recovery

import (
	"context"
	"encoding/json"
	"errors"

	"kumo/internal/base/stats"
	"kumo/internal/state/entry"
	"kumo/internal/state/frontier"
	"kumo/internal/state/seen"
	"kumo/internal/state/store"
)

// A Rebuilt is a state rebuilt from a crawl's records: URLs that were fetched or excluded are known. Pending URLs are
// added later by [Engine.Reenter].
type Rebuilt struct {
	Seen     *seen.DB
	Digests  *seen.Digests
	Frontier *frontier.Frontier // empty
	Stats    *stats.Counter
	Lists    []entry.SeedListMark // of seed lists, which need not be supplied again
	Told     []string             // URLs that skipped.jsonl reports as failed, and that may be pending
	Marks    []store.Mark         // of all record files
}

// FlushIfFull writes the views' data to disk if there is much in memory.
func (r *Rebuilt) FlushIfFull(ctx context.Context) error {
	if !r.Seen.Full() && !r.Digests.Full() {
		return nil
	}
	return r.merge(ctx)
}

func (r *Rebuilt) merge(ctx context.Context) error {
	r.Seen.Freeze(0)
	r.Digests.Freeze(0)
	return errors.Join(r.Seen.Merge(ctx, nil), seen.CompactAll(ctx, r.Seen), r.Digests.Merge(ctx),
		seen.CompactAll(ctx, r.Digests))
}

// Write makes the state durable, as a checkpoint at the start of a journal.
func (r *Rebuilt) Write(ctx context.Context) error {
	if err := r.merge(ctx); err != nil {
		return err
	}
	text, err := json.Marshal(
		Note{Version: NoteVersion, Marks: r.Marks, Stats: r.Stats.DurableSnapshot(), Sums: r.Stats.Sums(),
			Lists: r.Lists,
			Told:  r.Told, Slices: NoteSlices(r.Frontier.Slices())},
	)
	if err != nil {
		return err
	}
	return r.Frontier.Checkpoint(text)
}
